"""Lesson 05: how far each statistics kernel is from the truth, against mean/std, on the course's kernels and on the reader's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ipywidgets
import numpy as np
from matplotlib.figure import Figure

from course_lib.lessons import style
from course_lib.lessons.accuracy.model import (
    ALGORITHMS,
    BLOCKS,
    CEILING,
    COLUMNS,
    FLOOR,
    OWN,
    QUANTITIES,
    RATIOS,
    ROWS,
    AccuracyState,
    describe,
    format_ratio,
    is_drawn,
    model,
    title,
)
from course_lib.lessons.live import LiveFigure, Picture, wide


def draw(state: AccuracyState) -> Picture:
    """Error against mean/std on logarithmic axes, one line a kernel, the chosen algorithm's bound dotted, the chosen ratio marked."""
    figure = Figure(figsize=(style.WIDTH, 4.6))
    axes = figure.add_subplot()
    for curve in state.curves:
        looks = style.line(curve.key) if curve.key in ALGORITHMS else _OWN_LOOKS[curve.key]
        axes.plot(RATIOS, [is_drawn(error) for error in curve.errors], label=curve.label, **looks)
        broken = [(ratio, CEILING) for ratio, error in zip(RATIOS, curve.errors, strict=True) if np.isnan(error)]
        if broken:
            axes.plot(
                *zip(*broken, strict=True),
                linestyle="",
                marker="x",
                markeredgecolor=looks["color"],
                markersize=11,
                markeredgewidth=2.5,
            )
    limits = [min(max(limit, FLOOR), CEILING) for limit in state.bound]
    axes.plot(RATIOS, limits, color=style.COLOURS[state.chosen], linestyle=(0, (1, 2)), linewidth=1.4, marker="")
    axes.fill_between(RATIOS, limits, 10 * CEILING, color=style.COLOURS[state.chosen], alpha=0.08, linewidth=0)
    axes.annotate(
        f"bound of {ALGORITHMS[state.chosen]}", (RATIOS[4], limits[4]), (-6, 7), textcoords="offset points", ha="right"
    )
    axes.axvline(RATIOS[state.ratio], color=style.QUIET, linewidth=1.0, marker="")
    axes.axhline(1.0, color=style.QUIET, linewidth=0.8, linestyle="--", marker="")
    axes.annotate("no digit is right", (RATIOS[0], 1.0), (0, 4), textcoords="offset points", color=style.QUIET)
    if any(np.isnan(error) for curve in state.curves for error in curve.errors):
        axes.annotate("x: NaN", (RATIOS[0], CEILING), (0, -12), textcoords="offset points")
    what = "largest error of y" if state.quantity == "y" else f"relative error of the {QUANTITIES[state.quantity]}"
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="mean/std of the row",
        ylabel=what,
        ylim=(FLOOR / 2, 3 * CEILING),
        xlim=(0.8, 1.3 * RATIOS[-1]),
    )
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=3, frameon=False)
    axes.set_title(title(state))
    caption = describe(state)
    alt = f"{title(state)}. Error against mean/std of the row, both axes logarithmic, one line a kernel, with a bound. {caption}"
    return Picture(style.png(figure, alt), alt, caption)


_OWN_LOOKS = {
    "05a": {"color": style.INK, "linestyle": "-", "marker": "*", "markersize": 11, "linewidth": 1.0},
    "05b": {"color": style.INK, "linestyle": "--", "marker": "P", "markersize": 8, "linewidth": 1.0},
}


def accuracy(quantity: str = "var", n: int = 512, block: int = 256) -> LiveFigure:
    """Error against mean/std for the four streamed kernels, with the bound of one of them, and the reader's kernels if asked for.

    Args:
        quantity: "var", "rstd" or "y" (the LayerNorm output).
        n: columns, 64, 512 or 4096.
        block: columns a step, 256 or 1024.

    Raises: CourseError if an argument is outside those.
    """
    model(quantity, n, block)
    controls = {
        "quantity": _choice("error of", {label: key for key, label in QUANTITIES.items()}, quantity, 240),
        "n": _choice("columns N", {str(n): n for n in COLUMNS}, n, 160),
        "block": _choice("BLOCK", {str(block): block for block in BLOCKS}, block, 140),
        "rows": _choice("rows", {label: key for key, label in ROWS.items()}, "ordinary", 220),
        "chosen": _choice("bound of", {label: key for key, label in ALGORITHMS.items()}, "one_pass", 210),
        "ratio": ipywidgets.SelectionSlider(
            options=[(format_ratio(ratio), index) for index, ratio in enumerate(RATIOS)], value=6, description="mean/std", layout=wide(330)
        ),
        "own_05a": ipywidgets.Checkbox(False, description=OWN["05a"], indent=False, layout=wide(110)),
        "own_05b": ipywidgets.Checkbox(False, description=OWN["05b"], indent=False, layout=wide(110)),
    }  # fmt: skip
    return LiveFigure(_draw_settings, controls)


def _draw_settings(own_05a: bool, own_05b: bool, **settings: Any) -> Picture:
    own = [exercise_id for exercise_id, wanted in (("05a", own_05a), ("05b", own_05b)) if wanted]
    return draw(model(own=own, **settings))


def _choice(description: str, options: Mapping[str, object], value: object, pixels: int) -> ipywidgets.Dropdown:
    return ipywidgets.Dropdown(options=list(options.items()), value=value, description=description, layout=wide(pixels))
