"""The figure of lesson 08: the cost of one read of a row, and of three."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from course_lib.bench import forward
from course_lib.bench.measurement import Measurement
from course_lib.lessons import style
from course_lib.lessons.live import Picture, picture

PROVIDERS = {"blocked": "blocked: asks for 3 reads", "resident": "resident: 1 read", "torch": "PyTorch"}


def list_costs(measured: Measurement) -> list[dict[str, Any]]:
    """Select the times of LayerNorm forward in fp16: rows with provider, M, N, us and over_floor."""
    wanted = [row for row in measured.rows if (row["op"], row["dtype"]) == ("layer_norm", "fp16")]
    return [row for row in wanted if row["provider"] in PROVIDERS]


def show_forward_cost() -> Picture:
    """Draw the time of the blocked kernel, the resident kernel and PyTorch over that of a copy, by row length."""
    measured = forward.latest()
    rows = list_costs(measured)
    figure = forward_cost(rows, measured.label())
    points = "; ".join(
        f"N = {N}: " + ", ".join(f"{row['provider']} {row['over_floor']:.2f}" for row in rows if row["N"] == N)
        for N in sorted({row["N"] for row in rows})
    )
    return picture(
        figure, f"{_cost_title(rows)}. Time of LayerNorm forward over that of a copy of the same bytes, {measured.label()}. {points}."
    )


def forward_cost(rows: Sequence[dict[str, Any]], source: str) -> Figure:
    """Draw the time of each LayerNorm forward over that of a copy of the same bytes: one position per shape, one line per provider.

    Args:
        rows: measurements with ``provider``, ``M``, ``N`` and ``over_floor``; one per shape and provider.
        source: the device and the date, written on the figure.
    """
    shapes = sorted({(row["N"], row["M"]) for row in rows})
    figure = Figure()
    axes = figure.add_subplot()
    highest = max(row["over_floor"] for row in rows)
    for provider, label in PROVIDERS.items():
        points = sorted((shapes.index((row["N"], row["M"])), row["over_floor"]) for row in rows if row["provider"] == provider)
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
    """Write the title with the numbers of ``rows``, so that it is true for any measurement."""
    middle = {name: median([row["over_floor"] for row in rows if row["provider"] == name]) for name in ("blocked", "resident")}
    return f"Reading once costs {middle['resident']:.2f} copies, asking three times {middle['blocked']:.2f} (medians)"
