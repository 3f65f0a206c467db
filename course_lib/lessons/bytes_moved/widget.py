"""Lesson 07: the bytes that a chain of kernels moves through HBM, against one fused kernel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ipywidgets
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from course_lib.lessons import style
from course_lib.lessons.bytes_moved.model import (
    CASES,
    COLUMNS,
    ITEMSIZE,
    ROWS,
    Comparison,
    LaunchTraffic,
    Traffic,
    describe,
    microseconds,
    model,
    title,
)
from course_lib.lessons.live import LiveFigure, Picture, wide
from course_lib.lessons.words import format_bytes, format_count, format_duration


def draw(state: Comparison, bandwidth: float) -> Picture:
    """A bar for each launch, set where the launch before it ended, so that the length of the chain is the total."""
    groups = [("separate", state.unfused), ("fused", state.fused)]
    left, right, bar_h, line = 1.4, 0.85, 0.34, 0.42
    top = 0.75
    count = len(state.unfused) + len(state.fused)
    height = top + 2 * 0.34 + count * line + 0.75
    figure, axes = style.drawing(style.WIDTH, height)
    scale = (style.WIDTH - left - right) / state.unfused_bytes
    style.write(axes, 0.2, 0.26, title(state), font=12, bold=True)
    y = top
    for name, launches in groups:
        total = sum(launch.bytes for launch in launches)
        head = f"{name}: {format_count(len(launches), 'launch')}, {format_bytes(total)}, {format_duration(microseconds(total, bandwidth))} at {bandwidth:g} GB/s"
        style.write(axes, 0.2, y, head, bold=True)
        y += 0.2
        x = left
        for launch in launches:
            style.write(axes, left - 0.12, y + bar_h / 2, launch.name, ha="right")
            start, named = x, True
            for part in launch.traffic:
                named &= _segment(axes, x, y, part.bytes * scale, bar_h, part)
                x += part.bytes * scale
            words = format_bytes(launch.bytes) + ("" if named else f": {_flow(launch)}")
            fits = x + 0.08 + style.text_width(words) < style.WIDTH - 0.1
            at, side = (x + 0.08, "left") if fits else (start - 0.08, "right")
            style.write(axes, at, y + bar_h / 2, words, ha=side, colour=style.QUIET)
            y += line
        y += 0.14
    _axis(axes, state, left, y, scale)
    caption = describe(state, bandwidth)
    alt = f"{title(state)}. Bars for each launch, reads plain and writes hatched, laid end to end. {caption}"
    return Picture(style.png(figure, alt), alt, caption)


def _segment(axes: Axes, x: float, y: float, width: float, height: float, part: Traffic) -> bool:
    """One tensor's share of a bar; True if its name fits inside."""
    colour = style.COLOURS[part.colour]
    look: dict[str, Any] = {"hatch": "//", "hatchcolor": style.PANEL} if part.write else {}
    axes.add_patch(
        Rectangle((x, y), width, height, facecolor=colour, edgecolor=style.INK, linewidth=0.8, zorder=2, **look)
    )
    for label in (_verb(part), part.tensor):
        if style.text_width(label) + 0.06 <= width:
            style.write(axes, x + width / 2, y + height / 2, label, on=colour, ha="center", halo=part.write)
            return label == _verb(part)
    return False


def _flow(launch: LaunchTraffic) -> str:
    """What goes in and what comes out: "x, rstd → xhat"."""
    read, written = (
        ", ".join(part.tensor for part in launch.traffic if part.write is write) for write in (False, True)
    )
    return f"{read} → {written}"


def _verb(part: Traffic) -> str:
    return f"{'write' if part.write else 'read'} {part.tensor}"


def _axis(axes: Axes, state: Comparison, left: float, y: float, scale: float) -> None:
    unit, name = unit_of(state.unfused_bytes)
    step = _nice(state.unfused_bytes / unit / 5)
    end = left + state.unfused_bytes * scale
    axes.plot([left, end], [y, y], color=style.QUIET, linewidth=1.0, marker="")
    at = 0
    while at * step * unit <= state.unfused_bytes * 1.0001:
        x = left + at * step * unit * scale
        axes.plot([x, x], [y, y + 0.05], color=style.QUIET, linewidth=1.0, marker="")
        style.write(axes, x, y + 0.17, f"{at * step:g}", ha="center")
        at += 1
    style.write(
        axes, left, y + 0.4, f"{name} through HBM, one launch after the other; hatched: writes", colour=style.QUIET
    )


def bytes_moved(M: int = 4096, N: int = 4096, dtype: str = "fp16") -> LiveFigure:
    """Bytes through HBM, fused against unfused, with sliders for the sizes and the bandwidth.

    The bandwidth starts at 3000 GB/s, what a copy on an H100 reaches.

    Raises: CourseError if a size is below 1 or the dtype is unknown.
    """
    model("add", M, N, dtype)
    controls = {
        "case": ipywidgets.Dropdown(
            options=[(label, key) for key, label in CASES.items()], description="case", layout=wide(220)
        ),
        "m": ipywidgets.SelectionSlider(options=sorted({*ROWS, M}), value=M, description="M rows", layout=wide(270)),
        "n": ipywidgets.SelectionSlider(
            options=sorted({*COLUMNS, N}), value=N, description="N columns", layout=wide(280)
        ),
        "dtype": ipywidgets.Dropdown(options=list(ITEMSIZE), value=dtype, description="dtype", layout=wide(130)),
        "upcast": ipywidgets.Checkbox(True, description="op by op in fp32", indent=False, layout=wide(150)),
        "bandwidth": ipywidgets.IntSlider(3000, 100, 8000, 100, description="GB/s", layout=wide(280)),
    }

    def arrange(controls: Mapping[str, Any]) -> None:
        controls["upcast"].disabled = controls["case"].value != "eager" or controls["dtype"].value == "fp32"

    def redraw(case: str, m: int, n: int, dtype: str, upcast: bool, bandwidth: int) -> Picture:
        return draw(model(case, m, n, dtype, upcast), bandwidth)

    return LiveFigure(redraw, controls, arrange=arrange)


def unit_of(size: float) -> tuple[float, str]:
    return next((scale, name) for scale, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "bytes")) if size >= scale)


def _nice(step: float) -> float:
    """The next 1, 2 or 5 times a power of ten."""
    power = 10.0 ** len(str(int(step))) / 10 if step >= 1 else 1.0
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= step)
