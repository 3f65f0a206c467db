"""The figure of lesson 05: the cost of a second read of a row, and the cost of Welford's arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from course_lib.bench import measurement
from course_lib.bench.row_statistics import KIND
from course_lib.lessons import style

LABELS = {
    "one_pass": "one-pass, streamed",
    "shifted": "shifted one-pass, streamed",
    "two_pass": "two-pass, streamed",
    "welford": "Welford, streamed",
    "resident": "two passes in registers",
    "resident_welford": "Welford, row in one block",
    "torch": "torch.var_mean",
}
_LOOKS = {
    "resident": style.line("resident"),
    "resident_welford": style.line(
        "welford", linestyle=":", marker="^", markerfacecolor=style.PANEL, markeredgecolor=style.COLOURS["welford"]
    ),
    "torch": style.line("torch", linewidth=1.0, linestyle=(0, (1, 1)), marker="X"),
}


def read_stored_cost(dtype: str = "fp32") -> dict[tuple[str, int], float]:
    """Return the time over that of one read of x, by (provider, columns), from the newest stored measurement."""
    return {(row["provider"], row["N"]): row["over_floor"] for row in measurement.stored(KIND).rows if row["dtype"] == dtype}


def show_stored_cost() -> tuple[Figure, str]:
    """Draw the newest stored measurement in fp32. Return the figure and its alt text."""
    stored = measurement.stored(KIND)
    over = read_stored_cost()
    shortest, longest = (pick(N for _, N in over) for pick in (min, max))
    said = "; ".join(
        f"{label}: {', '.join(f'{over[name, N]:.2f} at {N}' for N in (shortest, longest) if (name, N) in over)}"
        for name, label in LABELS.items()
    )
    figure = sweep_cost([row for row in stored.rows if row["dtype"] == "fp32"], stored.label())
    return (figure, f"Time of the statistics kernels over the time in which x is read once, by row length, fp32, {stored.label()}. {said}.")


def sweep_cost(rows: Sequence[dict[str, Any]], source: str) -> Figure:
    """Draw the time of each kernel over that of one read of x: one position per row length, one line per provider.

    Args:
        rows: measurements with ``provider``, ``M``, ``N`` and ``over_floor``; one per shape and provider.
        source: the device and the date, written on the figure.
    """
    shapes = sorted({(row["N"], row["M"]) for row in rows})
    figure = Figure(figsize=(style.WIDTH, 4.8))
    axes = figure.add_subplot()
    for provider, label in LABELS.items():
        points = sorted((shapes.index((row["N"], row["M"])), row["over_floor"]) for row in rows if row["provider"] == provider)
        if points:
            axes.plot(*zip(*points, strict=True), label=label, **(_LOOKS.get(provider) or style.line(provider)))
    for level, words in ((1.0, "x read once"), (2.0, "twice")):
        axes.axhline(level, color=style.COLOURS["floor"], linewidth=1.0, linestyle="--")
        axes.annotate(words, (-0.45, level), (0, -13), textcoords="offset points")
    highest = max(2.2, *(row["over_floor"] for row in rows))
    axes.set_xticks(range(len(shapes)), [f"{N}\n{M} rows" for N, M in shapes], fontsize=style.FONT)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}x"))
    axes.set(
        xlabel="columns N, and M rows of them (fp32)",
        ylabel="time over one read of x",
        xlim=(-0.5, len(shapes) - 0.6),
        ylim=(0, 1.1 * highest),
    )
    axes.legend(loc="upper center", ncols=3, bbox_to_anchor=(0.5, -0.22), frameon=False)
    axes.set_title(_cost_title(rows))
    axes.text(1.0, 0.02, source, transform=axes.transAxes, ha="right", color=style.QUIET)
    return figure


def _cost_title(rows: Sequence[dict[str, Any]]) -> str:
    """Write the title with the numbers of ``rows``, so that it is true for any measurement."""
    longest = max(row["N"] for row in rows)
    at = {row["provider"]: row["over_floor"] for row in rows if row["N"] == longest}
    return f"At {longest} columns two sweeps cost {at['two_pass']:.2f} reads of x, Welford's one {at['welford']:.2f}"
