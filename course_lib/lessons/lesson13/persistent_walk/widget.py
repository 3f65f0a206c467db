"""Lesson 13: a few programs walk over the rows, each with a partial dw of its own, and a second
stage adds up the partial sums."""

from __future__ import annotations

from course_lib.base.translation import gettext as _
from course_lib.lessons.kit.output import MovingPicture
from course_lib.lessons.lesson13.persistent_walk.model import make_data


def persistent_walk(M: int = 11, P: int = 3, ROWS: int = 2) -> MovingPicture:
    """Step through the persistent kernel: P programs walk over tiles of ROWS rows, then stage two
    adds up their P partial sums.

    Args:
        M: rows, 1 to 12. They have four columns.
        P: programs, 1 to 4.
        ROWS: rows per tile, 1, 2 or 4.

    Raises: CourseError if an argument has another value.
    """
    alt = _(
        "{M} rows in tiles of {ROWS}, and {P} programs. In each turn every program adds its next"
        " tile, P tiles further on, to a partial dw of its own, which stays in its registers. After"
        " the last tile each program stores its partial dw once, and a second stage adds up the"
        " stored rows, program 0 first."
    )
    return MovingPicture("persistent_walk", make_data(M, P, ROWS), alt.format(M=M, P=P, ROWS=ROWS))
