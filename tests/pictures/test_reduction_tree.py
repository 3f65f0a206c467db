"""The reduction tree: the model against sums and NumPy's rounding, the browser's steps against the
model, and a number followed by hand."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from course_lib.base.errors import CourseError
from course_lib.lessons import reduction_tree
from course_lib.lessons.lesson06.reduction_tree.model import (
    DATA,
    DTYPES,
    THREADS,
    WARPS,
    WAYS,
    model,
    values_of,
)

POWERS = [1, 2, 4, 8, 16, 32, 64]
START = {
    "n": 16,
    "threads": 8,
    "way": "shared",
    "warp": 4,
    "row": "counting",
    "dtype": "fp32",
    "done": 0,
    "picked": None,
}
LAST = 99


@settings(max_examples=120, deadline=None)
@given(
    n=st.integers(1, 150),
    threads=st.sampled_from(POWERS),
    way=st.sampled_from(list(WAYS)),
    warp=st.sampled_from(POWERS),
)
def test_thread_0_ends_with_the_sum_in_the_fewest_steps(n, threads, way, warp):
    values = np.arange(n) - n // 3
    assume(way == "shared" or threads <= warp * warp)
    made = model(values, threads, way, warp)
    assert made.sum == values.sum() == made.exact == made.sequential
    alone, together = max(0, math.ceil(n / threads) - 1), int(math.log2(threads))
    assert [step.kind for step in made.steps].count("own") == alone
    assert len(made.additions) == alone + together
    assert all(
        len(step.held) == len(step.partners) == threads and step.working + step.idle == threads
        for step in made.steps
    )


@settings(max_examples=60, deadline=None)
@given(n=st.integers(1, 70), threads=st.sampled_from(POWERS), warp=st.sampled_from(POWERS))
def test_shuffles_stay_inside_a_warp_and_leave_the_sum_everywhere(n, threads, warp):
    assume(threads <= warp * warp)
    made = model(np.arange(n), threads, "shuffle", warp)
    last = made.steps[-1].held if made.steps else made.loaded
    assert set(last) == {n * (n - 1) / 2}
    for step in made.steps:
        if step.kind == "shuffle":
            pairs = [(t, partner) for t, partner in enumerate(step.partners) if partner is not None]
            assert all(
                partner == t ^ step.stride and step.partners[partner] == t for t, partner in pairs
            )
            assert all(t // warp == partner // warp for t, partner in pairs)
    assert made.barriers == (2 if threads > warp else 0)


def test_the_classic_tree_of_16_values_and_8_threads():
    made = model(np.arange(1, 17), 8)
    assert [step.stride for step in made.steps] == [8, 4, 2, 1]
    assert [step.working for step in made.steps] == [8, 4, 2, 1] and made.idle == 17
    assert made.steps[0].partners == tuple(range(8, 16)) and made.steps[1].partners == (
        4,
        5,
        6,
        7,
        None,
        None,
        None,
        None,
    )
    assert made.steps[1].held[:4] == (28, 32, 36, 40)
    assert made.barriers == 3  # the first step needs nobody


@pytest.mark.parametrize("way", WAYS)
def test_every_addition_is_rounded_to_the_dtype(way):
    values = values_of("near_ten", 32)
    made = model(values, 8, way, 4, "fp16")
    lanes = values.astype(np.float16)
    held = lanes[:8]
    for start in (8, 16, 24):
        held = held + lanes[start : start + 8]
    if way == "shared":
        held = held[:4] + held[4:]
        held = held[:2] + held[2:]
    else:  # inside each warp of 4, then across
        held = held.reshape(2, 4)
        held = held[:, :2] + held[:, 2:]
        held = held[:, 0] + held[:, 1]
    assert made.sum == float(held[0] + held[1]) and held.dtype == np.float16
    running = np.float16(0)
    for value in lanes:
        running = np.float16(running + value)
    assert made.sequential == float(running) != made.exact


def test_padded_threads_hold_zero_and_add_nothing():
    made = model([5.0, 7.0, 11.0], 8)
    assert made.loaded == (5, 7, 11, 0, 0, 0, 0, 0) and made.sum == 23


@pytest.mark.parametrize(
    "arguments",
    [
        ([], 8),
        (np.ones((2, 2)), 8),
        ([1.0], 6),
        ([1.0], 0),
        ([1.0], 8, "magic"),
        ([1.0], 8, "shuffle", 3),
        ([1.0], 8, "shuffle", 2),
        ([1.0], 8, "shared", 4, "fp8"),
    ],
)
def test_what_does_not_fit_is_refused_in_words(arguments):
    with pytest.raises(CourseError, match=r"reduction tree|powers of two|ways|at most 2 warps"):
        model(*arguments)


def test_the_browser_takes_the_same_steps(show):
    shown = show(reduction_tree())
    for n, threads, way, warp, row, dtype in itertools.product(
        (1, 5, 13, 32), THREADS, WAYS, WARPS, DATA, DTYPES
    ):
        if way == "shared" and warp != WARPS[0]:
            continue
        seen = shown.call(
            "explain",
            START
            | {"n": n, "threads": threads, "way": way, "warp": warp, "row": row, "dtype": dtype},
        )
        made = model(values_of(row, n), threads, way, warp, dtype)
        assert tuple(seen["loaded"]) == made.loaded
        for drawn, step in zip(seen["steps"], made.steps, strict=True):
            assert (drawn["kind"], drawn["stride"], tuple(drawn["held"])) == (
                step.kind,
                step.stride,
                step.held,
            )
            assert tuple(drawn["partners"]) == step.partners and drawn["working"] == step.working
        assert (seen["sum"], seen["sequential"], seen["barriers"], seen["idle"]) == (
            made.sum,
            made.sequential,
            made.barriers,
            made.idle,
        )
        assert seen["additions"] == len(made.additions) and seen["exact"] == pytest.approx(
            made.exact, rel=1e-12
        )


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("threads", [4, 16])
def test_what_went_into_a_number_adds_up_to_it(show, way, threads):
    shown = show(reduction_tree(29, threads, way))
    state = START | {"n": 29, "threads": threads, "way": way}
    values = values_of("counting", 29)
    made = model(values, threads, way, 4)
    own = sum(step.kind == "own" for step in made.steps)
    rows = math.ceil(29 / threads)
    for done, step in enumerate(made.steps, 1):
        for thread, partner in enumerate(step.partners):
            if partner is None:
                continue
            followed = shown.call(
                "follow", state | {"done": done, "picked": [rows + max(done - own, 0), thread]}
            )
            assert values[followed["inside"]].sum() == step.held[thread] == followed["held"]


def test_a_value_goes_to_thread_0_and_by_shuffles_to_all(show):
    shown = show(reduction_tree())
    shown.grip("cell-1-5").click()  # x[13], which no thread has read yet
    assert shown.title == "No thread has read x[13] yet"
    shown.set(done=LAST)
    assert shown.title == "The number of thread 0 now contains x[13]"
    assert "The way of x[13] = 14: thread 5, then thread 1, then thread 0." in shown.caption
    shown.set(way="shuffle")
    assert shown.title == "The numbers of 8 threads now contain x[13]"


def test_a_number_is_followed_by_hand_and_by_keys(show):
    shown = show(reduction_tree())
    shown.grip("cell-4-0").click()  # the last line: the steps up to it are taken
    assert (
        shown.state["done"] == 3
        and "Thread 0 holds 64, the sum of x[0] + x[2] + x[4] + x[6] + x[8]" in shown.caption
    )
    shown.grip("picked").press("ArrowUp")
    shown.grip("picked").press("ArrowRight")  # the focus went along
    assert (
        shown.state["picked"] == [3, 1]
        and shown.title == "Thread 1 holds the sum of 4 of the 16 values"
    )
    shown.grip("picked").press("Enter")
    assert shown.state["picked"] is None and shown.title == "Step 3 of 4: 2 threads add, 6 are idle"


def test_the_words_say_who_adds_whom(show):
    shown = show(reduction_tree())
    step = shown.page.get_by_role("button", name="Step", exact=True)
    step.click()
    step.click()
    assert shown.title == "Step 2 of 4: 4 threads add, 4 are idle"
    assert (
        "each thread t from 0 to 3 adds the number of thread t + 4" in shown.caption
        and "threads 4 to 7 are idle" in shown.caption
    )
    shown.set(done=LAST)
    assert shown.title == "4 steps of additions instead of 15 steps: the sum is 136"
    assert "3 barriers" in shown.caption and "The sum is 136, without error." in shown.caption
    shown.set(way="shuffle", done=2)
    assert "every thread t adds the number of thread t xor 2" in shown.title
    shown.set(done=4)
    assert "2 warps leave their sums in shared memory" in shown.title
    shown.set(**START | {"row": "near_ten", "n": 24, "dtype": "fp16", "done": LAST})
    assert "one value after the other" in shown.caption
    shown.set(**START | {"n": 15, "done": 1})
    assert "thread 7 is idle" in shown.caption


def test_it_looks_right_everywhere(show):
    shown = show(reduction_tree())
    shown.set(done=2, picked=[3, 1])
    shown.shoot("reduction_tree")
    shown.set(way="shuffle", done=LAST, picked=None)
    shown.shoot("reduction_tree-shuffle")
    shown.assert_clear(
        [
            {
                "n": n,
                "threads": threads,
                "way": way,
                "warp": warp,
                "row": "near_ten",
                "done": done,
                "picked": picked,
            }
            for n, threads, way, warp in itertools.product((1, 13, 32), THREADS, WAYS, (4, 16))
            for done, picked in ((0, None), (3, [1, 1]), (LAST, [3, 0]))
        ]
    )


@pytest.mark.parametrize(
    "wrong", [{"n": 0}, {"n": 33}, {"threads": 3}, {"warp": 32}, {"way": "smoke"}]
)
def test_what_it_cannot_draw_is_refused(wrong):
    with pytest.raises(CourseError, match="the reduction tree draws"):
        reduction_tree(**wrong)
