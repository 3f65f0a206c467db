"""Lesson 06: many numbers become one sum. Which thread adds which partner's, through shared memory or by shuffles."""

from __future__ import annotations

from course_lib.lessons.kit.output import MovingPicture
from course_lib.lessons.reduction_tree.model import WAYS, make_data


def reduction_tree(n: int = 16, threads: int = 8, way: str = "shared", warp: int = 4) -> MovingPicture:
    """Step through a reduction, and press a number to see what went into it and where it goes.

    Args:
        n: how many values, 1 to 32.
        threads: 2, 4, 8 or 16.
        way: "shared" (memory) or "shuffle".
        warp: threads of a warp, 4, 8 or 16; a real warp has 32, too many to draw.

    Raises: CourseError if an argument is none of those.
    """
    return MovingPicture(
        "reduction_tree",
        make_data(n, threads, way, warp),
        f"{n} values on top, below them a line of {threads} threads, and a line more for each step in which threads add the numbers of other "
        f"threads by {WAYS[way]}, until thread 0 has the sum.",
    )
