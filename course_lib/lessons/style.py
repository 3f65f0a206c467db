"""The course's colours, and its style for a learner's own Matplotlib figures.

A colour means one thing everywhere: an algorithm, a tensor, a library or a state. Colour is never
the only difference: things in one picture carry their names, or differ in a dash or a hatch.

Hues start from Okabe and Ito 2008, "Color Universal Design"; lightness is spread out so that grey
print keeps the order. A gradient has its tensor's hue, lighter.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

PANEL = "#FCFCFA"
INK = "#1A1A1A"
QUIET = "#5A5A5A"  # secondary text; its contrast on the panel is at least 4.5 : 1
_RC = Path(__file__).with_name("course.mplstyle")

GROUPS: dict[str, dict[str, str]] = {
    "algorithms": {
        "naive": "#7D1145",
        "one_pass": "#D55E00",
        "shifted": "#9A4FA0",
        "two_pass": "#00305A",
        "welford": "#007F5F",
        "chan": "#3C9FDB",
    },
    "tensors": {
        "x": "#0072B2",
        "y": "#D55E00",
        "w": "#006347",
        "b": "#CDB000",
        "mean": "#A02878",
        "rstd": "#2F2F2F",
        "r": "#7D7D7D",
        "dx": "#86C3F0",
        "dy": "#F9B584",
        "dw": "#6FD6B5",
        "db": "#F2E77A",
    },
    "providers": {
        "ours": "#0072B2",
        "blocked": "#6DB7E8",
        "resident": "#00305A",
        "torch": "#D55E00",
        "compile": "#E8A614",
        "liger": "#008F68",
        "quack": "#B02A6E",
        "tutorial": "#8C8C8C",
        "floor": "#1A1A1A",
    },
    "states": {
        "active": "#56B4E9",
        "masked": "#B9B9B9",
        "done": "#A6E0BE",
        "waiting": "#FFFFFF",
        "fault": "#FF9E66",
    },
}
COLOURS: dict[str, str] = {
    key: colour for group in GROUPS.values() for key, colour in group.items()
}


def use() -> None:
    """Give every Matplotlib figure made from now on the course's style, also if Matplotlib is
    imported only later, in this process or a child."""
    os.environ["MATPLOTLIBRC"] = str(_RC)
    if "matplotlib" in sys.modules:
        sys.modules["matplotlib"].rc_file(_RC)


def text_on(colour: str) -> str:
    """Return black or white, whichever is easier to read on ``colour`` ("#RRGGBB")."""
    return "#000000" if contrast("#000000", colour) >= contrast("#FFFFFF", colour) else "#FFFFFF"


def contrast(colour: str, background: str) -> float:
    """Return the WCAG 2.2 contrast ratio of two colours "#RRGGBB", between 1 and 21."""
    low, high = sorted((_luminance(colour), _luminance(background)))
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: str) -> float:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
