"""Draws a frame of the schedule explorer: a lane a program, the shared memory below."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from course_lib.lessons import style
from course_lib.lessons.schedule.model import (
    MARKS,
    MOST_COLUMNS,
    MOST_ELEMENTS,
    MOST_ROWS,
    Lane,
    Memory,
    ScheduleFrame,
    number,
    title,
)

_LEFT, _STEP, _LANE = 1.0, 0.195, 0.34
_SHOWN = 24  # operations: a window that ends at the current one
_STATES = {"L": "waiting", "S": "active", "T": "done", "w": "masked", "F": "done", "A": "active", "B": "waiting"}
_CELL_W, _CELL_H = 0.78, 0.3


def figure(frame: ScheduleFrame) -> Figure:
    """The frame as a figure of the notebook's width; its height depends on lanes and memory, so it is the same in every frame of a run."""
    rows = sum(_rows(memory) for memory in frame.memory)
    lanes_bottom = 0.95 + len(frame.lanes) * _LANE
    height = (
        lanes_bottom
        + 0.75
        + rows * (_CELL_H + 0.06)
        + 0.12 * len(frame.memory)
        + (0.28 if any(m.integers for m in frame.memory) else 0.0)
    )
    drawn, axes = style.drawing(style.WIDTH, height)
    style.write(axes, 0.2, 0.25, title(frame), bold=True, font=style.FONT + 2)
    words = f"seed {frame.seed}, operation {frame.number} of {frame.total}"
    style.write(axes, 0.2, 0.52, words if not frame.source else f"{words}:  {_short(frame.source)}", colour=style.QUIET)
    first = max(0, frame.number - _SHOWN)
    raced = {at for one, other, _ in frame.races for at in (one, other)}
    for i, lane in enumerate(frame.lanes):
        _lane(axes, frame, lane, 0.75 + i * _LANE, first, raced)
    legend = "   ".join(f"{letter} {word}" for letter, word in MARKS.items())
    style.write(axes, 0.2, lanes_bottom, legend, colour=style.QUIET)
    if raced:
        style.write(
            axes,
            0.2,
            lanes_bottom + 0.24,
            "hatched, with a thick edge: the two operations of a race",
            colour=style.QUIET,
        )
    top = lanes_bottom + 0.5
    for memory in frame.memory:
        top = _memory(axes, memory, top)
    return drawn


def _lane(axes: Axes, frame: ScheduleFrame, lane: Lane, top: float, first: int, raced: set[int]) -> None:
    style.write(axes, _LEFT - 0.1, top + _LANE / 2, f"program {lane.program}", ha="right", bold=_acts(frame, lane))
    axes.plot(
        [_LEFT, _LEFT + _SHOWN * _STEP],
        [top + _LANE / 2] * 2,
        color=style.GRID,
        linewidth=1.0,
        linestyle="-",
        marker="",
        zorder=1,
    )
    for at, letter in lane.marks:
        if at <= first:
            continue
        here = (_LEFT + (at - first - 1) * _STEP, top + 0.04)
        now = at == frame.number
        state = "fault" if at in raced else _STATES[letter]
        style.cell(axes, here, (_STEP - 0.01, _LANE - 0.08), letter, state, heavy=now or at in raced, bold=now)
    words = lane.status
    if lane.status == "waits":
        words = f"waits on {lane.waits_on}"
        if lane.waits_for is not None:
            words += f" \u2190 {lane.waits_for}"
    style.write(axes, _LEFT + _SHOWN * _STEP + 0.1, top + _LANE / 2, words, bold=lane.status == "waits")


def _acts(frame: ScheduleFrame, lane: Lane) -> bool:
    return frame.operation is not None and frame.operation.program == lane.program


def _rows(memory: Memory) -> int:
    return 1 if memory.integers else min(len(memory.values) // memory.columns, MOST_ROWS)


def _memory(axes: Axes, memory: Memory, top: float) -> float:
    """Returns where the next tensor begins."""
    columns = min(memory.columns, MOST_ELEMENTS if memory.integers else MOST_COLUMNS)
    width = min(_CELL_W, (style.WIDTH - 1.75) / columns)
    for r in range(_rows(memory)):
        at_y = top + r * (_CELL_H + 0.06)
        name = memory.name if memory.integers else f"{memory.name}[{r}]"
        style.write(axes, 1.45, at_y + _CELL_H / 2, name, ha="right")
        for c in range(columns):
            element = r * memory.columns + c
            value = memory.values[element]
            held = memory.integers and element in memory.holders
            state = "done" if held else "waiting"
            state = "active" if element in memory.touched else state
            style.cell(
                axes,
                (1.55 + c * width, at_y),
                (width - 0.04, _CELL_H),
                number(value),
                state,
                heavy=element in memory.touched,
            )
        if columns < memory.columns:
            style.write(axes, 1.6 + columns * width, at_y + _CELL_H / 2, "...")
    bottom = top + _rows(memory) * (_CELL_H + 0.06) + 0.12
    if memory.integers:
        held = "; ".join(
            f"[{element}] was set by program {program}" for element, program in sorted(memory.holders.items())
        )
        style.write(axes, 1.55, bottom - 0.02, held or "all 0", colour=style.QUIET)
        bottom += 0.24
    return bottom


def _short(source: str, width: int = 62) -> str:
    return source if len(source) <= width else source[: width - 3] + "..."
