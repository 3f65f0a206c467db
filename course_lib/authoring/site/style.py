"""The site's colours, light and dark, by the names that the theme and the course's outputs ask
for."""

from __future__ import annotations

_FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", Helvetica, Arial, sans-serif'
# JupyterLab's CSS variables: a notebook's outputs take their colours from them
LIGHT = {
    "font-stack": _FONT, "jp-ui-font-family": _FONT,
    "jp-code-font-family": "var(--font-stack--monospace)",
    "color-brand-primary": "#00588f", "color-brand-content": "#00588f",
    "color-brand-visited": "#6b3fa0",
    "color-foreground-muted": "#5a5a5a", "color-foreground-secondary": "#4a4a4a",
    "jp-content-font-color1": "#1a1a1a", "jp-content-font-color2": "#5a5a5a",
    "jp-content-link-color": "#00588f",
    "jp-cell-editor-background": "#f7f7f5", "jp-border-color1": "#bdbdbd",
    "jp-brand-color1": "#0072b2",
    "jp-success-color1": "#2e7d32", "jp-error-color1": "#c62828", "jp-warn-color1": "#9a5b00",
    "picture-filter": "none",
}  # fmt: skip
# What is the same in the dark, such as the fonts, stands above alone: named here again, it would
# win over site.css, which has Chinese fonts.
DARK = {
    "color-brand-primary": "#7cc4f2", "color-brand-content": "#7cc4f2",
    "color-brand-visited": "#c5a5f0",
    "color-foreground-muted": "#b4b4b4", "color-foreground-secondary": "#c4c4c4",
    "jp-content-font-color1": "#ededed", "jp-content-font-color2": "#b4b4b4",
    "jp-content-link-color": "#7cc4f2",
    "jp-cell-editor-background": "#1e1f21", "jp-border-color1": "#5a5a5a",
    "jp-brand-color1": "#56b4e9",
    "jp-success-color1": "#81c784", "jp-error-color1": "#ef9a9a", "jp-warn-color1": "#ffb74d",
    "picture-filter": "invert(0.93) hue-rotate(180deg)",
}  # fmt: skip
