"""The figures of lesson 03: the two terms of one-pass on the line of fp32 numbers, and errors of the variance with their bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from course_lib.lessons import style
from course_lib.norms import statistics

NAMES = {
    "naive": "naive, op by op",
    "one_pass": "one-pass",
    "shifted": "shifted one-pass",
    "two_pass": "two-pass",
    "welford": "Welford",
    "chan": "Chan merge",
}
RATIOS = (0.1, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0, 10000.0, 30000.0)
COLUMNS, ROWS = 8192, 8


def draw_terms(x: Any, mean_square: Any, squared_mean: Any) -> tuple[Figure, str]:
    """Draw E[x^2] and E[x]^2 of a row, exact and as computed in fp32, on the line of fp32 numbers. Return the figure and its alt text.

    Args:
        x: one row, a tensor or array of shape (N,), fp32, whose E[x^2] and E[x]^2 are only a few fp32 numbers apart.
        mean_square, squared_mean: E[x^2] and E[x]^2 as computed in fp32.
    """
    wide = np.array([float(value) for value in x])
    terms = {
        "E[x²]": ((wide * wide).mean(), np.float32(float(mean_square)), 0.45, "one_pass"),
        "E[x]²": (wide.mean() ** 2, np.float32(float(squared_mean)), -0.45, "two_pass"),
    }
    step = float(np.spacing(terms["E[x²]"][1]))
    values = [float(v) for exact, stored, _, _ in terms.values() for v in (exact, stored)]
    low, high = np.floor((min(values) - 3 * step) / step) * step, max(values) + 3 * step
    figure = Figure(figsize=(style.WIDTH, 2.6))
    axes = figure.add_subplot()
    numbers = np.arange(low, high, step)
    axes.vlines(numbers, -0.12, 0.12, color=style.QUIET, linewidth=1.0)
    axes.axhline(0.0, color=style.QUIET, linewidth=1.0)
    for name, (exact, stored, height, colour) in terms.items():
        ink = style.COLOURS[colour]
        axes.plot(
            [float(exact)],
            [height],
            marker="o",
            markerfacecolor=style.PANEL,
            markeredgewidth=1.6,
            markeredgecolor=ink,
            color=ink,
            linestyle="",
        )
        axes.plot([float(stored)], [0.0], marker="o", markersize=8, color=ink, linestyle="")
        axes.annotate("", (float(stored), 0.0), (float(exact), height), arrowprops={"arrowstyle": "->", "color": style.COLOURS[colour]})
        axes.annotate(f"{name}, exact", (float(exact), height), (0, 9 if height > 0 else -17), textcoords="offset points", ha="center")
    left = terms["E[x²]"][1] - terms["E[x]²"][1]
    axes.set(
        ylim=(-1.0, 1.0),
        xlim=(low - step, high + step),
        yticks=[],
        xlabel=f"each stroke is a number that fp32 can hold: one every {step:g}",
    )
    axes.ticklabel_format(axis="x", useOffset=False, style="plain")
    axes.spines["left"].set_visible(False)
    axes.grid(visible=False)
    axes.set_title(f"What is left over is {left:g}; the variance is {wide.var():.3f}")
    return figure, (
        f"A line on which fp32 numbers are strokes, {step:g} apart. The exact E[x²] and E[x]² lie above and below it; arrows go to the "
        f"strokes where the computed ones lie. Their distance is {left:g}, and the variance is {wide.var():.3f}."
    )


def measure_against_bounds() -> tuple[Figure, str]:
    """Draw the errors of all algorithms in fp32 with their bounds. Return the figure and its alt text."""
    ratios, measured, bounds, _ = measure()
    source = f"N = {COLUMNS}, fp32; sums in pairs, Welford element by element"
    return errors_and_bounds(ratios, measured, bounds, source), (
        "Six panels, relative error of the variance against mean/std on logarithmic axes, measured points below dashed bounds. Naive, "
        "two-pass and shifted one-pass stay near 1e-7 far to the right. One-pass rises with the square of mean/std and passes 1 near 3000. "
        "Welford and Chan rise slowly, to 1e-3 and 1e-4 at 30000."
    )


def measure() -> tuple[np.ndarray, dict[str, np.ndarray], dict[str, np.ndarray], dict[str, bool]]:
    """Return RATIOS, and by algorithm the relative errors, shape (ratios, ROWS), the largest bound of each ratio, and whether the error of
    every row stays below its own bound."""
    ratios = np.array(RATIOS)
    x = (np.random.default_rng(0).standard_normal((ROWS, COLUMNS)) + ratios[:, None, None]).astype(np.float32)
    u = statistics.unit_roundoff(np.float32)
    true = x.astype(np.float64).var(axis=-1)
    measured, bounds, holds = {}, {}, {}
    for name in statistics.ALGORITHMS:
        kappa = statistics.condition_number(x, x[..., 0] if name == "shifted" else 0.0 * x[..., 0])
        limit = np.vectorize(lambda k, name=name: statistics.bound(name, COLUMNS, k, u))(kappa)
        measured[name] = np.abs(statistics.compute(name, x).var.astype(np.float64) - true) / true
        bounds[name], holds[name] = limit.max(axis=1), bool((measured[name] <= limit).all())
    return ratios, measured, bounds, holds


def errors_and_bounds(
    ratios: Sequence[float] | np.ndarray, measured: Mapping[str, np.ndarray], bounds: Mapping[str, np.ndarray], source: str
) -> Figure:
    """Draw a panel per algorithm: the relative error of every row, and the bound, against mean/std, on logarithmic axes.

    Args:
        ratios: mean/std, above 0.
        measured: by algorithm, shape (ratios, rows); an error of 0 is drawn at the lower edge.
        bounds: by algorithm, shape (ratios,).
        source: N, dtype and order of the sums, written below the figure.
    """
    low, high = 1e-9, 1e6
    figure = Figure(figsize=(style.WIDTH, 5.0))
    panels = figure.subplots(2, 3, sharex=True, sharey=True)
    for axes, (key, name) in zip(panels.flat, NAMES.items(), strict=True):
        axes.axhline(1.0, color=style.QUIET, linestyle=":", marker="", linewidth=1.2)
        for row in np.asarray(measured[key]).T:
            points = style.line(key, linestyle="", markersize=4)
            axes.plot(ratios, np.clip(row, low, high), **points)
        axes.plot(ratios, np.clip(bounds[key], low, high), color=style.INK, linestyle="--", marker="")
        axes.set(xscale="log", yscale="log", ylim=(low / 2, high))
        axes.set_title(name, fontsize=style.FONT)
        axes.set_yticks([1e-9, 1e-6, 1e-3, 1, 1e3, 1e6])
        axes.minorticks_off()
    panels[0, 0].annotate("bound", (ratios[0], bounds["naive"][0]), (2, 6), textcoords="offset points")
    panels[0, 0].annotate("1: nothing left", (ratios[0], 1.0), (2, 4), textcoords="offset points", color=style.QUIET)
    figure.supxlabel(f"mean/std\n{source}", fontsize=style.FONT)
    figure.supylabel("relative error of the variance", fontsize=style.FONT)
    figure.suptitle("Only one-pass loses digits with the square of mean/std", x=0.01, ha="left", fontsize=style.FONT + 2, weight="bold")
    return figure
