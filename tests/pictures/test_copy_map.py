"""The copy map: what the browser says a launch does, against a launch made with NumPy; its words; a
hand that moves it."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from course_lib.base.errors import CourseError
from course_lib.lessons import copy_map
from course_lib.lessons.lesson00.copy_map.model import BLOCKS, MAX_N

START = {"n": 10, "block": 4, "masked": True, "grid": "cdiv", "at": 6}
MEMORY = 64


def launch(n: int, block: int, programs: int, masked: bool) -> np.ndarray:
    """The numbers from the start of y after a copy of x; elements of y begin as NaN, what lies
    behind it is -1."""
    x, y = 99.0 - np.arange(MEMORY), np.where(np.arange(MEMORY) < n, np.nan, -1.0)
    for program in range(programs):
        offsets = program * block + np.arange(block)
        kept = offsets[offsets < n] if masked else offsets
        y[kept] = x[kept]
    return y


@pytest.fixture
def shown(show):
    return show(copy_map())


def test_the_browser_does_what_the_kernel_does(shown):
    states = [
        {"n": n, "block": block, "masked": masked, "grid": grid}
        for n, block, masked, grid in itertools.product(
            (1, 7, 8, 33, MAX_N), BLOCKS, (True, False), ("floor", "cdiv", "more")
        )
    ]
    told = shown.page.evaluate(
        "states => states.map(document.querySelector('[data-picture]').stage.made.explain)", states
    )
    for state, seen in zip(states, told, strict=True):
        n, block = state["n"], state["block"]
        programs = {"floor": n // block, "cdiv": -(-n // block), "more": -(-n // block) + 1}[
            state["grid"]
        ]
        want = launch(n, block, programs, state["masked"])
        assert [np.nan if y is None else y for y in seen["y"]] == pytest.approx(
            want.tolist(), nan_ok=True
        ), state
        assert (
            seen["missed"] == np.isnan(want).sum() and seen["overwritten"] == (want[n:] != -1).sum()
        )


def test_lanes_are_counted_in_each_program(shown):
    cells = shown.grip("at-9").locator("text").all_text_contents()
    assert [words.strip() for words in cells] == ["90", "1", "90"]  # x, lane 1 of program 2, y


def test_a_lane_says_what_it_reads_and_writes(shown):
    shown.grip("at-9").click()
    assert (
        "Program 2, lane 1: offset 2 · 4 + 1 = 9. The lane reads x[9] = 90 and writes this value to"
        " y[9]." in shown.caption
    )
    shown.grip("at-11").click()
    assert "11 < 10 is false: the lane reads nothing and writes nothing" in shown.caption
    shown.page.get_by_label("mask = offsets < n").click()
    assert "reads 88 from behind x, and overwrites -1 behind y" in shown.caption
    assert (
        "Offsets 10 to 11 lie outside y, and were overwritten" in shown.caption
        and "2 numbers of another tensor are gone" in shown.title
    )
    shown.grip("at-12").click()
    assert "Offset 12 lies behind y, and no lane has this offset" in shown.caption


@pytest.mark.parametrize(
    ("changes", "title", "caption"),
    [
        ({}, "The mask holds back 2 lanes of program 2", "3 programs of 4 lanes for n = 10"),
        ({"n": 8}, "every lane has an element", "2 programs"),
        ({"n": 8, "masked": False}, "nothing shows that the mask is missing", "2 programs"),
        (
            {"n": 9, "grid": "floor"},
            "2 programs are too few: 1 element of y is never written",
            "Element 8 of y was never",
        ),
        (
            {"grid": "floor", "masked": False, "at": 8},
            "never written",
            "No lane has offset 8, so y[8] keeps",
        ),
        (
            {"n": 3, "grid": "floor"},
            "A grid of 0 programs",
            "Elements 0 to 2 of y were never written",
        ),
        ({"grid": "more"}, "One program more than needed", "4 programs"),
        (
            {"n": 11, "masked": False},
            "1 number of another tensor is gone",
            "Offset 11 lies outside y, and was overwritten",
        ),
    ],
)
def test_the_words_follow_the_launch(shown, changes, title, caption):
    shown.set(**START | changes)
    assert title in shown.title and caption in shown.caption


def test_a_hand_and_the_keys_move_n(shown):
    shown.drag("n", dx=150)
    assert shown.state["n"] == 15
    shown.grip("n").press("ArrowRight")
    assert shown.state["n"] == 16 and "16 is 4 × 4" in shown.title
    shown.drag("n", dx=0, dy=174)  # to the second line of memory, which begins at 32
    assert shown.state["n"] == MAX_N
    shown.page.get_by_label("offset", exact=True).press("ArrowRight")
    assert shown.state["at"] == 7


def test_it_looks_right_everywhere(shown):
    states = [
        {"n": n, "block": block, "masked": masked, "grid": grid, "at": at}
        for n, block, masked, grid, at in itertools.product(
            (1, 16, 33), (2, 16), (True, False), ("floor", "more"), (0, 40)
        )
    ]
    shown.assert_clear(states)
    shown.set(**START | {"masked": False, "at": 11})
    shown.shoot("copy_map")


@pytest.mark.parametrize("wrong", [{"n": 0}, {"n": MAX_N + 1}, {"block": 3}, {"block": 0}])
def test_wrong_arguments_are_refused_in_words(wrong):
    with pytest.raises(CourseError, match="copy_map"):
        copy_map(**wrong)
