"""Lesson 00: the start values of the copy map. ``picture.js`` computes the launch itself whenever
the learner changes a setting."""

from __future__ import annotations

from typing import Any

from course_lib.base.errors import CourseError
from course_lib.base.translation import gettext as _

BLOCKS = (2, 4, 8, 16)
MAX_N = 40


def make_data(n: int, block: int) -> dict[str, Any]:
    """Return the data of a masked launch of cdiv(n, block) programs. The lane of element 6, or of
    the last element, is selected.

    Raises: CourseError if n or block is outside what the picture shows.
    """
    if not 1 <= n <= MAX_N or block not in BLOCKS:
        words = _(
            "copy_map shows n from 1 to {most} and block from {blocks}; you asked for n={n},"
            " block={block}."
        )
        raise CourseError(words.format(most=MAX_N, blocks=BLOCKS, n=n, block=block))
    return {
        "start": {"n": n, "block": block, "masked": True, "grid": "cdiv", "at": min(6, n - 1)},
        "blocks": BLOCKS,
        "maxN": MAX_N,
    }
