"""The figure of lesson 09: the cost of a fused addition."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

from matplotlib.figure import Figure

from course_lib.lessons import style
from course_lib.lessons.live import Picture, picture
from course_lib.lessons.norm_times import NormTimes

PROVIDERS = {"unfused": "two kernels: add, then norm", "resident": "one kernel"}
_LOOKS = {"unfused": "torch", "resident": "resident"}  # "torch", because the addition of the unfused pair is PyTorch's


def show_fused_cost(times: NormTimes) -> Picture:
    """Draw the figure, with alt text that has its numbers. ``times`` has "add_rms_norm" of both providers."""
    rows = [row for row in times.measured.rows if row["op"] == "add_rms_norm" and row["provider"] in PROVIDERS]
    told = ", ".join(
        f"{N} columns {times.us('add_rms_norm', 'unfused', N) / times.us('add_rms_norm', 'resident', N):.2f}" for N in times.columns
    )
    return picture(
        fused_cost(rows, times.label),
        alt="Time of the residual addition and RMSNorm, in one kernel and in two, over the time of an elementwise pass that moves 4 M N "
        f"elements, by row length. {times.label}. Two kernels over one: {told}.",
    )


def fused_cost(rows: Sequence[dict[str, Any]], source: str) -> Figure:
    """Draw the time of add + rms_norm in one kernel and in two, over that of an elementwise pass that moves 4 M N elements.

    Args:
        rows: measurements of "add_rms_norm" with ``provider``, ``M``, ``N`` and ``over_floor``; one per shape and provider.
        source: the device and the date, written on the figure.
    """
    shapes = sorted({(row["N"], row["M"]) for row in rows})
    figure = Figure()
    axes = figure.add_subplot()
    for provider, label in PROVIDERS.items():
        points = sorted((shapes.index((row["N"], row["M"])), row["over_floor"]) for row in rows if row["provider"] == provider)
        axes.plot(*zip(*points, strict=True), **style.line(_LOOKS[provider]))
        axes.annotate(label, points[-1], (8, -18), textcoords="offset points", ha="right")
    for level, words in ((1.0, "4 M N"), (1.25, "5 M N")):
        axes.axhline(level, color=style.COLOURS["floor"], linewidth=1.0, linestyle="--")
        axes.annotate(words, (-0.9, level), (3, 3), textcoords="offset points")
    axes.set_xticks(range(len(shapes)), [f"{N}\n\u00d7 {M}" for N, M in shapes], fontsize=style.FONT)
    highest = max(row["over_floor"] for row in rows)
    axes.set(xlabel=f"columns N, with the rows M below (fp16)\n{source}", ylabel="time over a pass of 4 M N elements")
    axes.set(xlim=(-0.9, len(shapes) - 0.6), ylim=(0, 1.1 * max(highest, 1.25)))
    axes.set_title(_cost_title(rows))
    return figure


def _cost_title(rows: Sequence[dict[str, Any]]) -> str:
    """Write the title with the numbers of ``rows``, so that it is true for any measurement."""
    middle = {name: median([row["over_floor"] for row in rows if row["provider"] == name]) for name in PROVIDERS}
    return f"Add + RMSNorm: {middle['resident']:.2f} of the floor in one kernel, {middle['unfused']:.2f} in two (medians)"
