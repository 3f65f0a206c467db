"""The figure of lesson 12: the buffer into which each row is added."""

from __future__ import annotations

from course_lib.base.translation import gettext as _
from course_lib.lessons.kit.output import MovingPicture
from course_lib.lessons.pictures.chart.model import Box, Boxes, View, chart


def show_shared_buffers(M: int = 4, GROUP: int = 2) -> MovingPicture:
    """Show the rows on the left, the buffers into which they are added in the middle, and the sum
    of the buffers on the right."""
    middle = (M - GROUP) / 2 * 1.6
    programs = [
        Box(
            0,
            r * 1.6,
            1.9,
            1.3,
            _("program {r}:\nrow {r}").format(r=r),
            "done" if r % GROUP == 0 else "waiting",
        )
        for r in range(M)
    ]
    buffers = [
        Box(
            2.9,
            middle + g * 1.6,
            2.3,
            1.3,
            _("buffer {g}:\n{rows}").format(
                g=g, rows=" + ".join(_("row {r}").format(r=r) for r in range(g, M, GROUP))
            ),
            "active",
        )
        for g in range(GROUP)
    ]
    total = Box(6.2, (M - 1) / 2 * 1.6, 0.9, 1.3, "dw", "active")
    arrows = [(r, M + r % GROUP) for r in range(M)] + [(M + g, M + GROUP) for g in range(GROUP)]
    return chart(
        View(
            _("M = {M}, GROUP = {GROUP}: row r adds into buffer r % GROUP").format(
                M=M, GROUP=GROUP
            ),
            [Boxes([*programs, *buffers, total], arrows, 7.1)],
        ),
        alt=_(
            "Four programs with a row each, two buffers, one sum. Rows 0 and 2 add into buffer 0,"
            " rows 1 and 3 into buffer 1; the two buffers are then added into dw."
        ),
    )
