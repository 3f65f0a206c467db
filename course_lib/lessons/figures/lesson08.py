"""The figures of lesson 08: where each mistake in dx leaves its mark, and what bf16 statistics cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from course_lib.lessons import style

PARTS = {"along 1": "mean", "along xhat": "x", "in neither": "masked"}
_HATCHES = {"along 1": "\\\\", "along xhat": "", "in neither": "xx"}


def marks(shares: Mapping[str, Sequence[float]]) -> Figure:
    """A bar for each mistake, split into the shares of its squared error along 1, along xhat and in neither.

    Args:
        shares: for each mistake in words, three numbers that add up to 1, in the order of PARTS.
    """
    figure = Figure(figsize=(style.WIDTH, 0.9 + 0.42 * len(shares)))
    axes = figure.add_subplot()
    table = np.array(list(shares.values()))
    start = np.zeros(len(table))
    for part, column in zip(PARTS, table.T, strict=True):
        colour = style.COLOURS[PARTS[part]]
        axes.barh(
            range(len(table)),
            column,
            0.66,
            left=start,
            label=part,
            facecolor=colour,
            hatch=_HATCHES[part],
            edgecolor=style.INK,
        )
        start += column
    axes.set(yticks=range(len(table)), yticklabels=list(shares), ylim=(len(table) - 0.5, -0.5), xlim=(0, 1))
    axes.set_xlabel("share of the squared error")
    axes.set_title("Where a mistake leaves its mark", pad=28)
    axes.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=3, frameon=False, borderaxespad=0.2)
    axes.grid(axis="y", visible=False)
    return figure


def saved_statistics(ratios: Sequence[float], off: Mapping[str, Sequence[float]], one_rounding: float) -> Figure:
    """The error of dx, relative to its size, against mean over standard deviation, for statistics saved in fp32 and bf16.

    Args:
        ratios: mean/std of the rows, rising.
        off: "fp32" and "bf16", an error for each ratio.
        one_rounding: what storing dx itself in bf16 costs.
    """
    figure = Figure(figsize=(style.WIDTH, 3.6))
    axes = figure.add_subplot()
    for dtype, key, marker in (("bf16", "one_pass", "s"), ("fp32", "two_pass", "o")):
        axes.plot(
            ratios, off[dtype], color=style.COLOURS[key], marker=marker, linestyle="-" if dtype == "bf16" else "--"
        )
        axes.annotate(
            f"statistics in {dtype}", (ratios[-2], off[dtype][-2]), (0, 9), textcoords="offset points", ha="right"
        )
    axes.axhline(one_rounding, color=style.INK, linestyle=":", linewidth=1.4)
    axes.annotate("storing dx in bf16", (ratios[0], one_rounding), (0, -13), textcoords="offset points")
    axes.set(
        xscale="log", yscale="log", xlabel="mean / standard deviation of the row", ylabel="error of dx over its size"
    )
    axes.set_title("Far from 0, bf16 statistics cost dx more than rounding dx does")
    return figure
