"""Lesson 04: Welford within blocks and Chan's merge between them, step by step, or a row that the
learner splits."""

from __future__ import annotations

from course_lib.base.translation import gettext as _
from course_lib.lessons.kit.output import MovingPicture
from course_lib.lessons.lesson04.merge_tree.model import NAMES, make_data


def merge_tree(
    data: str = "worked example", block: int | str = 1, N: int = 8, dtype: str = "fp32"
) -> MovingPicture:
    """Step through Welford's blocks and Chan's merges of one row, or split the row by hand. The
    numbers can be dragged.

    Args:
        data: "worked example", "two halves" or "mean 10000".
        block: numbers per block, 1, 2, 4 or 8; "split" begins with the two halves merged.
        N: use the first N of the eight numbers.

    Raises: CourseError if an argument has another value.
    """
    picture_data = make_data(data, block, N, dtype)
    words = _(
        "The {columns} numbers of the row {row} as points. Below them a tree: blocks of {block} on"
        " top, whose count, mean and M2 Welford finds number by number, then Chan's merges down to"
        " one root that knows the whole row. A bar shows what M2 is made of: what lies inside the"
        " left side, inside the right side, and between their means."
    )
    return MovingPicture(
        "merge_tree", picture_data, words.format(columns=N, row=_(NAMES[data]), block=block)
    )
