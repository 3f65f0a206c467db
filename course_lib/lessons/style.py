"""The one matplotlib style of the course: every figure of every lesson uses it.

Figures have an opaque near-white panel and dark text, so the same PNG reads on a light page, on a dark page and on
paper. A colour means one thing everywhere: an algorithm, a tensor, a library or a state. Colour is never the only
difference: things in one figure also differ in marker and line style, or in hatch, or carry their names.

Hues start from Okabe and Ito 2008, "Color Universal Design"; lightness is spread out so that grey print keeps the
order. A gradient has its tensor's hue, lighter, and a hatch.
"""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANEL = "#FCFCFA"
INK = "#1A1A1A"
QUIET = "#5A5A5A"  # secondary text; its contrast on the panel is at least 4.5 : 1
GRID = "#DADAD6"
_RC = Path(__file__).with_name("course.mplstyle")
WIDTH = 7.5  # inches: the widest figure that a notebook column shows without scaling
DPI = 110
FONT = 10.0  # points, the smallest text of a figure

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
    "states": {"active": "#56B4E9", "masked": "#B9B9B9", "done": "#A6E0BE", "waiting": "#FFFFFF", "fault": "#FF9E66"},
}
COLOURS: dict[str, str] = {key: colour for group in GROUPS.values() for key, colour in group.items()}

_MARKERS = "osD^vPX*<>h"
_LINES: tuple[Any, ...] = (
    "-",
    "--",
    "-.",
    ":",
    (0, (6, 1, 1, 1, 1, 1)),
    (0, (9, 2)),
    (0, (3, 1)),
    (0, (1, 1)),
    (0, (4, 1, 1, 1)),
    (0, (2, 3)),
    (0, (7, 1, 2, 1)),
)
MARKERS: dict[str, str] = {key: _MARKERS[i] for group in GROUPS.values() for i, key in enumerate(group)}
LINES: dict[str, Any] = {key: _LINES[i] for group in GROUPS.values() for i, key in enumerate(group)}
MARKERS["floor"] = ""  # a limit is a line without points
LINES["floor"] = "--"
LINES["resident"] = (0, (9, 2))
LINES["blocked"] = "-."

HATCHES: dict[str, str] = dict.fromkeys(COLOURS, "") | {
    **{"naive": "xx", "shifted": "..", "two_pass": "", "welford": "//", "chan": "\\\\", "one_pass": "--"},
    **{"dx": "//", "dy": "//", "dw": "//", "db": "//", "r": "..", "b": "--", "mean": "\\\\", "rstd": "xx"},
    **{"blocked": "//", "compile": "--", "tutorial": "..", "liger": "\\\\", "quack": "xx", "torch": "", "floor": "||"},
    **{"masked": "////", "done": "", "fault": "xx"},
}


def use() -> None:
    """Give every Matplotlib figure made from now on the course's style, also if Matplotlib is imported only later, in this process or a child."""
    os.environ["MATPLOTLIBRC"] = str(_RC)
    if "matplotlib" in sys.modules:
        sys.modules["matplotlib"].rc_file(_RC)


def line(key: str, **changes: Any) -> dict[str, Any]:
    """Return keyword arguments for ``Axes.plot``: the colour, line style and marker that ``key`` has everywhere.

    Raises: KeyError if ``key`` is not one of COLOURS.
    """
    return {"color": COLOURS[key], "linestyle": LINES[key], "marker": MARKERS[key]} | changes


def fill(key: str, **changes: Any) -> dict[str, Any]:
    """Return keyword arguments for bars and patches: colour, hatch and a dark edge.

    Raises: KeyError if ``key`` is not one of COLOURS.
    """
    return {"facecolor": COLOURS[key], "hatch": HATCHES[key], "edgecolor": INK, "linewidth": 0.8} | changes


def colour_hatch(colour: str) -> dict[str, Any]:
    """Return the keyword for the colour of a hatch. Matplotlib before 3.11, which a browser tab may have, draws it in the edge's colour."""
    from matplotlib.patches import Rectangle

    return {"hatchcolor": colour} if hasattr(Rectangle, "set_hatchcolor") else {}


def text_on(colour: str) -> str:
    """Return black or white, whichever is easier to read on ``colour`` ("#RRGGBB")."""
    return "#000000" if contrast("#000000", colour) >= contrast("#FFFFFF", colour) else "#FFFFFF"


def contrast(one: str, other: str) -> float:
    """Return the WCAG 2.2 contrast ratio of two colours "#RRGGBB", between 1 and 21."""
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: str) -> float:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def drawing(width: float, height: float) -> tuple[Figure, Axes]:
    """Make a figure with one bare axes whose unit is the inch and whose origin is the top left corner.

    It does not use pyplot, so it is safe in the thread that runs a widget's callbacks.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import PlaceHolderLayoutEngine

    # A placeholder, because layout="none" would be replaced by the style's constrained layout when the figure is saved.
    fixed = PlaceHolderLayoutEngine(adjust_compatible=True, colorbar_gridspec=True)
    figure = Figure(figsize=(width, height), dpi=DPI, facecolor=PANEL, layout=fixed)
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, width), ylim=(height, 0))
    axes.axis("off")
    return figure, axes


def cell(
    axes: Axes,
    at: tuple[float, float],
    size: tuple[float, float],
    label: str = "",
    state: str = "waiting",
    *,
    heavy: bool = False,
    font: float = FONT,
    dy: float = 0.5,
    bold: bool = False,
) -> None:
    """Draw a rectangle with its top left corner at ``at`` in the colour and hatch of ``state``, and write ``label`` on it.

    ``heavy`` draws a thick edge, for the part that is at work now. ``dy`` places the label: 0 at the top, 1 at the bottom.
    """
    from matplotlib.patches import Rectangle

    axes.add_patch(
        Rectangle(
            at,
            *size,
            facecolor=COLOURS[state],
            hatch=HATCHES[state],
            **colour_hatch("#8A4A1F" if state == "fault" else "#8C8C8C"),
            edgecolor=INK if heavy else QUIET,
            linewidth=2.0 if heavy else 0.8,
            zorder=3 if heavy else 2,
        )
    )
    if label:
        write(
            axes,
            at[0] + size[0] / 2,
            at[1] + size[1] * dy,
            label,
            on=COLOURS[state],
            font=font,
            ha="center",
            bold=bold,
            halo=bool(HATCHES[state]),
        )


def write(
    axes: Axes,
    x: float,
    y: float,
    text: str,
    *,
    on: str = PANEL,
    font: float = FONT,
    ha: str = "left",
    va: str = "center_baseline",
    bold: bool = False,
    colour: str | None = None,
    halo: bool = False,
) -> None:
    """Write text at (x, y) that is readable on the colour ``on``; ``halo`` keeps it readable on a hatch."""
    from matplotlib.patheffects import withStroke

    colour = colour or (INK if contrast(INK, on) >= 4.5 else text_on(on))
    axes.text(
        x,
        y,
        text,
        ha=ha,
        va=va,
        fontsize=font,
        color=colour,
        weight="bold" if bold else "normal",
        zorder=6,
        path_effects=[withStroke(linewidth=3.5, foreground=on)] if halo else None,
    )


def png(figure: Figure, alt: str) -> bytes:
    """Return the figure as PNG bytes with ``alt`` in its Description field. The same figure gives the same bytes."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    FigureCanvasAgg(figure)
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=DPI, facecolor=figure.get_facecolor(), metadata={"Description": alt, "Software": None})
    return out.getvalue()
