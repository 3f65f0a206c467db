"""The reduction tree: the steps against sums and logarithms, the roundings against NumPy, and what the picture says."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from course_lib.base.errors import CourseError
from course_lib.lessons import reduction_tree
from course_lib.lessons.reduction_tree.model import (
    DATA,
    DTYPES,
    THREADS,
    WARPS,
    WAYS,
    describe,
    model,
    title,
    values_of,
)
from course_lib.lessons.reduction_tree.widget import draw

POWERS = [1, 2, 4, 8, 16, 32, 64]


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
        len(step.held) == len(step.partners) == threads and step.working + step.idle == threads for step in made.steps
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
            assert all(partner == t ^ step.stride and step.partners[partner] == t for t, partner in pairs)
            assert all(t // warp == partner // warp for t, partner in pairs)
    assert made.barriers == (2 if threads > warp else 0)


def test_the_classic_picture_16_values_8_threads():
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


def test_in_a_tree_of_shared_memory_partners_lie_a_stride_apart():
    made = model(np.ones(64), 64)
    for step in made.steps:
        assert step.partners == tuple(t + step.stride if t < step.stride else None for t in range(64))


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


def test_the_words_say_who_adds_whom():
    made = model(np.arange(1, 17), 8)
    assert title(made, 2) == "Step 2 of 4: 4 threads add, 4 idle"
    assert "threads t = 0 to 3 add the number of thread t + 4" in describe(
        made, 2
    ) and "threads 4 to 7 are idle" in describe(made, 2)
    assert title(made, 4) == "4 steps of additions instead of 15: the sum is 136"
    assert "3 barriers" in describe(made, 4) and "Sum 136, exact." in describe(made, 4)
    swapped = model(np.arange(1, 17), 8, "shuffle", 4)
    assert "every thread t adds the number of thread t xor 2" in title(swapped, 2)
    assert "2 warps leave their sums in shared memory" in title(swapped, 4)
    assert "one after the other" in describe(model(values_of("near_ten", 24), 8, dtype="fp16"), 5)
    assert "thread 7 is idle" in describe(model(np.arange(15), 8), 1)


@pytest.mark.parametrize(
    ("n", "threads", "way", "done"),
    [
        (1, 2, "shared", 0),
        (1, 2, "shared", 1),
        (13, 16, "shuffle", 1),
        (13, 16, "shuffle", 6),
        (32, 4, "shared", 3),
        (16, 8, "shuffle", 5),
    ],
)
def test_frames_of_every_kind_can_be_drawn(n, threads, way, done):
    shown = draw(model(values_of("near_ten", n), threads, way, 4, "fp16"), done)
    assert shown.png.startswith(b"\x89PNG") and shown.caption in shown.alt


def test_the_widget_follows_its_controls_and_saves_the_last_step():
    widget = reduction_tree()
    assert len(widget.frames) == 5 and "Step 4 of 4" in widget._draw_frame(widget.frames, 4).caption
    assert widget.still().caption == describe(widget.frames[0][0], 4)
    assert widget.controls["warp"].disabled
    widget.controls["way"].value = "shuffle"
    assert not widget.controls["warp"].disabled and len(widget.frames) == 7 and widget.error is None
    widget.slider.value = 4
    assert "leave their sums" in widget.picture.alt
    widget.step.click()
    assert widget.slider.value == 5
    widget.controls["warp"].value = 16  # more than there are threads: one warp
    assert len(widget.frames) == 5 and widget.slider.value == 0
    for name, value in (("n", 1), ("threads", 16), ("warp", 4), ("data", "near_ten"), ("dtype", "fp16")):
        widget.controls[name].value = value
        assert widget.error is None


def test_every_choice_of_the_widget_has_a_model():
    for threads in THREADS:
        for warp in WARPS:
            for data in DATA:
                for dtype in DTYPES:
                    assert model(values_of(data, 13), threads, "shuffle", warp, dtype).steps


@pytest.mark.parametrize("wrong", [{"n": 0}, {"n": 33}, {"threads": 3}, {"warp": 32}, {"way": "smoke"}])
def test_the_widget_refuses_what_it_cannot_draw(wrong):
    with pytest.raises(CourseError, match="the reduction tree draws"):
        reduction_tree(**wrong)
