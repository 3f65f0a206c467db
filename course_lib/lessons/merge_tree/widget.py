"""Lesson 03: Welford within blocks, Chan's merge between them, step by step, and a row split by hand."""

from __future__ import annotations

from course_lib.lessons.kit.output import MovingPicture
from course_lib.lessons.merge_tree.model import make_data


def merge_tree(data: str = "worked example", block: int = 1, N: int = 8, dtype: str = "fp32") -> MovingPicture:
    """Step through Welford's blocks and Chan's merges of one row, or split it by hand; the numbers can be dragged, too.

    Args:
        data: "worked example", "two levels" or "mean 10000".
        block: numbers a block, 1, 2, 4 or 8.
        N: how many of the eight numbers there are.

    Raises: CourseError if an argument is outside those.
    """
    return MovingPicture(
        "merge_tree",
        make_data(data, block, N, dtype),
        f"The {N} numbers of the row {data} as points. Below them a tree: blocks of {block} on top, whose count, mean and M2 Welford finds "
        "number by number, then Chan's merges down to one root that knows the whole row. A bar shows what M2 is made of: what lies inside "
        "the left side, inside the right side, and between their means.",
    )
