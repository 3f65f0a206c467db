"""Lesson 00: which program, which lane and which mask bit copies which element of x to y."""

from __future__ import annotations

from course_lib.base.translation import gettext as _
from course_lib.lessons.kit.output import MovingPicture
from course_lib.lessons.lesson00.copy_map.model import make_data


def copy_map(n: int = 10, block: int = 4) -> MovingPicture:
    """Show which elements of x and y each lane of a copy kernel reads and writes, with the mask and
    without.

    Args:
        n: elements to copy, 1 to 40.
        block: lanes per program, one of 2, 4, 8, 16.

    Raises: CourseError if n or block has another value.
    """
    data = make_data(n, block)
    programs = -(-n // block)
    words = _(
        "Memory with x above and y below, and the lanes of {programs} programs of {block} between"
        " them, each above the element that it copies. n is {n}: all {n} elements of y are written,"
        " and {spare} lanes past the end are masked off. Behind y lies the memory of another"
        " tensor, which stays as it is."
    )
    return MovingPicture(
        "copy_map",
        data,
        words.format(programs=programs, block=block, n=n, spare=programs * block - n),
    )
