"""Lesson 13: the rows that a picture of the persistent kernel adds up. The browser does the
additions, of whole numbers."""

from __future__ import annotations

from typing import Any

from course_lib.base.errors import CourseError
from course_lib.base.translation import gettext as _
from course_lib.base.words import list_words

# dy * xhat of each row, small whole numbers that a reader can add up
PRODUCTS = (
    (2, 0, 1, -1),
    (1, 3, 0, 2),
    (0, -1, 4, 1),
    (3, 1, 1, 0),
    (-2, 2, 0, 1),
    (1, 1, -3, 2),
    (4, 0, 2, -1),
    (0, 2, 1, 3),
    (1, -2, 0, 1),
    (2, 1, 3, 0),
    (-1, 4, 1, 1),
    (0, 1, -2, 2),
)
MOST_ROWS = len(PRODUCTS)
PROGRAMS = (1, 2, 3, 4)
TILE_ROWS = (1, 2, 4)


def make_data(M: int, P: int, ROWS: int) -> dict[str, Any]:
    """Return the products of all rows, and the settings at the start, where no row is added yet.

    Raises: CourseError if there is no such M, P or ROWS.
    """
    if not 1 <= M <= MOST_ROWS or P not in PROGRAMS or ROWS not in TILE_ROWS:
        words = _(
            "the persistent walk has M from 1 to {most} rows, P = {programs} programs and tiles of"
            " {tiles} rows; you asked for M = {M}, P = {P}, ROWS = {ROWS}."
        )
        programs, tiles = (list_words(numbers) for numbers in (PROGRAMS, TILE_ROWS))
        raise CourseError(
            words.format(most=MOST_ROWS, programs=programs, tiles=tiles, M=M, P=P, ROWS=ROWS)
        )
    return {
        "start": {"m": M, "programs": P, "tile": ROWS, "frame": 0},
        "products": PRODUCTS,
        "counts": PROGRAMS,
        "tiles": TILE_ROWS,
    }
