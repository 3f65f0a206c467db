"""The persistent walk: the browser's tiles and sums against the kernel's rule, and what the words
say."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from course_lib.base.errors import CourseError
from course_lib.lessons import persistent_walk
from course_lib.lessons.lesson13.persistent_walk.model import (
    MOST_ROWS,
    PRODUCTS,
    PROGRAMS,
    TILE_ROWS,
)

LAST = 99


def test_every_row_is_added_once_by_the_program_of_its_tile(show):
    shown = show(persistent_walk())
    products = np.array(PRODUCTS)
    for m, programs, tile in itertools.product((1, 4, 11, MOST_ROWS), PROGRAMS, TILE_ROWS):
        state = {"m": m, "programs": programs, "tile": tile}
        turns = math.ceil(math.ceil(m / tile) / programs)
        for frame in (0, 1, turns, turns + 1, LAST):
            seen = shown.call("explain", state | {"frame": frame})
            assert seen["frames"] == 1 + turns + 1 + programs
            for program, walk in enumerate(seen["walks"]):
                turn = min(frame, turns)
                rows = [
                    row
                    for row in range(m)
                    if row // tile % programs == program and row // tile // programs < turn
                ]
                assert walk["rows"] == rows
                assert walk["partial"] == products[rows].sum(axis=0).tolist()
        assert seen["dw"] == products[:m].sum(axis=0).tolist()


def test_stage_two_adds_the_partial_sums_in_the_order_of_the_programs(show):
    shown = show(persistent_walk(M=11, P=3, ROWS=2))
    partials = [
        walk["partial"] for walk in shown.call("explain", shown.state | {"frame": LAST})["walks"]
    ]
    for added in range(4):
        seen = shown.call("explain", shown.state | {"frame": 3 + added})
        assert (seen["added"], seen["dw"]) == (
            added,
            np.sum(partials[:added], axis=0, dtype=int).tolist() if added else [0] * 4,
        )


def test_the_words_say_what_happens(show):
    shown = show(persistent_walk(M=11, P=3, ROWS=2))
    assert (
        shown.title == "3 programs, 6 tiles: nothing is read yet"
        and "p + 3, p + 6" in shown.caption
    )
    shown.page.get_by_role("button", name="Step", exact=True).click()
    assert (
        shown.title
        == "Turn 1: program 0 adds tile 0, program 1 adds tile 1 and program 2 adds tile 2"
    )
    shown.set(frame=2)
    assert (
        "Program 1 has added rows 2, 3, 8 and 9." in shown.caption
        and "Program 2 has added rows 4, 5 and 10." in shown.caption
    )
    shown.set(frame=3)
    assert (
        shown.title == "No tile is left: each program stores its partial dw, once"
        and "in memory" in shown.drawn
    )
    shown.set(frame=4)
    assert shown.title == "Stage two adds the partial dw of program 0"
    shown.set(frame=LAST)
    assert (
        shown.title == "dw is complete: 3 rows of partial sums were stored for 11 rows of dy"
        and "dw is 11, 11, 10 and 9." in shown.caption
    )
    shown.set(m=4, frame=1)
    assert "Program 2 has no tile, and stores zeros." in shown.caption


def test_it_looks_right_everywhere(show):
    shown = show(persistent_walk())
    for name, frame in (("", 2), ("-two", 5)):
        shown.set(frame=frame)
        shown.shoot(f"persistent_walk{name}")
    states = [
        {"m": m, "programs": programs, "tile": tile, "frame": frame}
        for m, programs, tile, frame in itertools.product(
            (1, 5, MOST_ROWS), PROGRAMS, TILE_ROWS, (0, 1, 4, LAST)
        )
    ]

    def look() -> None:
        inside = shown.page.locator("svg.drawing").bounding_box()
        for box in (
            cell.bounding_box() for cell in shown.page.locator("svg.drawing rect").all()[-8:]
        ):
            assert box["x"] + box["width"] <= inside["x"] + inside["width"] + 1, shown.state

    shown.assert_clear(states)
    for width in (700, 900, 400):
        shown.set_width(width)
        shown.set(m=MOST_ROWS, programs=4, tile=2, frame=LAST)
        look()


@pytest.mark.parametrize("wrong", [{"M": 0}, {"M": MOST_ROWS + 1}, {"P": 5}, {"ROWS": 3}])
def test_what_it_cannot_show_is_refused(wrong):
    with pytest.raises(CourseError, match="persistent walk has M"):
        persistent_walk(**wrong)
