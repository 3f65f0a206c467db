"""Lesson 00: which program, which lane and which mask bit copies which element of x to y."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ipywidgets

from course_lib.base.errors import CourseError
from course_lib.lessons import style
from course_lib.lessons.copy_map.model import BLOCKS, MAX_N, MAX_PROGRAMS, CopyMap, describe, model, title
from course_lib.lessons.live import LiveFigure, Picture
from course_lib.lessons.words import format_count

_PER_LINE = 20  # elements of y in a line of the figure
_SHOWN_PAST = 20  # addresses past the end that the figure draws; the rest are counted


def draw(state: CopyMap) -> Picture:
    """A row of lanes per program, and y under it."""
    left, lane_top = 1.25, 0.85
    lane_w = min(0.6, (style.WIDTH - left - 0.25) / state.block)
    row_h = 0.36 if len(state.lanes) <= 12 else 0.3
    past = state.past_end[:_SHOWN_PAST]
    addresses = [*range(state.n), *past]
    lines = -(-len(addresses) // _PER_LINE)
    y_top = lane_top + len(state.lanes) * row_h + 0.6
    y_h, cell_w = 0.34, 0.3
    height = y_top + lines * (y_h + 0.08) + 0.62
    figure, axes = style.drawing(style.WIDTH, height)

    style.write(axes, 0.2, 0.26, title(state), font=12, bold=True)
    style.write(
        axes,
        0.2,
        0.6,
        f"lanes of each program: the offset that lane asks for, {state.block} lanes a program",
        colour=style.QUIET,
    )
    for row, program in enumerate(state.lanes):
        top = lane_top + row * row_h
        style.write(axes, left - 0.12, top + (row_h - 0.05) / 2, f"program {program.pid}", ha="right")
        for lane, (offset, allowed) in enumerate(zip(program.offsets, program.mask, strict=True)):
            kind = "active" if allowed else "masked" if state.masked else "fault"
            style.cell(
                axes, (left + lane * lane_w, top), (lane_w, row_h - 0.05), str(offset), kind, heavy=kind == "fault"
            )

    y_left = left
    style.write(
        axes,
        y_left,
        y_top - 0.2,
        f"y, {format_count(state.n, 'element')}" + (", and the memory behind it" if past else ""),
        colour=style.QUIET,
    )
    for index, address in enumerate(addresses):
        at = (y_left + index % _PER_LINE * cell_w, y_top + index // _PER_LINE * (y_h + 0.08))
        kind = "fault" if address >= state.n else "done" if address < len(state.written) else "waiting"
        style.cell(axes, at, (cell_w, y_h), str(address), kind, heavy=kind == "fault", font=style.FONT)
    style.write(axes, left - 0.12, y_top + y_h / 2, "element", ha="right")
    hidden = len(state.past_end) - len(past)
    if hidden:
        style.write(axes, 0.2, height - 0.62 + 0.1, f"and {hidden} more addresses behind these", colour=style.QUIET)

    used = [("active", "may copy")]
    if state.masked and len(state.lanes) * state.block > state.n:
        used.append(("masked", "masked off"))
    used.append(("done", "written"))
    if state.unwritten:
        used.append(("waiting", "never written"))
    if state.past_end:
        used.append(("fault", "past the end"))
    x = left
    for kind, words in used:
        style.cell(axes, (x, height - 0.36), (0.26, 0.2), "", kind, heavy=kind == "fault")
        style.write(axes, x + 0.34, height - 0.26, words)
        x += 0.34 + style.text_width(words) + 0.2
    caption = describe(state)
    alt = f"{title(state)}. One row of lanes for each program, and the elements of y below. {caption}"
    return Picture(style.png(figure, alt), alt, caption)


def copy_map(n: int = 10, block: int = 4) -> LiveFigure:
    """The map of program -> lanes -> mask of a copy kernel, with sliders.

    Args:
        n: elements to copy, 1 to 40.
        block: lanes a program, one of 2, 4, 8, 16.

    Raises: CourseError if n or block is outside those.
    """
    if not 1 <= n <= MAX_N or block not in BLOCKS:
        raise CourseError(
            f"copy_map shows n from 1 to {MAX_N} and block from {BLOCKS}; you asked for n={n}, block={block}."
        )
    wide = ipywidgets.Layout(width="290px")
    controls = {
        "n": ipywidgets.IntSlider(n, 1, MAX_N, description="n", layout=wide),
        "block": ipywidgets.Dropdown(
            options=BLOCKS, value=block, description="BLOCK", layout=ipywidgets.Layout(width="130px")
        ),
        "masked": ipywidgets.Checkbox(
            True, description="mask = offsets < n", indent=False, layout=ipywidgets.Layout(width="180px")
        ),
        "enough": ipywidgets.Checkbox(
            True, description="grid = cdiv(n, BLOCK)", indent=False, layout=ipywidgets.Layout(width="190px")
        ),
        "programs": ipywidgets.IntSlider(-(-n // block), 1, MAX_PROGRAMS, description="programs", layout=wide),
    }

    def arrange(controls: Mapping[str, Any]) -> None:
        enough = controls["enough"].value
        controls["programs"].disabled = enough
        if enough:
            controls["programs"].value = -(-controls["n"].value // controls["block"].value)

    def redraw(n: int, block: int, masked: bool, enough: bool, programs: int) -> Picture:
        return draw(model(n, block, programs, masked))

    return LiveFigure(redraw, controls, arrange=arrange)
