"""The figures of lesson 03: errors against their bounds, and sums that stop growing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from course_lib.lessons import style

NAMES = {
    "naive": "naive, op by op",
    "one_pass": "one-pass",
    "shifted": "shifted one-pass",
    "two_pass": "two-pass",
    "welford": "Welford",
    "chan": "Chan merge",
}
_DTYPE_LOOKS = {"fp16": ("#D55E00", "--"), "bf16": ("#007F5F", "-."), "fp32": ("#00305A", "-")}


def errors_and_bounds(
    ratios: Sequence[float], measured: Mapping[str, np.ndarray], bounds: Mapping[str, np.ndarray], source: str
) -> Figure:
    """A panel for each algorithm: the relative error of every row against its bound, over mean/std, on logarithmic axes.

    Args:
        ratios: mean/std, above 0.
        measured: by algorithm, shape (ratios, rows); an error of 0 is drawn at the lower edge.
        bounds: by algorithm, shape (ratios,).
        source: N, dtype and order of the sums, which stand below.
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
    figure.suptitle(
        "Only one-pass loses digits with the square of mean/std",
        x=0.01,
        ha="left",
        fontsize=style.FONT + 2,
        weight="bold",
    )
    return figure


def stalled_sums(sums: Mapping[str, np.ndarray]) -> Figure:
    """The running sum of ones after each addition, by the dtype of the accumulator."""
    figure = Figure(figsize=(style.WIDTH, 3.6))
    axes = figure.add_subplot()
    for name, running in sums.items():
        colour, line = _DTYPE_LOOKS[name]
        axes.plot(np.arange(1, len(running) + 1), running, color=colour, linestyle=line, marker="")
        where = {"fp32": (-6, -4, "right"), "fp16": (0, 6, "right"), "bf16": (0, 6, "right")}[name]
        axes.annotate(
            f"{name}: {running[-1]:g}",
            (len(running), running[-1]),
            where[:2],
            textcoords="offset points",
            ha=where[2],
            va="bottom",
        )
    axes.set(xlabel="ones added up, one after the other", ylabel="the sum so far")
    axes.set_title("A sum of ones stops at 2048 in fp16, at 256 in bf16")
    return figure
