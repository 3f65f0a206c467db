"""Lesson 03: how much of a variance each algorithm loses as the mean moves away, and what LayerNorm makes of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import ipywidgets
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from course_lib.lessons import style
from course_lib.lessons.cancellation.model import (
    COLUMNS,
    DTYPES,
    NAMES,
    ORDERS,
    RATIOS,
    SHOWN,
    Exploration,
    describe,
    model,
    title,
)
from course_lib.lessons.live import LiveFigure, Picture, wide

_FLOOR, _CEILING = 1e-9, 1e5


def draw(state: Exploration) -> Picture:
    """Left the error and its bound against mean/std, right y against the true y of the chosen row."""
    figure = Figure(figsize=(style.WIDTH, 3.9))
    left, right = figure.subplots(1, 2, width_ratios=(1.45, 1))
    _draw_curve(left, state)
    _draw_output(right, state)
    figure.suptitle(title(state), x=0.01, ha="left", fontsize=style.FONT + 1.5, weight="bold")
    caption = describe(state)
    alt = (
        f"{title(state)}. Left: relative error of the variance against mean/std on logarithmic axes, measured with markers, bound dashed. "
        f"Right: {SHOWN if state.n > SHOWN else state.n} elements of y against what they should be. {caption}"
    )
    return Picture(style.png(figure, alt), alt, caption)


def _draw_curve(axes: Axes, state: Exploration) -> None:
    at = [max(p.ratio, 0.3) for p in state.points]
    axes.plot(at, [_inside(p.error) for p in state.points], **style.line(state.algorithm, linestyle="-"))
    bounds = [(a, p.bound) for a, p in zip(at, state.points, strict=True) if math.isfinite(p.bound)]
    if bounds:
        axes.plot(*zip(*[(a, _inside(b)) for a, b in bounds], strict=True), color=style.INK, linestyle="--", marker="")
        named = bounds[min(3, len(bounds) - 1)]
        axes.annotate("bound", (named[0], _inside(named[1])), (-6, 7), textcoords="offset points", ha="right")
    axes.annotate("measured", (at[2], _inside(state.points[2].error)), (5, -14), textcoords="offset points")
    for p, a in zip(state.points, at, strict=True):
        if p.negative:
            axes.annotate("< 0", (a, _inside(p.error)), (3, -14), textcoords="offset points")
    if broken := [a for p, a in zip(state.points, at, strict=True) if not p.finite]:
        axes.annotate("Inf or NaN", (broken[0], _CEILING), (0, -16), textcoords="offset points")
    axes.axhline(1.0, color=style.QUIET, linestyle=":", marker="")
    axes.text(0.3, 1.3, "1: nothing left", color=style.QUIET, va="bottom")
    here = max(state.ratio, 0.3)
    axes.axvline(here, color=style.COLOURS["active"], linewidth=5, alpha=0.45, zorder=0)
    axes.set(xscale="log", yscale="log", ylim=(_FLOOR / 2, _CEILING * 3), xlim=(0.22, 45000))
    axes.set_xticks([0.3, 1, 10, 100, 1000, 10000], ["0", "1", "10", "100", "1000", "10\u2074"])
    axes.set(xlabel="mean/std", ylabel="relative error of the variance")


def _draw_output(axes: Axes, state: Exploration) -> None:
    row = state.row
    axes.plot([-4, 4], [-4, 4], color=style.QUIET, linestyle=":", marker="")
    axes.set(xlabel="y as it should be", ylabel="y computed", xlim=(-4, 4))
    if not all(map(math.isfinite, row.y)):
        axes.set_ylim(-4, 4)
        axes.text(0, 0, "NaN", ha="center", va="center", fontsize=22, weight="bold")
        return
    reach = max(4.0, 1.1 * max(abs(value) for value in row.y))
    axes.plot(row.y_true, row.y, linestyle="", marker="o", markersize=4, color=style.COLOURS["y"])
    axes.set_ylim(-reach, reach)


def cancellation(
    mean_over_std: float = 1000.0, N: int = 4096, dtype: str = "fp32", algorithm: str = "one_pass"
) -> LiveFigure:
    """What each algorithm loses as the mean moves away from zero, against its bound, and the LayerNorm output of one row.

    Raises: CourseError if an argument is unknown or outside what the arithmetic can hold.
    """
    model(algorithm, mean_over_std, N, dtype)
    controls = {
        "algorithm": ipywidgets.Dropdown(
            options=[(label, key) for key, label in NAMES.items()], value=algorithm, description="algorithm", layout=wide(230)
        ),
        "order": ipywidgets.Dropdown(options=ORDERS, value="pairwise", description="sums", layout=wide(160)),
        "dtype": ipywidgets.Dropdown(options=list(DTYPES), value=dtype, description="dtype", layout=wide(130)),
        "ratio": ipywidgets.SelectionSlider(
            options=[(f"{r:g}", r) for r in sorted({*RATIOS, float(mean_over_std)})], value=float(mean_over_std), description="mean/std",
            layout=wide(310),
        ),
        "n": ipywidgets.SelectionSlider(options=sorted({*COLUMNS, N}), value=N, description="N columns", layout=wide(270)),
        "clamp": ipywidgets.Checkbox(False, description="clamp at 0", indent=False, layout=wide(110)),
    }  # fmt: skip

    def arrange(controls: Mapping[str, Any]) -> None:
        controls["order"].disabled = controls["algorithm"].value in ("welford", "chan")
        controls["clamp"].disabled = controls["algorithm"].value not in ("one_pass", "shifted")

    def redraw(algorithm: str, order: str, dtype: str, ratio: float, n: int, clamp: bool) -> Picture:
        return draw(model(algorithm, ratio, n, dtype, order, clamp))

    return LiveFigure(redraw, controls, arrange=arrange)


def _inside(value: float) -> float:
    return min(max(value, _FLOOR), _CEILING)
