"""The figures of lesson 05: how often a statistics kernel reads its rows, and what a second read costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from course_lib.lessons import style

LABELS = {
    "one_pass": "one-pass, streamed",
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


def sweep_cost(rows: Sequence[dict[str, Any]], source: str) -> Figure:
    """Time of each kernel over that of one read of x, one position a row length, one line a provider.

    Args:
        rows: measurements with ``provider``, ``M``, ``N`` and ``over_floor``; one a shape and provider.
        source: the device and the date, which stand on the figure.
    """
    shapes = sorted({(row["N"], row["M"]) for row in rows})
    figure = Figure(figsize=(style.WIDTH, 4.8))
    axes = figure.add_subplot()
    for provider, label in LABELS.items():
        points = sorted(
            (shapes.index((row["N"], row["M"])), row["over_floor"]) for row in rows if row["provider"] == provider
        )
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
    """The message in the data's own numbers, so that it is true wherever they were measured."""
    longest = max(row["N"] for row in rows)
    at = {row["provider"]: row["over_floor"] for row in rows if row["N"] == longest}
    return f"At {longest} columns two sweeps cost {at['two_pass']:.2f} reads of x, Welford's one {at['welford']:.2f}"


def sweeps() -> Figure:
    """How often each kernel reads x from memory: by count, for rows in registers and for rows that no cache holds."""
    names = ["one_pass", "two_pass", "welford", "resident", "resident_welford"]
    figure = Figure(figsize=(style.WIDTH, 3.2))
    axes = figure.add_subplot()
    for position, name in enumerate(names):
        reads = 2 if name == "two_pass" else 1
        looks = style.fill({"resident": "two_pass", "resident_welford": "welford"}.get(name, name))
        axes.barh(position, reads, height=0.6, **looks)
        axes.annotate(f"{reads} M N", (reads, position), (5, -4), textcoords="offset points")
    axes.set_yticks(range(len(names)), [LABELS[name] for name in names], fontsize=style.FONT)
    axes.invert_yaxis()
    axes.set(
        xlabel="elements of x read from memory, by count, where no cache holds the row", xlim=(0, 2.5), xticks=[0, 1, 2]
    )
    axes.grid(visible=False, axis="y")
    axes.set_title("Only a streamed two-pass kernel reads x twice")
    return figure
