"""Lesson 04: how often each way to normalise a row sweeps over the matrix, counted from a trace of real kernels.

The kernels here are the algorithms and nothing else: packed rows, one row a program, no w and b. They run in Triton's
interpreter, whose accesses can be traced. Where this process compiles its kernels, a second process interprets them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import ipywidgets
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from course_lib.lessons import style
from course_lib.lessons.live import LiveFigure, Picture
from course_lib.lessons.pass_counter.model import (
    ALGORITHMS,
    COLUMNS,
    ITEMSIZE,
    ROWS,
    Pass,
    Shown,
    describe,
    list_fitting,
    model,
    title,
)
from course_lib.lessons.words import format_bytes

_PASS_COLOUR = {"d": "mean", "s": "mean"}  # what an op-by-op chain writes and reads back


def draw(state: Shown, bandwidth: float) -> Picture:
    """A bar for each algorithm, made of its passes; a line where the copy ends."""
    left, right, top, line, bar = 1.85, 0.95, 0.78, 0.5, 0.34
    height = top + len(state.counts) * line + 0.55
    figure, axes = style.drawing(style.WIDTH, height)
    most = max(made.passes() for made in state.counts)
    unit = (style.WIDTH - left - right) / most
    style.write(axes, 0.2, 0.26, title(state), font=12, bold=True)
    for number, made in enumerate(state.counts):
        y, chosen = top + number * line, made.algorithm == state.chosen
        label = ("> " if chosen else "") + ALGORITHMS[made.algorithm]
        style.write(axes, left - 0.12, y + bar / 2, label, ha="right", bold=chosen)
        x = left
        for sweep in made.sweeps:
            _segment(axes, x, y, sweep.amount * unit, bar, sweep, chosen)
            x += sweep.amount * unit
        style.write(
            axes,
            x + 0.08,
            y + bar / 2,
            format_bytes(state.bytes(made)),
            bold=chosen,
            colour=None if chosen else style.QUIET,
        )
    limit, bottom = left + state.copy.passes() * unit, top + len(state.counts) * line
    axes.plot(
        [limit, limit],
        [top - 0.12, bottom - 0.05],
        color=style.COLOURS["floor"],
        linestyle="--",
        linewidth=1.4,
        marker="",
        zorder=5,
    )
    style.write(axes, limit, top - 0.24, "a copy", ha="center")
    words = f"passes over M x N elements; hatched: writes; {state.M} x {state.N}, {state.dtype}"
    style.write(axes, left, bottom + 0.16, words, colour=style.QUIET)
    caption = describe(state, bandwidth)
    passes = ", ".join(f"{ALGORITHMS[made.algorithm]} {made.passes():g}" for made in state.counts)
    alt = f"{title(state)}. A bar for each algorithm, one piece a pass: {passes}. {caption}"
    return Picture(style.png(figure, alt), alt, caption)


def _segment(axes: Axes, x: float, y: float, width: float, height: float, sweep: Pass, chosen: bool) -> None:
    colour = style.COLOURS[_PASS_COLOUR.get(sweep.tensor, sweep.tensor)]
    hatch: dict[str, Any] = {"hatch": "//", "hatchcolor": style.PANEL} if sweep.kind == "store" else {}
    edge: dict[str, Any] = {"linewidth": 2.0, "zorder": 3} if chosen else {"linewidth": 0.8, "zorder": 2}
    axes.add_patch(Rectangle((x, y), width, height, facecolor=colour, edgecolor=style.INK, **edge, **hatch))
    verb = "write" if sweep.kind == "store" else "read"
    style.write(axes, x + width / 2, y + height / 2, f"{verb} {sweep.tensor}", on=colour, ha="center", halo=bool(hatch))


def pass_counter(algorithm: str = "two_pass", M: int = 4096, N: int = 8192, dtype: str = "fp16") -> LiveFigure:
    """Choose an algorithm and a size, and see its passes over memory beside the copy's.

    Args:
        algorithm: copy, naive (op by op), one_pass, two_pass, welford or resident.
        dtype: fp16 or fp32.

    Raises: CourseError if an argument is none of those, or the kernels cannot be traced.
    """
    model(algorithm, M, N, dtype)
    columns: Sequence[int] = sorted({*COLUMNS, N})
    controls: Mapping[str, Any] = {
        "algorithm": ipywidgets.Dropdown(
            options=[(label, key) for key, label in ALGORITHMS.items() if key in list_fitting(max(columns))],
            value=algorithm, description="algorithm", layout=_make_layout(250),
        ),
        "M": ipywidgets.SelectionSlider(options=sorted({*ROWS, M}), value=M, description="M rows", layout=_make_layout(260)),
        "N": ipywidgets.SelectionSlider(options=columns, value=N, description="N columns", layout=_make_layout(270)),
        "dtype": ipywidgets.Dropdown(options=list(ITEMSIZE), value=dtype, description="dtype", layout=_make_layout(130)),
        "bandwidth": ipywidgets.IntSlider(2800, 100, 8000, 100, description="GB/s", layout=_make_layout(280)),
    }  # fmt: skip

    def redraw(algorithm: str, M: int, N: int, dtype: str, bandwidth: int) -> Picture:
        return draw(model(algorithm, M, N, dtype), bandwidth)

    return LiveFigure(redraw, controls)


def _make_layout(pixels: int) -> ipywidgets.Layout:
    return ipywidgets.Layout(width=f"{pixels}px")
