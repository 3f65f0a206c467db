"""Lesson 06: threads add up many numbers, through shared memory or by shuffles. Which thread adds
the number of which partner?"""

from __future__ import annotations

from course_lib.base.translation import gettext as _
from course_lib.lessons.kit.output import MovingPicture
from course_lib.lessons.lesson06.reduction_tree.model import make_data


def reduction_tree(
    n: int = 16, threads: int = 8, way: str = "shared", warp: int = 4
) -> MovingPicture:
    """Step through a reduction. Press a number to see which numbers it is made of and where it is
    used.

    Args:
        n: number of values, 1 to 32.
        threads: 2, 4, 8 or 16.
        way: "shared" (through shared memory) or "shuffle".
        warp: threads per warp, 4, 8 or 16; a real warp has 32, too many to draw.

    Raises: CourseError if an argument has another value.
    """
    data = make_data(n, threads, way, warp)
    alt = _(
        "{n} values on top, below them a line of {threads} threads, and a line more for each step"
        " in which threads add the numbers of other threads by {way}, until thread 0 has the sum."
    )
    return MovingPicture(
        "reduction_tree", data, alt.format(n=n, threads=threads, way=data["ways"][way])
    )
