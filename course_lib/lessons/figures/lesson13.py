"""The figures of lesson 13: the rows that each program adds up, and the cost of each design."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure

from course_lib.lessons import style

CHUNKS = (
    "A matrix of ten rows and two blocks of columns. Programs (0, 0) and (1, 0) add up rows 0 to 4, programs (0, 1) and (1, 1) rows 5 to 9. "
    "Each stores its sums in a place of its own: row 0 or 1 of the partial sums. A second kernel adds up these two rows."
)
DESIGNS = (
    "Time of the LayerNorm backward pass over the time of an elementwise pass, by row length, for the lock, PyTorch, two stages and the "
    "persistent kernel. The sentence below has the numbers."
)
_DESIGNS = {
    "locked": ("tutorial", "lock"),
    "two-stage": ("blocked", "two stages"),
    "torch": ("torch", "PyTorch"),
    "persistent": ("resident", "persistent"),
}


def chunks(M: int = 10, rows_a_chunk: int = 5) -> Figure:
    """Draw stage one on the left, its partial sums in the middle, and stage two on the right."""
    lane, width, top = 0.32, 1.25, 0.75
    drawn, axes = style.drawing(style.WIDTH, top + M * lane + 0.15)
    style.write(axes, 0.2, 0.25, "Stage one: rows of x and dy", bold=True)
    style.write(axes, 3.75, 0.25, "partial sums", bold=True)
    style.write(axes, 6.15, 0.25, "Stage two", bold=True)
    count = -(-M // rows_a_chunk)
    arrow = {"arrowstyle": "->", "color": style.INK}
    for r in range(M):
        chunk = r // rows_a_chunk
        style.write(axes, 0.2, top + (r + 0.45) * lane, f"row {r}", colour=style.QUIET)
        for j in range(2):
            middle = r == chunk * rows_a_chunk + rows_a_chunk // 2
            at = (0.85 + j * (width + 0.06), top + r * lane)
            style.cell(axes, at, (width, lane - 0.04), f"({j}, {chunk})" if middle else "", ("done", "waiting")[chunk % 2])
    for chunk in range(count):
        y = top + (chunk + 0.5) * rows_a_chunk * lane
        axes.annotate("", (3.7, y), (0.85 + 2 * width + 0.1, y), arrowprops=arrow)
        for j in range(2):
            style.cell(axes, (3.75 + j * 0.95, y - 0.14), (0.92, 0.28), f"({j}, {chunk})", ("done", "waiting")[chunk % 2])
        axes.annotate("", (6.1, top + M * lane / 2), (5.68, y), arrowprops=arrow)
    style.cell(axes, (6.15, top + M * lane / 2 - 0.14), (1.1, 0.28), "dw, db", "active")
    return drawn


def designs(rows: Sequence[dict[str, Any]], source: str) -> Figure:
    """Draw the time of each design of the LayerNorm backward pass over that of an elementwise pass, by row length.

    Args:
        rows: measurements with ``provider``, ``N`` and ``over_floor``; one per row length and provider.
        source: the device and the date, written on the figure.
    """
    lengths = sorted({row["N"] for row in rows})
    figure = Figure()
    axes = figure.add_subplot()
    for provider, (look, label) in _DESIGNS.items():
        points = sorted((lengths.index(row["N"]), row["over_floor"]) for row in rows if row["provider"] == provider)
        axes.plot(*zip(*points, strict=True), **style.line(look))
        axes.annotate(label, points[0], (6, 6), textcoords="offset points")
    axes.axhline(1.0, color=style.COLOURS["floor"], linewidth=1.0, linestyle="--")
    axes.annotate("one pass over x, dy and dx", (len(lengths) - 1, 1.0), (0, -14), textcoords="offset points", ha="right")
    axes.set_xticks(range(len(lengths)), [str(N) for N in lengths])
    axes.set_yscale("log", base=2)
    axes.set_yticks([1, 2, 4, 8, 16], ["1", "2", "4", "8", "16"])
    axes.set(
        xlabel=f"columns N (fp16, M N = 2^25)\n{source}", ylabel="time over the floor", xlim=(-0.2, len(lengths) - 0.6), ylim=(0.75, 24)
    )
    worst = max(row["over_floor"] for row in rows if row["provider"] == "persistent")
    axes.set_title(f"The persistent kernel stays within {worst:.2f} of the floor")
    return figure
