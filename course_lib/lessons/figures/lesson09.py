"""The figures of lesson 09: who adds into which buffer, and what each design costs; and a stored table of other kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure

from course_lib.lessons import style

# LayerNorm backward, time over the time of one elementwise pass over the same bytes, by row length: 32768 rows up to N = 1024,
# 4096 above. The tutorial's kernel as published, Liger 0.8.5, quack-kernels 0.6.5, flash-attention's Triton norm of August 2026
PEERS_DEVICE = "stored measurement: NVIDIA H100 80GB HBM3, PyTorch 2.11.0, Triton 3.6.0, fp16"
PEERS: dict[int, dict[str, float]] = {
    256: {
        "torch": 8.52,
        "torch.compile": 2.18,
        "tutorial": 18.4,
        "Liger": 10.7,
        "flash-attention": 2.70,
        "quack": 2.30,
    },
    1024: {
        "torch": 3.21,
        "torch.compile": 1.48,
        "tutorial": 3.91,
        "Liger": 3.71,
        "flash-attention": 1.42,
        "quack": 1.72,
    },
    4096: {
        "torch": 2.31,
        "torch.compile": 2.48,
        "tutorial": 2.35,
        "Liger": 1.93,
        "flash-attention": 2.27,
        "quack": 1.69,
    },
    8192: {
        "torch": 2.51,
        "torch.compile": 2.33,
        "tutorial": 1.88,
        "Liger": 1.45,
        "flash-attention": 2.20,
        "quack": 1.39,
    },
}

_DESIGNS = {
    "locked": ("tutorial", "lock"),
    "two-stage": ("blocked", "two stages"),
    "torch": ("torch", "PyTorch"),
    "persistent": ("resident", "persistent"),
}


def shared_buffers(M: int = 4, GROUP: int = 2) -> Figure:
    """Rows on the left, the buffers they add into in the middle, one sum on the right."""
    left, width, lane = 0.4, 1.6, 0.5
    drawn, axes = style.drawing(style.WIDTH, 0.75 + M * lane)
    style.write(
        axes, 0.2, 0.25, f"M = {M}, GROUP = {GROUP}: row r adds into buffer r % GROUP", bold=True, font=style.FONT + 2
    )
    top, middle = 0.65, 0.65 + (M - GROUP) * lane / 2
    for g in range(GROUP):
        rows = " + ".join(f"row {r}" for r in range(g, M, GROUP))
        style.cell(axes, (3.0, middle + g * lane), (width, lane - 0.12), f"buffer {g}", "active")
        style.write(axes, 3.0 + width + 0.08, middle + g * lane + 0.19, rows, colour=style.QUIET)
        axes.annotate(
            "",
            (6.35, 0.65 + (M - 0.24) * lane / 2),
            (5.85, middle + g * lane + 0.19),
            arrowprops={"arrowstyle": "->", "color": style.INK},
        )
    for r in range(M):
        style.cell(
            axes,
            (left, top + r * lane),
            (width, lane - 0.12),
            f"program {r}: row {r}",
            "done" if r % 2 == 0 else "waiting",
        )
        ends = ((2.98, middle + r % GROUP * lane + 0.19), (left + width + 0.02, top + r * lane + 0.19))
        axes.annotate("", *ends, arrowprops={"arrowstyle": "->", "color": style.INK, "linestyle": ("-", "--")[r % 2]})
    style.cell(axes, (6.4, 0.65 + (M - 0.24) * lane / 2 - 0.19), (0.8, lane - 0.12), "dw", "active")
    return drawn


def designs(rows: Sequence[dict[str, Any]], source: str) -> Figure:
    """Time of each design of the LayerNorm backward pass over the time of an elementwise pass, by row length.

    Args:
        rows: measurements with ``provider``, ``N`` and ``over_floor``; one a row length and provider.
        source: the device and the date, which stand on the figure.
    """
    lengths = sorted({row["N"] for row in rows})
    figure = Figure()
    axes = figure.add_subplot()
    for provider, (look, label) in _DESIGNS.items():
        points = sorted((lengths.index(row["N"]), row["over_floor"]) for row in rows if row["provider"] == provider)
        axes.plot(*zip(*points, strict=True), **style.line(look))
        axes.annotate(label, points[0], (6, 6), textcoords="offset points")
    axes.axhline(1.0, color=style.COLOURS["floor"], linewidth=1.0, linestyle="--")
    axes.annotate(
        "one pass over x, dy and dx", (len(lengths) - 1, 1.0), (0, -14), textcoords="offset points", ha="right"
    )
    axes.set_xticks(range(len(lengths)), [str(N) for N in lengths])
    axes.set_yscale("log", base=2)
    axes.set_yticks([1, 2, 4, 8, 16], ["1", "2", "4", "8", "16"])
    axes.set(
        xlabel=f"columns N (fp16, M N = 2^25)\n{source}",
        ylabel="time over the floor",
        xlim=(-0.2, len(lengths) - 0.6),
        ylim=(0.75, 24),
    )
    worst = max(row["over_floor"] for row in rows if row["provider"] == "persistent")
    axes.set_title(f"The persistent kernel stays within {worst:.2f} of the floor")
    return figure
