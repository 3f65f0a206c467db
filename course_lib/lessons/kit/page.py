"""The style of a lesson's page around its pictures: figures that suit a dark page, and lines that
are not too long to read."""

from __future__ import annotations

from typing import Any

from IPython.core.getipython import get_ipython
from IPython.display import HTML, display

from course_lib.base import runtime

# A figure is a PNG with dark ink on near-white. On a dark page its colours are inverted, then the
# hues are rotated back.
STYLE = """<style>
body[data-jp-theme-light="false"] .jp-OutputArea .jp-RenderedImage img, body.vscode-dark .output img {
  filter: invert(0.93) hue-rotate(180deg); }
.jp-Notebook .jp-RenderedMarkdown.jp-MarkdownOutput > :is(p, ul, ol, blockquote, h1, h2, h3, details) { max-width: 52em; }
.jp-Notebook .jp-MarkdownOutput > details { border-left: 5px solid var(--jp-warn-color1); padding: 4px 12px; }
.jp-Notebook .jp-MarkdownOutput > details > summary { cursor: pointer; }
.course-asleep { display: none; }
.jupyter-widgets-disconnected .course-asleep { display: block; }
</style>"""  # noqa: E501


def dress_page() -> None:
    """Give the running notebook the course's style. Do nothing outside of a notebook.

    The style is an output of the running cell, so it disappears when that cell is run again. A hook
    then shows it again.
    """
    if not runtime.in_notebook():
        return
    display(HTML(STYLE))
    shell: Any = get_ipython()
    home = (
        shell.get_parent().get("metadata", {}).get("cellId")
        if hasattr(shell, "get_parent")
        else None
    )

    def show_again(info: Any) -> None:
        if info.cell_id == home:
            display(HTML(STYLE))

    if home is not None:  # without cell ids, the style is shown only once
        shell.events.register("pre_run_cell", show_again)
