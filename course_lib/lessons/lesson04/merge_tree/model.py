"""Lesson 04: the rows that the merge tree offers. The browser does the arithmetic of Welford and of
Chan's merge."""

from __future__ import annotations

from typing import Any

from course_lib.base.errors import CourseError
from course_lib.base.translation import gettext as _
from course_lib.base.translation import mark as N_
from course_lib.base.translation import translate_names
from course_lib.base.words import list_words

COLUMNS = 8
BLOCKS = (1, 2, 4, 8)
SPLIT = "split"  # two blocks, with a border that the learner moves
DTYPES = ("fp32", "fp16")
DATA = {
    "worked example": (2.0, -1.0, 3.0, 0.5, -0.5, 1.5, -2.0, 1.0),
    "two halves": (1.0, 3.0, 1.0, 3.0, 11.0, 13.0, 11.0, 13.0),
    "mean 10000": (10002.0, 9999.0, 10003.0, 10000.5, 9999.5, 10001.5, 9998.0, 10001.0),
}
NAMES = {
    "worked example": N_("worked example"),
    "two halves": N_("two halves"),
    "mean 10000": N_("mean 10000"),
}


def make_data(row: str, block: int | str, n: int, dtype: str) -> dict[str, Any]:
    """Return the rows, and the settings at the start.

    Raises: CourseError if there is no such row, block, N or dtype.
    """
    if (
        row not in DATA
        or block not in (*BLOCKS, SPLIT)
        or not 1 <= n <= COLUMNS
        or dtype not in DTYPES
    ):
        words = _(
            "the merge tree has the rows {rows}, blocks of {blocks} or {split!r}, N from 1 to"
            " {most} and the dtypes {dtypes}; you asked for {row!r}, block = {block}, N = {n},"
            " {dtype!r}."
        )
        choices = {
            "rows": list_words(DATA),
            "blocks": list_words(BLOCKS),
            "split": SPLIT,
            "most": COLUMNS,
            "dtypes": list_words(DTYPES),
        }
        raise CourseError(words.format(**choices, row=row, block=block, n=n, dtype=dtype))
    return {
        "start": {
            "row": row,
            "moved": None,
            "n": n,
            "parts": block,
            "split": n // 2,
            "dtype": dtype,
            "frame": 99 if block == SPLIT else 0,  # the browser stops at the last step
        },
        "rows": DATA,
        "names": translate_names(NAMES),
        "blocks": BLOCKS,
        "dtypes": DTYPES,
    }
