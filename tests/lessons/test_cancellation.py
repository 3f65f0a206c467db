"""The cancellation explorer: its numbers against the algorithms, its words, and the controls."""

from __future__ import annotations

import importlib
import math

import numpy as np
import pytest

from course_lib.base.errors import CourseError
from course_lib.lessons import cancellation
from course_lib.lessons.cancellation.widget import draw
from course_lib.norms import statistics

module = importlib.import_module("course_lib.lessons.cancellation.model")  # the package's attribute is the function
model, describe, title = module.model, module.describe, module.title


def test_the_shown_row_is_the_worst_and_its_numbers_are_the_algorithms():
    state = model("one_pass", 1000, 256, "fp32")
    x = module._data(256, 1000, "fp32")
    errors = np.abs(
        statistics.one_pass(x, np.float32, "pairwise").var.astype(np.float64) / x.astype(np.float64).var(axis=1) - 1
    )
    assert state.row.error == pytest.approx(errors.max(), rel=1e-9)
    point = next(p for p in state.points if p.ratio == 1000)
    assert point.error == state.row.error and point.bound >= state.row.bound > state.row.error
    assert len(state.row.y) == len(state.row.y_true) == 64
    assert state.row.mean_square_true == pytest.approx(1, abs=1e-4)


def test_one_pass_is_fine_at_10_and_useless_at_1000_and_looks_plausible():
    near, far = (model("one_pass", ratio, 4096, "fp32").row for ratio in (10, 1000))
    assert near.error < 1e-4 and far.error > 0.05
    assert max(map(abs, far.y)) < 6 and abs(np.mean(far.y)) < 0.5
    assert "looks as good as ever" in title(model("one_pass", 1000, 4096, "fp32"))
    assert model("two_pass", 1000, 4096, "fp32").row.error < 1e-6


def test_a_negative_variance_is_nan_or_clamped():
    lost, clamped = (model("one_pass", 10000, 8192, "fp32", clamp=clamp) for clamp in (False, True))
    assert lost.row.computed < 0 and all(math.isnan(value) for value in lost.row.y) and "y is NaN" in title(lost)
    assert clamped.row.computed == 0 and 310 < clamped.row.scale < 320 and "317 times too large" in title(clamped)
    assert "(clamped)" in describe(clamped) and "Negative variances at mean/std = " in describe(lost)


def test_overflow_and_a_vacuous_bound_are_said():
    assert "Inf" not in title(model("one_pass", 0, 16, "fp16"))
    broken = model("one_pass", 1000, 1024, "fp16")
    assert not broken.points[-1].finite and "leaves fp16's range" in describe(broken)
    assert "promises nothing" in describe(model("two_pass", 1, 4096, "bf16", "sequential"))


@pytest.mark.parametrize(
    ("algorithm", "dtype", "ratio"),
    [
        ("naive", "fp16", 0),
        ("one_pass", "fp16", 30000),
        ("shifted", "fp32", 30000),
        ("two_pass", "bf16", 1),
        ("welford", "fp16", 30000),
        ("chan", "fp32", 3),
    ],
)
def test_settings_draw_with_words(algorithm, dtype, ratio):
    shown = draw(model(algorithm, ratio, 16, dtype))
    assert shown.png.startswith(b"\x89PNG") and f"mean/std = {ratio}" in shown.alt and shown.caption in shown.alt


def test_bounds_hold_on_every_point_that_is_a_number():
    for algorithm in module.NAMES:
        for point in model(algorithm, 0, 1024, "fp32").points:
            assert point.error <= point.bound, (algorithm, point)


def test_the_controls_move_it_and_switch_off_what_has_no_meaning():
    widget = cancellation(N=256)
    first = widget.caption
    widget.controls["algorithm"].value = "welford"
    assert widget.caption != first and widget.controls["order"].disabled and widget.controls["clamp"].disabled
    widget.controls["ratio"].value = 10.0
    assert "right to" in widget.picture.alt
    widget.reset()
    assert widget.caption == first and not widget.controls["order"].disabled and widget.error is None


@pytest.mark.parametrize(
    "arguments",
    [
        ("three_pass", 1, 16, "fp32"),
        ("welford", 1, 16, "fp8"),
        ("welford", -1, 16, "fp32"),
        ("welford", 1, 1, "fp32"),
        ("chan", math.nan, 16, "fp32"),
    ],
)
def test_what_it_cannot_show_is_refused(arguments):
    with pytest.raises(CourseError, match="cancellation explorer knows"):
        model(*arguments)
