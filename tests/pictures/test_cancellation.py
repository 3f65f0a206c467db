"""The cancellation explorer: its numbers against the algorithms, and what the browser makes of
them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from course_lib.base.errors import CourseError
from course_lib.lessons import cancellation
from course_lib.lessons.lesson03.cancellation.model import (
    DTYPES,
    EPS,
    NAMES,
    ORDERS,
    RATIOS,
    ROWS,
    UNORDERED,
    compute_curve,
    make_rows,
)
from course_lib.norms import statistics

START = {
    "algorithm": "one_pass",
    "order": "pairwise",
    "dtype": "fp32",
    "n": 1024,
    "ratio": 1000,
    "clamp": False,
}


@pytest.fixture(scope="module")
def picture():
    return cancellation(N=1024)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("algorithm", NAMES)
def test_a_curve_is_the_worst_of_the_rows_and_stays_below_its_bound(algorithm, dtype):
    x = make_rows(RATIOS, 64, dtype)
    for order in ORDERS if algorithm not in UNORDERED else ORDERS[1:]:
        curve = compute_curve(algorithm, order, dtype, 64, RATIOS)
        for i in range(len(RATIOS)):
            errors = []
            for row in x[i]:
                with np.errstate(all="ignore"):
                    var = float(
                        statistics.compute(algorithm, row[None], DTYPES[dtype], order).var[0]
                    )
                true = float(row.astype(np.float64).var())
                errors.append(
                    abs(var - true) / true
                    if math.isfinite(var) and true
                    else math.inf
                    if var != true
                    else 0
                )
            assert 0 <= curve["row"][i] < ROWS and errors[curve["row"][i]] == max(errors)
            if math.isfinite(max(errors)):
                assert max(errors) <= curve["bound"][i] * 1.01 + 1e-9


def test_the_terms_are_those_whose_difference_the_algorithm_returns():
    for algorithm in ("one_pass", "shifted"):
        curve = compute_curve(algorithm, "pairwise", "fp32", 1024, RATIOS)
        for (squares, square), var in zip(curve["terms"], curve["var"], strict=True):
            assert np.float32(squares) - np.float32(square) == np.float32(var)


def test_the_browser_says_what_the_algorithms_give(picture, show):
    shown = show(picture)
    x = make_rows(RATIOS, 1024, "fp32")[RATIOS.index(1000.0)]
    for algorithm in NAMES:
        seen = shown.call("explain", START | {"algorithm": algorithm})
        mean, var = statistics.compute(algorithm, x, np.float32, "pairwise")
        errors = np.abs(var / x.astype(np.float64).var(1) - 1)
        worst = int(errors.argmax())
        assert seen["got"] == pytest.approx(float(var[worst]), rel=1e-9)
        assert seen["error"] == pytest.approx(errors[worst], abs=1e-9)
        y = (x[worst, :12].astype(np.float64) - float(mean[worst])) / np.sqrt(
            float(var[worst]) + EPS
        )
        assert np.allclose(seen["y"], y, atol=2e-5)


def test_a_hand_and_the_keys_move_the_mean(picture, show):
    shown = show(picture)
    assert "at mean/std = 1000: " in shown.title and "% off, and y looks right" in shown.title
    before = shown.title
    shown.drag("ratio", dx=-150)
    assert shown.state["ratio"] < 300 and shown.title != before
    shown.grip("ratio").press("ArrowRight")
    moved = shown.state["ratio"]
    # the handle kept the focus while the picture was drawn anew
    shown.grip("ratio").press("ArrowLeft")
    assert RATIOS.index(moved) == RATIOS.index(shown.state["ratio"]) + 1
    shown.page.get_by_role("button", name="Reset").click()
    assert shown.title == before


def test_the_words_follow_the_numbers(picture, show):
    shown = show(picture)
    shown.set(algorithm="two_pass")
    assert "Two-pass at mean/std = 1000: right to " in shown.title
    shown.set(**START | {"ratio": 10000, "n": 8192})
    assert "the variance is negative, y is NaN" in shown.title and "NaN" in shown.drawn
    find_height = "document.querySelector('[data-picture]').stage.svg.querySelector('[data-key=ratio]').getBoundingClientRect().y"  # noqa: E501
    before = shown.page.evaluate(find_height)
    shown.set(clamp=True)
    assert shown.page.evaluate(find_height) > before + 5, "the point is at the relative error 1"
    assert "the variance is lost, y has 3" in shown.title and "clamped to 0" in shown.caption
    shown.set(**START | {"dtype": "fp16", "ratio": 3000, "algorithm": "one_pass"})
    assert "past the range of fp16" in shown.drawn
    shown.set(**START | {"dtype": "bf16", "ratio": 30000, "algorithm": "welford"})
    assert "right to the last digit" not in shown.title


def test_what_has_no_meaning_is_off(picture, show):
    shown = show(picture)
    order, clamp = (
        shown.page.locator(f'[data-control="{key}"] input').first for key in ("order", "clamp")
    )
    assert order.is_enabled() and clamp.is_enabled()
    shown.set(algorithm="welford")
    assert order.is_disabled() and clamp.is_disabled()


def test_it_looks_right_everywhere(picture, show):
    shown = show(picture)
    shown.shoot("cancellation")


def test_an_unknown_algorithm_is_said():
    with pytest.raises(CourseError, match="cancellation explorer knows"):
        cancellation(algorithm="three_pass")
