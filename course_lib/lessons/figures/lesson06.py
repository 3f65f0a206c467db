"""The two figures of lesson 06: what padding does to a variance, and what the sweeps of a kernel cost."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from course_lib.lessons import style

PROVIDERS = {"blocked": "blocked: asks for 3 reads", "resident": "resident: 1 read", "torch": "PyTorch"}


def padded_variance(
    means: Sequence[float], unmasked: Sequence[float], masked: Sequence[float], N: int, pad: int
) -> Figure:
    """The variance of a row whose true variance is 1, against its mean, with padded lanes squared and with none.

    Args:
        means: the mean of each row, in rising order.
        unmasked, masked: the variance computed for each row, by the kernel that squares its padded lanes and where there are none.
        N, pad: columns of a row, and lanes past the last one.
    """
    figure = Figure()
    axes = figure.add_subplot()
    law = [1 + pad * mean * mean / N for mean in means]
    axes.plot(means, law, color=style.QUIET, linestyle="-", linewidth=1.2, marker="", zorder=1)
    axes.plot(means, unmasked, color=style.COLOURS["fault"], marker="D", markeredgecolor=style.INK, linestyle="")
    axes.plot(means, masked, **style.line("two_pass"))
    axes.annotate(
        f"measured, {pad} padded lanes\non the curve 1 + {pad}/{N} mean\u00b2",
        (means[-4], unmasked[-4]),
        (-14, 22),
        textcoords="offset points",
        ha="right",
    )
    axes.annotate("measured, no padded lane", (means[-1], masked[-1]), (0, 10), textcoords="offset points", ha="right")
    axes.set(
        xlabel="mean of the row (its standard deviation is 1)", ylabel="variance computed (true: 1)", ylim=(0, None)
    )
    axes.set_title(f"{pad} padded lanes of {N + pad} ruin the variance once the mean leaves 0")
    return figure


def forward_cost(rows: Sequence[dict[str, Any]], source: str) -> Figure:
    """Time of each LayerNorm forward over that of a copy of the same bytes, one position a shape, one line a provider.

    Args:
        rows: measurements with ``provider``, ``M``, ``N`` and ``over_floor``; one a shape and provider.
        source: the device and the date, which stand on the figure.
    """
    shapes = sorted({(row["N"], row["M"]) for row in rows})
    figure = Figure()
    axes = figure.add_subplot()
    highest = max(row["over_floor"] for row in rows)
    for provider, label in PROVIDERS.items():
        points = sorted(
            (shapes.index((row["N"], row["M"])), row["over_floor"]) for row in rows if row["provider"] == provider
        )
        if points:
            axes.plot(*zip(*points, strict=True), **style.line(provider, label=label))
    axes.axhline(1.0, color=style.COLOURS["floor"], linewidth=1.2, linestyle="--")
    axes.annotate("a copy of the same bytes", (0, 1.0), (0, -14), textcoords="offset points")
    axes.set_xticks(range(len(shapes)), [f"{N}\n{M} rows" for N, M in shapes], fontsize=style.FONT)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}x"))
    axes.set(xlabel="columns N, and M rows of them (fp16)", ylabel="time over a copy", ylim=(0, 1.15 * highest))
    axes.legend(loc="upper center", ncols=3, bbox_to_anchor=(0.5, -0.26), frameon=False)
    axes.set_title(_cost_title(rows))
    axes.text(1.0, 0.02, source, transform=axes.transAxes, ha="right", color=style.QUIET)
    return figure


def _cost_title(rows: Sequence[dict[str, Any]]) -> str:
    """The message in the data's own numbers, so that it is true wherever they were measured."""
    middle = {
        name: median([row["over_floor"] for row in rows if row["provider"] == name]) for name in ("blocked", "resident")
    }
    return f"Reading once costs {middle['resident']:.2f} copies, asking three times {middle['blocked']:.2f} (medians)"
