"""The figures of lesson 13: the rows that each program adds up, and the cost of each design."""

from __future__ import annotations

from collections.abc import Sequence

from course_lib.bench.measurement import Measurement
from course_lib.lessons.figures.measured import make_length_axis, make_line
from course_lib.lessons.kit.output import MovingPicture
from course_lib.lessons.pictures.chart.model import Axis, Box, Boxes, Level, Plot, Series, View, chart

_DESIGNS = {
    "locked": ("lock", "tutorial"),
    "two-stage": ("two stages", "blocked"),
    "torch": ("PyTorch", "torch"),
    "persistent": ("persistent", "resident"),
}


def show_chunks(M: int = 10, rows_per_chunk: int = 5) -> MovingPicture:
    """Show stage one on the left, its partial sums in the middle, and stage two on the right."""
    boxes = [
        Box(x, 0, width, 1, words, "")
        for x, width, words in ((0, 3.1, "Stage one: rows of x and dy"), (3.6, 2, "partial sums"), (6, 1.2, "Stage two"))
    ]
    boxes.append(Box(6.1, 1 + (M - 1) / 2 * 0.8, 1, 0.7, "dw, db", "active"))
    total, arrows = len(boxes) - 1, []
    for r in range(M):
        chunk, y = r // rows_per_chunk, 1 + r * 0.8
        middle = r % rows_per_chunk == rows_per_chunk // 2
        state = ("done", "waiting")[chunk % 2]
        boxes.append(Box(0, y, 0.8, 0.7, f"row {r}", ""))
        boxes += [Box(0.85 + j * 1.2, y, 1.15, 0.7, f"({j}, {chunk})" if middle else "", state) for j in range(2)]
        if middle:
            boxes += [Box(3.6 + j, y, 0.95, 0.7, f"({j}, {chunk})", state) for j in range(2)]
            arrows += [(len(boxes) - 3, len(boxes) - 2), (len(boxes) - 1, total)]
    return chart(
        View("Each program adds up a chunk of rows, and stores its sums once", [Boxes(boxes, arrows, 7.2)]),
        alt="A matrix of ten rows and two blocks of columns. Programs (0, 0) and (1, 0) add up rows 0 to 4, programs (0, 1) and (1, 1) rows 5 to 9. "
        "Each stores its sums in a place of its own: row 0 or 1 of the partial sums. A second kernel adds up these two rows.",
    )


def show_designs(measured: Measurement, dots: Sequence[Series] = (), note: str = "") -> MovingPicture:
    """Show the time of each design of the LayerNorm backward pass over that of an elementwise pass, by row length.

    Args:
        measured: has rows with ``provider``, ``N`` and ``over_floor``; one per row length and provider.
        dots: more times, drawn over the lines.
        note: more words for the caption.
    """
    lines = [make_line(measured.rows, provider, *look) for provider, look in _DESIGNS.items()]
    y = Axis("time over the floor", log=True, low=0.75, high=24, ticks=[1, 2, 4, 8, 16], unit="x")
    plot = Plot(make_length_axis(measured.rows, " (fp16, M N = 2^25)"), y, [*lines, *dots], [Level(1.0, "one pass over x, dy and dx")])
    told = "; ".join(
        f"N = {N}: "
        + ", ".join(
            f"{_DESIGNS[row['provider']][0]} {row['over_floor']:.2f}"
            for row in measured.rows
            if row["N"] == N and row["provider"] in _DESIGNS
        )
        for N in sorted({row["N"] for row in measured.rows})
    )
    worst = max(row["over_floor"] for row in measured.rows if row["provider"] == "persistent")
    return chart(
        View(f"The persistent kernel takes at most {worst:.2f} times the floor", [plot], f"{measured.label()}. {note}".rstrip()),
        alt="Time of the LayerNorm backward pass over the time of an elementwise pass, by row length, for the lock, PyTorch, two stages and the "
        f"persistent kernel. {told}.",
    )
