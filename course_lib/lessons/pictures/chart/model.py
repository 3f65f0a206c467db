"""What a chart says, as plain data; ``picture.js`` lays it out and draws it.

A colour is the name of one of the course's colours: of ``lessons/style.py`` ("one_pass", "torch"),
or of the page's in ``kit/palette.py`` ("ink"). An axis that counts something names it with its
unit. Every list is drawn in its order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from course_lib.base.translation import gettext as _
from course_lib.lessons.kit.output import MovingPicture


@dataclass(frozen=True)
class Axis:
    """One axis of a plot.

    Attributes:
        name: what is counted, with its unit; "" for none.
        log: whether the scale is logarithmic.
        low, high: the ends; None takes those of the data, and 0 for the low end of a linear y axis.
        ticks: the values that get a tick, or pairs of value and words; None chooses them.
        unit: follows a value that is read, such as " µs" or "x".
    """

    name: str
    log: bool = False
    low: float | None = None
    high: float | None = None
    ticks: Sequence[float | tuple[float, str]] | None = None
    unit: str = ""


@dataclass(frozen=True)
class Series:
    """Points with a name, joined by a line or not. NaN leaves a gap, and a value beyond the axis is
    drawn at its end.

    Attributes:
        name: written beside the points; "" for none.
        dash: the line's dash pattern in pixels, such as "6 4"; "" draws it solid.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float]
    colour: str = "ink"
    line: bool = True
    dots: bool = True
    dash: str = ""


@dataclass(frozen=True)
class Level:
    """A dashed line across a plot at ``value`` of the y axis, or of the x axis, with its words."""

    value: float
    words: str = ""
    axis: str = "y"


@dataclass(frozen=True)
class Plot:
    """Series over two axes."""

    x: Axis
    y: Axis
    series: Sequence[Series]
    levels: Sequence[Level] = ()
    title: str = ""
    kind: str = "plot"


@dataclass(frozen=True)
class Bar:
    """A horizontal bar; several ``parts`` (value, colour) stand one behind the other. ``words``
    stand at its end; None writes the sum."""

    name: str
    parts: Sequence[tuple[float, str]]
    words: str | None = None


@dataclass(frozen=True)
class Bars:
    """Groups of horizontal bars, by the group's name, over one scale.

    Attributes:
        unit: the name of the scale, with its unit.
        log: a logarithmic scale. Its bars begin at ``level`` (1 without a level), or at a power of
            ten below all bars if one is shorter.
        level: where a dashed line crosses the bars; its words follow. None for no line.
        parts: the names of the parts and their colours, if bars have several.
        edges: whether a thin line parts neighbours; False for a timeline of parts that are narrower
            than such a line.
    """

    groups: Sequence[tuple[str, Sequence[Bar]]]
    unit: str
    log: bool = False
    high: float | None = None
    level: tuple[float, str] | None = None
    parts: Sequence[tuple[str, str]] = ()
    edges: bool = True
    title: str = ""
    kind: str = "bars"


@dataclass(frozen=True)
class Cells:
    """A grid of words.

    Attributes:
        rows, columns: their names; a column's name may have a second line.
        words: of each cell, row by row; None leaves a cell out.
        looks: of each cell: a state's name (waiting, active, done, fault, masked), or a number from
            -1 to 1 for a shade.
        row_name, column_name: what rows and columns are.
    """

    rows: Sequence[str]
    columns: Sequence[str]
    words: Sequence[Sequence[str | None]]
    looks: Sequence[Sequence[str | float]]
    row_name: str = ""
    column_name: str = ""
    title: str = ""
    kind: str = "cells"


@dataclass(frozen=True)
class Box:
    """A box of ``Boxes``: its left and top, width and height in units, its words in lines, and its
    look: a state's name, or "" for bare words.

    Words stand in the middle, or ``at_top`` in a box around others.
    """

    x: float
    y: float
    width: float
    height: float
    words: str = ""
    look: str = "waiting"
    at_top: bool = False


@dataclass(frozen=True)
class Boxes:
    """Boxes, and arrows between the boxes of two indices.

    Attributes:
        width: units that fill the panel. A unit of height is 30 pixels on every page.
    """

    boxes: Sequence[Box]
    arrows: Sequence[tuple[int, int]]
    width: float
    title: str = ""
    kind: str = "boxes"


@dataclass(frozen=True)
class View:
    """One state of a chart: its message, what is drawn, and a caption with the source. ``name`` is
    the choice that shows it."""

    title: str
    panels: Sequence[Plot | Bars | Cells | Boxes]
    caption: str = ""
    name: str = ""


def chart(*views: View, alt: str, control: str = "", start: int = 0) -> MovingPicture:
    """Return the view of index ``start``, with a control called ``control`` for the others. The
    view's title and ``alt`` describe it for those who do not see it."""
    data = {
        "views": [asdict(view) for view in views],
        "control": control,
        "start": {"view": start, "at": None},
        "alt": alt,
    }
    return MovingPicture(
        "chart", data, _("{title}. {alt}").format(title=views[start].title, alt=alt)
    )
