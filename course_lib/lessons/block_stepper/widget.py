"""Lessons 01, 06 and 07: a blocked norm kernel, one block at a time, with its lanes, accumulators and row statistics."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import ipywidgets
import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from numpy.typing import ArrayLike

from course_lib.base.errors import CourseError
from course_lib.lessons import style
from course_lib.lessons.block_stepper.model import (
    BLOCKS,
    EPS,
    EXAMPLE,
    KINDS,
    MAX_COLUMNS,
    MAX_ROWS,
    SWEEPS,
    TYPED,
    BlockFrame,
    check_room,
    check_rows,
    describe,
    parsed,
    steps,
    title,
)
from course_lib.lessons.live import LiveStepper, Picture, wide
from course_lib.lessons.words import format_decimal

_NOISE = 1e-13  # what rounding leaves of a 0; anything larger is a number of the reader's


def draw(frames: Sequence[BlockFrame], index: int) -> Picture:
    """Matrix with the current block outlined, the lanes and accumulators under it, and what is known of each row."""
    frame = frames[index]
    m, n = len(frame.x), len(frame.x[0])
    padded = -(-n // frame.block) * frame.block
    left, cell_w = 1.05, min(0.5, (style.WIDTH - 1.25) / max(padded, frame.block))
    matrix_top, row_h = 0.95, 0.5
    lanes_top = matrix_top + m * row_h + 0.55
    lane_h = 0.34
    lane_rows = 3 if frame.accumulator else 1
    table_top = lanes_top + 3 * lane_h + 0.35  # the same place in every sweep, so that nothing jumps
    height = table_top + 0.3 * (m + 1) + 0.2
    figure, axes = style.drawing(style.WIDTH, height)
    style.write(axes, 0.2, 0.26, title(frame), font=12, bold=True)
    _draw_matrix(axes, frame, left, matrix_top, cell_w, row_h)
    _draw_lanes(axes, frame, left, lanes_top, cell_w, lane_h, lane_rows)
    _draw_table(axes, frame, table_top)
    caption = f"Frame {index + 1} of {len(frames)}. {describe(frame)}"
    alt = f"{title(frame)}. A {m} x {n} matrix, the current block outlined, its lanes, and the numbers of each row. {caption}"
    return Picture(style.png(figure, alt), alt, caption)


def _draw_matrix(axes: Axes, frame: BlockFrame, left: float, top: float, cell_w: float, row_h: float) -> None:
    n = len(frame.x[0])
    padded = -(-n // frame.block) * frame.block
    style.write(axes, 0.2, 0.58, "x above, y below it once it is written", colour=style.QUIET)
    for column in range(padded):
        style.write(axes, left + (column + 0.5) * cell_w, top - 0.12, str(column), ha="center", colour=style.QUIET)
    style.write(axes, left - 0.85, top - 0.12, "column", colour=style.QUIET)
    for r, values in enumerate(frame.x):
        at_y = top + r * row_h
        style.write(axes, left - 0.12, at_y + (row_h - 0.06) / 2, f"row {r}", ha="right", bold=r == frame.row)
        for column in range(padded):
            at = (left + column * cell_w, at_y)
            here = r == frame.row and column in frame.columns
            if column >= n:
                style.cell(axes, at, (cell_w, row_h - 0.06), "", "masked")
                continue
            y = frame.rows[r].y[column]
            kind = "active" if here else "waiting" if y is None else "done"
            style.cell(
                axes,
                at,
                (cell_w, row_h - 0.06),
                _fitting(values[column], cell_w - 0.04),
                kind,
                dy=0.27 if y is not None else 0.5,
            )
            if y is not None:
                colour = style.COLOURS[kind]
                style.write(
                    axes, at[0] + cell_w / 2, at_y + 0.32, _fitting(y, cell_w - 0.05), on=colour, ha="center", bold=True
                )
    start = left + frame.columns[0] * cell_w
    outline = {"fill": False, "linewidth": 2.6, "edgecolor": style.INK, "zorder": 5}
    axes.add_patch(Rectangle((start, top + frame.row * row_h), frame.block * cell_w, row_h - 0.06, **outline))


def _draw_lanes(
    axes: Axes, frame: BlockFrame, left: float, top: float, cell_w: float, lane_h: float, lane_rows: int
) -> None:
    held = {"sum": "x", "squares": "x", "deviation": "x - mean", "normalise": "y"}[frame.phase]
    added = {"sum": "adds x", "squares": "adds x^2", "deviation": "squared", "normalise": ""}[frame.phase]
    wrong = frame.phase == "deviation" and not frame.mask_deviation
    style.write(
        axes,
        0.2,
        top - 0.2,
        f"the {frame.block} lanes of this block: sweep to {SWEEPS[frame.kind][frame.phase]}",
        colour=style.QUIET,
    )
    rows = [(held, frame.lanes), (added, frame.added), ("sum so far", frame.accumulator)][:lane_rows]
    for r, (name, values) in enumerate(rows):
        style.write(axes, left - 0.08, top + (r + 0.46) * lane_h, name, ha="right")
        for lane, value in enumerate(values):
            off = frame.masked[lane]
            kind = ("fault" if wrong and value else "masked") if off and r < 2 else "active" if r < 2 else "waiting"
            label = "off" if off and frame.phase == "normalise" else _fitting(value, cell_w - 0.04)
            at = (left + lane * cell_w, top + r * lane_h)
            style.cell(axes, at, (cell_w, lane_h - 0.04), label, kind, heavy=kind == "fault")
    if frame.running is not None:
        x = left + frame.block * cell_w + 0.1
        below = x > style.WIDTH - 1.2
        at = (left, top + 3 * lane_h + 0.1) if below else (x, top + 2.46 * lane_h)
        style.write(axes, *at, f"together {format_decimal(frame.running)}", bold=True)


def _draw_table(axes: Axes, frame: BlockFrame, top: float) -> None:
    layer = frame.kind == "layer_norm"
    names = [
        "row",
        *(["sum", "mean"] if layer else []),
        "sum of sq." if not layer else "sq. dev.",
        "variance" if layer else "mean sq.",
    ]
    names += ["rms" if not layer else "std", "rstd", "state"]
    right = layer and not frame.mask_deviation
    if right:
        names.insert(-1, "right var.")
    step = (style.WIDTH - 0.4 - 0.95) / (len(names) - 1)
    edges = [0.2 + 0.3] + [0.2 + 0.3 + (i + 1) * step for i in range(len(names) - 2)] + [style.WIDTH - 0.25]
    line = 0.3
    for x, name in zip(edges, names, strict=True):
        style.write(axes, x, top + 0.1, name, ha="right", colour=style.QUIET)
    axes.plot([0.2, style.WIDTH - 0.2], [top + 0.2, top + 0.2], color=style.GRID, linewidth=1.0, marker="")
    for r, row in enumerate(frame.rows):
        values: list[Any] = [str(r), *([row.total, row.mean] if layer else []), row.squares, row.spread]
        values += [
            None if row.spread is None else math.sqrt(row.spread),
            row.rstd,
        ]  # the true rms: where eps matters, not 1 / rstd
        if right:
            values.append(_variance(frame.x[r]) if row.spread is not None else None)
        at_y = top + 0.2 + (r + 0.5) * line
        if r == frame.row:
            band = {"facecolor": style.COLOURS["active"], "alpha": 0.25, "zorder": 0, "linewidth": 0}
            axes.add_patch(Rectangle((0.2, top + 0.2 + r * line + 0.02), style.WIDTH - 0.4, line - 0.04, **band))
        wrong = (
            right
            and row.spread is not None
            and not math.isclose(row.spread, _variance(frame.x[r]), rel_tol=1e-9, abs_tol=1e-12)
        )
        if wrong:
            style.cell(axes, (edges[names.index("variance")] - 0.65, at_y - 0.12), (0.7, 0.24), "", "fault", heavy=True)
        for x, name, value in zip(edges, names, values, strict=False):
            on = style.COLOURS["fault"] if wrong and name == "variance" else style.PANEL
            style.write(
                axes,
                x,
                at_y,
                value if isinstance(value, str) else format_decimal(value, 3),
                on=on,
                ha="right",
                bold=r == frame.row,
                halo=on != style.PANEL,
            )
        style.write(axes, edges[-1], at_y, row.status, ha="right", bold=r == frame.row)


def block_stepper(kind: str = "rms_norm", x: ArrayLike | None = None, block: int = 4) -> LiveStepper:
    """Step a blocked norm kernel through its sweeps: lanes, masks, accumulators and the statistics of each row.

    Args:
        kind: "layer_norm" or "rms_norm".
        x: shape (M, N) with at most 6 rows and 16 columns; None takes the 3 x 8 worked example.
        block: 2, 4, 8 or 16.

    In the widget the reader can also type rows, take random ones, and change eps.

    Raises: CourseError if an argument is outside those.
    """
    if block not in BLOCKS:
        raise CourseError(f"the block stepper shows BLOCK from {BLOCKS}; you asked for {block}.")
    given = np.asarray(EXAMPLE if x is None else x, dtype=np.float64)
    check_rows(given, block, kind, 1e-5, None, None)
    check_room(given.shape)
    first = "worked example" if x is None else "yours"
    controls = {
        "kind": ipywidgets.Dropdown(
            options=[(label, key) for key, label in KINDS.items()], value=kind, description="norm", layout=wide(170)
        ),
        "data": ipywidgets.Dropdown(
            options=[first, TYPED, "random, mean 0", "random, mean 3"], description="x", layout=wide(180)
        ),
        "typed": ipywidgets.Text(
            "; ".join(" ".join(f"{value:g}" for value in row) for row in given[:2]),
            description="rows",
            placeholder="numbers, with ; between rows",
            continuous_update=False,
            layout=wide(420),
        ),
        "rows": ipywidgets.IntSlider(given.shape[0], 1, MAX_ROWS, description="rows M", layout=wide(230)),
        "columns": ipywidgets.IntSlider(given.shape[1], 1, MAX_COLUMNS, description="columns N", layout=wide(250)),
        "block": ipywidgets.Dropdown(options=BLOCKS, value=block, description="BLOCK", layout=wide(130)),
        "eps": ipywidgets.Dropdown(
            options=[(f"{eps:g}", eps) for eps in EPS], value=1e-5, description="eps", layout=wide(120)
        ),
        "mask_deviation": ipywidgets.Checkbox(True, description="mask the deviation", indent=False, layout=wide(170)),
    }

    def arrange(controls: Mapping[str, Any]) -> None:
        data = controls["data"].value
        controls["mask_deviation"].disabled = controls["kind"].value != "layer_norm"
        controls["typed"].layout.display = None if data == TYPED else "none"
        fixed = {first: given.shape, TYPED: None}.get(data, ())
        for control in (controls["rows"], controls["columns"]):
            control.disabled = fixed != ()
        if data == TYPED:
            fixed = parsed(controls["typed"].value).shape
        for name, size in zip(("rows", "columns"), fixed, strict=False):
            controls[name].value = size

    def frames(
        kind: str, data: str, typed: str, rows: int, columns: int, block: int, eps: float, mask_deviation: bool
    ) -> list[BlockFrame]:
        if data in (first, TYPED):
            values = given if data == first else parsed(typed)
        else:
            values = _random(rows, columns, mean=3.0 if data.endswith("3") else 0.0)
        return steps(values, block, kind, eps, mask_deviation=mask_deviation)

    return LiveStepper(frames, draw, controls, arrange=arrange, still=_find_telling_frame)


def _find_telling_frame(frames: Sequence[BlockFrame]) -> int:
    """The frame in which row 0 gets its variance or mean square."""
    return next(i for i, frame in enumerate(frames) if frame.phase in ("squares", "deviation") and frame.last_block)


def _random(rows: int, columns: int, mean: float) -> np.ndarray:
    draws = np.random.default_rng(0).normal(mean, 1.5, size=(MAX_ROWS, MAX_COLUMNS))
    return np.round(draws[:rows, :columns] * 2) / 2  # halves: sums you can check in your head


def _variance(values: tuple[float, ...]) -> float:
    return float(np.var(values))


def _fitting(value: float, width: float) -> str:
    """``value`` with as many decimals, two at most, as a cell of ``width`` inches holds."""
    texts = [format_decimal(value, places) for places in (2, 1, 0)]
    return next((text for text in texts if style.text_width(text) <= width), texts[-1])
