"""The figures of lesson 13: a row in batches of several sizes, the rows that each program adds up,
and the cost of each design."""

from __future__ import annotations

from collections.abc import Sequence

from course_lib.base.translation import gettext as _
from course_lib.base.translation import mark as N_
from course_lib.bench.measurement import Measurement
from course_lib.lessons.figures.measured import make_length_axis, make_line
from course_lib.lessons.kit.output import MovingPicture
from course_lib.lessons.lesson13.sums import SPLITS, compute_rstd, draw_rows
from course_lib.lessons.pictures.chart.model import (
    Axis,
    Box,
    Boxes,
    Cells,
    Level,
    Plot,
    Series,
    View,
    chart,
)

_DESIGNS = {
    "locked": (N_("lock"), "tutorial"),
    "two-stage": (N_("two stages"), "blocked"),
    "torch": ("PyTorch", "torch"),
    "persistent": (N_("persistent"), "resident"),
}


def show_row_in_batches(*batches: int) -> MovingPicture:
    """Show rstd of one row, in fp32, in batches of these numbers of rows, as each split of the row
    adds it up. The control chooses the batch; its first one is what the others are compared
    with."""
    row = draw_rows(1)
    alone = {split: compute_rstd(row, split, batches[0])[0] for split in SPLITS}

    def make_view(M: int) -> View:
        found = {split: compute_rstd(row, split, M)[0] for split in SPLITS}
        others = sum(found[split] != alone[split] for split in SPLITS)
        title = (
            _("One row in a batch of M = {M}: all kernels give the bits that they give for M = 1")
            if not others
            else _("The same row in a batch of M = {M}: {count} of {all} kernels give other bits")
        )
        return View(
            title.format(M=M, count=others, all=len(SPLITS)),
            [
                Cells(
                    [_(split.name) for split in SPLITS],
                    [_("programs\nper row"), _("sums\nin each"), _("rstd\nat M = 1"), "rstd"],
                    [
                        [
                            str(split.count_parts(M)),
                            str(split.count_sums(M)),
                            f"{alone[split]:.8f}",
                            f"{rstd:.8f}",
                        ]
                        for split, rstd in found.items()
                    ],
                    [
                        ["waiting"] * 3 + ["done" if rstd == alone[split] else "fault"]
                        for split, rstd in found.items()
                    ],
                    _("rows: kernels; columns: how each adds up the row, and what it gets"),
                )
            ],
            name=str(M),
        )

    return chart(
        *map(make_view, batches),
        control="M",
        alt=_(
            "A table of three kernels. The first adds up a row with 1024 running sums if M is below"
            " 256, and with 256 otherwise. The second splits a row among as many programs as fill"
            " the GPU. The third has 256 sums whatever M is. Only the third gives the row the same"
            " rstd in every batch."
        ),
    )


def show_chunks(M: int = 10, rows_per_chunk: int = 5) -> MovingPicture:
    """Show stage one on the left, its partial sums in the middle, and stage two on the right."""
    boxes = [
        Box(x, 0, width, 1, words, "")
        for x, width, words in (
            (0, 3.1, _("Stage one: rows of x and dy")),
            (3.6, 2, _("partial sums")),
            (6, 1.2, _("Stage two")),
        )
    ]
    boxes.append(Box(6.1, 1 + (M - 1) / 2 * 0.8, 1, 0.7, "dw, db", "active"))
    total, arrows = len(boxes) - 1, []
    for r in range(M):
        chunk, y = r // rows_per_chunk, 1 + r * 0.8
        middle = r % rows_per_chunk == rows_per_chunk // 2
        state = ("done", "waiting")[chunk % 2]
        boxes.append(Box(0, y, 0.8, 0.7, _("row {r}").format(r=r), ""))
        boxes += [
            Box(0.85 + j * 1.2, y, 1.15, 0.7, f"({j}, {chunk})" if middle else "", state)
            for j in range(2)
        ]
        if middle:
            boxes += [Box(3.6 + j, y, 0.95, 0.7, f"({j}, {chunk})", state) for j in range(2)]
            arrows += [(len(boxes) - 3, len(boxes) - 2), (len(boxes) - 1, total)]
    return chart(
        View(
            _("Each program adds up a chunk of rows, and stores its sums once"),
            [Boxes(boxes, arrows, 7.2)],
        ),
        alt=_(
            "A matrix of ten rows and two blocks of columns. Programs (0, 0) and (1, 0) add up rows"
            " 0 to 4, programs (0, 1) and (1, 1) rows 5 to 9. Each stores its sums in a place of"
            " its own: row 0 or 1 of the partial sums. A second kernel adds up these two rows."
        ),
    )


def show_designs(
    measured: Measurement, dots: Sequence[Series] = (), note: str = ""
) -> MovingPicture:
    """Show the time of each design of the LayerNorm backward pass over that of an elementwise
    sweep, by row length.

    Args:
        measured: has rows with ``provider``, ``N`` and ``over_floor``; one per row length and
            provider.
        dots: more times, drawn over the lines.
        note: more words for the caption.
    """
    lines = [
        make_line(measured.rows, provider, _(name), colour)
        for provider, (name, colour) in _DESIGNS.items()
    ]
    y = Axis(
        _("time over the floor"), log=True, low=0.75, high=24, ticks=[1, 2, 4, 8, 16], unit="x"
    )
    plot = Plot(
        make_length_axis(measured.rows, " (fp16, M N = 2^25)"),
        y,
        [*lines, *dots],
        [Level(1.0, _("one sweep over x, dy and dx"))],
    )
    times_text = _("; ").join(
        _("{name}: {values}").format(
            name=f"N = {N}",
            values=_(", ").join(
                f"{_(_DESIGNS[row['provider']][0])} {row['over_floor']:.2f}"
                for row in measured.rows
                if row["N"] == N and row["provider"] in _DESIGNS
            ),
        )
        for N in sorted({row["N"] for row in measured.rows})
    )
    worst = max(row["over_floor"] for row in measured.rows if row["provider"] == "persistent")
    return chart(
        View(
            _("The persistent kernel takes at most {worst:.2f} times the floor").format(
                worst=worst
            ),
            [plot],
            _("{source}. {note}").format(source=measured.label(), note=note).rstrip(),
        ),
        alt=_(
            "Time of the LayerNorm backward pass over the time of an elementwise sweep, by row"
            " length, for the lock, PyTorch, two stages and the persistent kernel. {told}."
        ).format(told=times_text),
    )
