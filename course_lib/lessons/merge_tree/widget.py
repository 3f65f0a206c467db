"""Lesson 03: Welford within blocks, Chan's merge between them, one step a frame, with count, mean and M2 of every node."""

from __future__ import annotations

from collections.abc import Sequence

import ipywidgets
from matplotlib.axes import Axes

from course_lib.base.errors import CourseError
from course_lib.lessons import style
from course_lib.lessons.live import LiveStepper, Picture, wide
from course_lib.lessons.merge_tree.model import (
    BLOCKS,
    DATA,
    DTYPES,
    MAX_COLUMNS,
    MergeFrame,
    Node,
    describe,
    steps,
    title,
)
from course_lib.lessons.words import format_decimal


def draw(frames: Sequence[MergeFrame], index: int) -> Picture:
    """The numbers on top, the blocks below them, and the tree of merges down to the root."""
    frame = frames[index]
    top, box_h, gap = 1.35, 0.62, 0.32
    height = top + len(frame.levels) * (box_h + gap) + 0.05
    figure, axes = style.drawing(style.WIDTH, height)
    style.write(axes, 0.2, 0.26, title(frame), font=12, bold=True)
    slots = len(frame.levels[0]) * frame.block
    left, slot = 0.6, (style.WIDTH - 0.75) / max(slots, 1)
    style.write(axes, 0.12, 0.86, "x", bold=True)
    for column in range(slots):
        _draw_element(axes, frame, column, (left + column * slot, 0.66), slot)
    for level, nodes in enumerate(frame.levels):
        y = top + level * (box_h + gap)
        width = slot * (frame.block << level)
        for place, node in enumerate(nodes):
            centre = left + (place + 0.5) * width
            made = level == frame.level and place in frame.made
            _draw_node(axes, node, (centre, y), min(width - 0.08, 1.75), box_h, made)
            if level:
                for side in (-0.25, 0.25):
                    child = (centre + side * width, y - gap)
                    shown = {
                        "color": style.INK if made else style.GRID,
                        "linewidth": 2.2 if made else 1.2,
                        "marker": "",
                        "linestyle": "-",
                        "zorder": 1,
                    }
                    axes.plot([child[0], centre], [child[1], y], **shown)
    for level in range(len(frame.levels)):
        style.write(
            axes,
            0.12,
            top + level * (box_h + gap) + box_h / 2,
            "block" if level == 0 else f"+{level}",
            colour=style.QUIET,
        )
    caption = f"Frame {index + 1} of {len(frames)}. {describe(frame)}"
    alt = f"{title(frame)}. A tree: numbers on top, blocks below them, merges down to the root, each with n, mean and M2. {caption}"
    return Picture(style.png(figure, alt), alt, caption)


def _draw_element(axes: Axes, frame: MergeFrame, column: int, at: tuple[float, float], slot: float) -> None:
    size = (slot - 0.06, 0.4)
    if column >= len(frame.x):
        style.cell(axes, at, size, "", "masked")
        return
    place, within = divmod(column, frame.block)
    active = frame.step == "update" and place in frame.made and within == frame.column
    known = frame.step == "merge" or within < frame.column
    style.cell(
        axes,
        at,
        size,
        format_decimal(frame.x[column], 1),
        "active" if active else "done" if known else "waiting",
        heavy=active,
    )


def _draw_node(axes: Axes, node: Node | None, at: tuple[float, float], width: float, height: float, made: bool) -> None:
    corner = (at[0] - width / 2, at[1])
    if node is None:
        style.cell(axes, corner, (width, height), "", "waiting")
        return
    state = "masked" if node.count == 0 else "active" if made else "done"
    style.cell(axes, corner, (width, height), "", state, heavy=made)
    on, halo = style.COLOURS[state], state == "masked"
    if node.count == 0:
        style.write(axes, at[0], at[1] + height / 2, "n 0", on=on, ha="center", halo=halo)
        return
    mean = f"mean {format_decimal(node.mean, _fits(node.mean, width - 0.42))}"
    lines = (
        f"n {node.count}",
        mean if style.text_width(mean) <= width else mean.removeprefix("mean "),
        f"M2 {format_decimal(node.M2, _fits(node.M2, width - 0.25))}",
    )
    for line, text in enumerate(lines):
        style.write(axes, at[0], at[1] + 0.12 + 0.19 * line, text, on=on, ha="center", bold=made)


def merge_tree(data: str = "worked example", block: int = 1, N: int = 8, dtype: str = "fp32") -> LiveStepper:
    """Step through Welford's blocks and Chan's merges of one row.

    Args:
        data: one of DATA.
        block: numbers a block, 1, 2, 4 or 8.
        N: how many of the eight numbers there are.

    Raises: CourseError if an argument is outside those.
    """
    if data not in DATA or not 1 <= N <= MAX_COLUMNS:
        raise CourseError(
            f"the merge tree has the rows {', '.join(DATA)} and N from 1 to {MAX_COLUMNS}; you asked for {data!r}, N = {N}."
        )
    steps(DATA[data][:N], block, dtype)
    controls = {
        "data": ipywidgets.Dropdown(options=list(DATA), value=data, description="x", layout=wide(170)),
        "n": ipywidgets.IntSlider(N, 1, MAX_COLUMNS, description="columns N", layout=wide(250)),
        "block": ipywidgets.Dropdown(options=BLOCKS, value=block, description="block", layout=wide(120)),
        "dtype": ipywidgets.Dropdown(options=list(DTYPES), value=dtype, description="dtype", layout=wide(130)),
    }

    def frames(data: str, n: int, block: int, dtype: str) -> list[MergeFrame]:
        return steps(DATA[data][:n], block, dtype)

    return LiveStepper(frames, draw, controls, still=lambda frames: len(frames) - 1)


def _fits(value: float, width: float) -> int:
    """How many decimals of ``value``, three at most, fit into ``width`` inches."""
    return next((p for p in (3, 2, 1) if style.text_width(format_decimal(value, p)) <= width - 0.06), 0)
