"""The course's colours as CSS, for a light and a dark page. ``lessons/style.py`` says what each
colour means."""

from __future__ import annotations

from course_lib.lessons import style

_PAPER = {"light": "#FFFFFF", "dark": "#111111"}
_PLAIN = {
    "light": {
        "ink": style.INK, "quiet": style.QUIET, "grid": "#E4E4E0", "edge": "#8A8A8A",
        "paper": "#FFFFFF", "control": "#F4F4F2",
        "chosen": "#00588F", "on-chosen": "#FFFFFF", "focus": "#0072B2", "hatch-masked": "#8C8C8C",
        "hatch-fault": "#8A4A1F",
    },
    "dark": {
        "ink": "#EDEDED", "quiet": "#B4B4B4", "grid": "#333333", "edge": "#7A7A7A",
        "paper": "#111111", "control": "#262626",
        "chosen": "#7CC4F2", "on-chosen": "#0B0B0B", "focus": "#9AD4FF", "hatch-masked": "#757575",
        "hatch-fault": "#8A4A1F",
    },
}  # fmt: skip
_STATES = {
    "light": style.GROUPS["states"],
    "dark": {
        "active": "#56B4E9",
        "masked": "#474747",
        "done": "#2C6B48",
        "waiting": "#1F1F1F",
        "fault": "#FF9E66",
    },
}
# Least contrast of a line or mark against the page: WCAG 2.2, 1.4.11, and more on dark, where thin
# lines are harder to see.
_NEEDED = {"light": 3.0, "dark": 4.5}


def make_css() -> str:
    """Return CSS custom properties for ``:host``: page colours such as ``--ink``, one colour per
    algorithm, tensor, provider and state, and the colour of text on each state's colour
    (``--on-active``)."""
    return "".join(
        f":host{selector} {{"
        f" {' '.join(f'--{name}: {colour};' for name, colour in list_colours(theme).items())} }}\n"
        for theme, selector in (("light", ""), ("dark", '([data-theme="dark"])'))
    )


def list_colours(theme: str) -> dict[str, str]:
    """Return every colour of a theme, "light" or "dark", by the name of its property without the
    leading dashes."""
    drawn = {
        key.replace("_", "-"): _fit(colour, theme)
        for name, group in style.GROUPS.items()
        if name != "states"
        for key, colour in group.items()
    }
    states = _STATES[theme]
    return (
        _PLAIN[theme]
        | drawn
        | states
        | {f"on-{key}": style.text_on(colour) for key, colour in states.items()}
    )


def _fit(colour: str, theme: str) -> str:
    """Mix ``colour`` with white or black until its contrast against the page is enough."""
    target = 0x00 if theme == "light" else 0xFF
    channels = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
    for step in range(21):
        mixed = [round(c + (target - c) * step / 20) for c in channels]
        fitted = "#{:02X}{:02X}{:02X}".format(*mixed)
        if style.contrast(fitted, _PAPER[theme]) >= _NEEDED[theme]:
            return fitted
    raise AssertionError(f"{colour} never stands out")
