"""The block stepper as lesson 01 uses it: rows that the reader types, eps, and numbers that are small."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib.base.errors import CourseError
from course_lib.lessons import block_stepper
from course_lib.lessons.block_stepper.model import TYPED, describe, parsed, steps
from course_lib.lessons.block_stepper.widget import draw
from course_lib.lessons.words import format_decimal
from course_lib.norms import reference


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("8 11 12 9 10", [[8, 11, 12, 9, 10]]),
        ("1 2 6; 101 102 106", [[1, 2, 6], [101, 102, 106]]),
        ("1,2 ; -.5, 1e-3;", [[1, 2], [-0.5, 0.001]]),
        ("3\n4", [[3], [4]]),
    ],
)
def test_rows_are_read_as_they_are_typed(text, rows):
    assert parsed(text).tolist() == rows


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no row yet"),
        (" ; ;", "no row yet"),
        ("1 2; 3", "these have 2, 1"),
        ("1 two", "'two' is not a number"),
        ("1 nan", "nan cannot be drawn"),
        ("inf", "inf cannot be drawn"),
        ("1e7", "1e7 cannot be drawn"),
        (" ".join(["1"] * 17), "16 columns"),
        (";".join(["1"] * 7), "6 rows"),
    ],
)
def test_what_cannot_be_shown_is_refused_in_words(text, words):
    with pytest.raises(CourseError, match=words):
        parsed(text)


def test_the_reader_types_rows_and_sees_their_norm():
    widget = block_stepper("layer_norm")
    assert widget.controls["typed"].layout.display == "none"
    widget.controls["data"].value = TYPED
    assert widget.controls["typed"].layout.display is None and widget.controls["rows"].disabled
    widget.controls["typed"].value = "1 2 6; 101 102 106"
    assert (widget.controls["rows"].value, widget.controls["columns"].value) == (2, 3)
    assert "row 0 of 2 x 3" in widget.caption
    last = widget.frames[-1].rows
    assert np.allclose(last[0].y, last[1].y)  # a shift changes nothing
    widget.controls["kind"].value = "rms_norm"
    last = widget.frames[-1].rows
    assert not np.allclose(last[0].y, last[1].y, atol=0.1)


def test_a_typing_error_is_told_in_place_of_the_picture_and_is_gone_when_mended():
    widget = block_stepper("rms_norm")
    widget.controls["data"].value = TYPED
    widget.controls["typed"].value = "1 2; 3"
    assert (
        isinstance(widget.error, CourseError)
        and "these have 2, 1" in widget.caption
        and "fault of the course" not in widget.caption
    )
    widget.controls["typed"].value = "1 2; 3 4"
    assert widget.error is None and "row 0 of 2 x 2" in widget.caption
    widget.controls["typed"].value = "oops"
    widget.reset()
    assert widget.error is None and "row 0 of 3 x 8" in widget.caption


def test_eps_is_what_the_frames_use():
    widget = block_stepper("rms_norm")
    widget.controls["data"].value = TYPED
    widget.controls["typed"].value = ".002 -.002"
    for eps in (1e-12, 1e-3):
        widget.controls["eps"].value = eps
        assert np.allclose(widget.frames[-1].rows[0].y, reference.rms_norm([[0.002, -0.002]], eps=eps).y[0], rtol=1e-12)
    assert "eps = 0.001 matters here: without it rstd would be 500." in describe(widget.frames[0])
    widget.controls["eps"].value = 1e-12
    assert "matters here" not in describe(widget.frames[0])


@pytest.mark.parametrize("kind", ["layer_norm", "rms_norm"])
def test_a_row_without_spread_and_without_eps_is_no_number_and_is_drawn(kind):
    frames = steps([[0.0, 0.0, 0.0]], 2, kind, eps=0.0)
    assert np.isnan(frames[-1].rows[0].y).all() and frames[-1].rows[0].rstd == np.inf
    told = next(frame for frame in frames if frame.rows[0].rstd is not None)
    assert "is no number" in describe(told)
    for index in range(len(frames)):
        assert draw(frames, index).png.startswith(b"\x89PNG")
    assert steps([[0.0, 0.0, 0.0]], 2, kind, eps=1e-5)[-1].rows[0].y == (0, 0, 0)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.002, "2e-3"),
        (4e-6, "4e-6"),
        (-0.0009, "-9e-4"),
        (0.01, "0.01"),
        (1e-16, "0"),
        (0.0, "0"),
        (25000.0, "25000"),
        (250000.0, "2.5e5"),
        (None, "-"),
        (np.nan, "NaN"),
        (-1.5, "-1.5"),
    ],
)
def test_small_numbers_are_not_shown_as_zero(value, text):
    assert format_decimal(value) == text


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.floats(-1e5, 1e5).map(lambda v: round(v, 3)), min_size=1, max_size=16), st.sampled_from([2, 4, 8, 16])
)
def test_any_typed_row_gives_the_norm_of_that_row(values, block):
    x = parsed(" ".join(map(str, values)))
    assert np.array_equal(x[0], values)
    y = steps(x, block, "layer_norm", 0.1)[-1].rows[0].y
    assert np.allclose(y, reference.layer_norm(x, eps=0.1).y[0], rtol=1e-9, atol=1e-6)
