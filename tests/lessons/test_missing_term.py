"""The widget of lesson 08: its error taken apart against the float64 reference, its words, and its controls."""

from __future__ import annotations

import base64
import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from course_lib.base.errors import CourseError
from course_lib.lessons import missing_term, style
from course_lib.lessons.live import VIEW
from course_lib.lessons.missing_term.model import (
    COLUMNS,
    EPS,
    GRADIENTS,
    KINDS,
    RATIOS,
    STD,
    TERMS,
    WEIGHTS,
    describe,
    model,
    name_cause,
    size,
)
from course_lib.lessons.missing_term.widget import draw
from course_lib.norms import reference

PNG = b"\x89PNG\r\n\x1a\n"
settings_of = {
    "kind": st.sampled_from(list(KINDS)),
    "term": st.sampled_from(list(TERMS["layer_norm"])),
    "ratio": st.sampled_from(RATIOS),
    "columns": st.sampled_from(COLUMNS),
    "weights": st.sampled_from(list(WEIGHTS)),
    "gradient": st.sampled_from(list(GRADIENTS)),
}


@settings(max_examples=150, deadline=None)
@given(**settings_of)
def test_the_parts_add_up_and_the_rest_is_at_right_angles_to_both_directions(
    kind, term, ratio, columns, weights, gradient
):
    state = model(kind, term, ratio, columns, weights, gradient)
    scale = size(state.error) + size(state.wdy)
    np.testing.assert_allclose(state.along_one + state.along_xhat + state.rest, state.error, atol=1e-9 * scale)
    assert abs(state.rest.mean()) < 1e-6 * scale and abs((state.rest * state.xhat).mean()) < 1e-6 * scale
    assert name_cause(state) and describe(state).endswith(".")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize("weights", WEIGHTS)
def test_the_true_dx_is_the_references_and_so_is_what_no_mistake_gives(kind, ratio, weights):
    state = model(kind, "none", ratio, 16, weights)
    rng = np.random.default_rng(16)
    noise = rng.standard_normal(16)
    x = STD * (ratio + (noise - noise.mean()) / noise.std())
    vjp = reference.layer_norm_vjp if kind == "layer_norm" else reference.rms_norm_vjp
    want = vjp([state.wdy], [x], None, EPS).dx[0]
    np.testing.assert_allclose(state.true, want, atol=1e-9)
    np.testing.assert_array_equal(state.dx, state.true)
    assert x.std() == pytest.approx(STD) and x.mean() == pytest.approx(STD * ratio, abs=1e-12)


@given(columns=st.sampled_from(COLUMNS), ratio=st.sampled_from(RATIOS))
def test_height_and_slope_are_the_missing_terms(columns, ratio):
    for term, has_c1, has_c2 in (("c1", 1, 0), ("c2", 0, 1), ("both", 1, 1)):
        state = model("layer_norm", term, ratio, columns)
        assert state.slope == pytest.approx(has_c1 * state.c1 * state.rstd, abs=1e-9)
        assert state.intercept == pytest.approx(has_c2 * state.c2 * state.rstd, abs=1e-9)
        assert size(state.rest) < 1e-9


@pytest.mark.parametrize(
    ("kind", "term", "words"),
    [
        ("layer_norm", "none", "No error"),
        ("layer_norm", "c1", "c1 is missing"),
        ("layer_norm", "c2", "c2 is missing"),
        ("layer_norm", "both", "both are missing"),
        ("layer_norm", "rstd", "factor of 1.73"),
        ("layer_norm", "w", "look at wdy"),
        ("layer_norm", "mean", "xhat is off"),
        ("layer_norm", "divisor", "1/N is missing"),
        ("rms_norm", "c1", "c1 is missing"),
        ("rms_norm", "c2", "RMSNorm has no c2"),
        ("rms_norm", "both", "c1 is missing, and RMSNorm has no c2"),
        ("rms_norm", "w", "look at wdy"),
        ("rms_norm", "mean", "xhat is off"),
        ("rms_norm", "divisor", "1/N is missing"),
    ],
)
@pytest.mark.parametrize("columns", [8, 16, 32])
def test_the_error_names_its_cause(kind, term, words, columns):
    assert words in name_cause(model(kind, term, columns=columns))


def test_bf16_statistics_look_like_wrong_row_sums_far_from_0_and_like_lost_digits_near_it():
    assert "digits are lost" in name_cause(model("layer_norm", "statistics", 0.0))
    state = model("layer_norm", "statistics", 100.0)
    assert "xhat is off" in name_cause(state) and size(state.error) > 0.02 * size(state.true)


def test_a_gradient_of_ones_with_w_1_hides_all_but_c2():
    seen = {
        term: size(s.error) > s.noise
        for term in TERMS["layer_norm"]
        for s in [model("layer_norm", term, 3.0, 16, "ones", "ones")]
    }
    assert {term for term in ("c1", "c2", "rstd", "w") if seen[term]} == {"c2"}
    state = model("layer_norm", "c1", 3.0, 16, "ones", "ones")
    assert "does not see" in name_cause(state) and "whatever returns 0 passes" in describe(state)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"kind": "batch_norm"}, "layer_norm"),
        ({"term": "c3"}, "'c1'"),
        ({"columns": 2}, "at least 3"),
        ({"weights": "twos"}, "'ones'"),
        ({"gradient": ""}, "'ones'"),
        ({"ratio": float("nan")}, "finite"),
    ],
)
def test_what_it_cannot_draw_it_says(arguments, words):
    with pytest.raises(CourseError, match=words):
        model(**arguments)
    with pytest.raises(CourseError):
        missing_term(kind=arguments.get("kind", "layer_norm"), term=arguments.get("term", "nothing"))


def test_the_picture_has_words_and_is_wide_enough_to_read():
    for kind, term in (("layer_norm", "none"), ("layer_norm", "mean"), ("rms_norm", "c2")):
        drawn = draw(model(kind, term))
        assert drawn.png.startswith(PNG) and drawn.caption in drawn.alt and name_cause(model(kind, term)) in drawn.alt
        assert Image.open(io.BytesIO(drawn.png)).size[0] == round(style.WIDTH * style.DPI)


def test_controls_redraw_and_the_words_of_the_mistake_follow_the_norm():
    widget = missing_term()
    before = widget.picture.png
    widget.controls["term"].value = "c2"
    assert "c2 is missing" in widget.caption and widget.picture.png != before
    widget.controls["kind"].value = "rms_norm"
    assert widget.controls["term"].value == "c2" and "RMSNorm has no c2" in widget.caption
    assert dict(widget.controls["term"].options)["a c2 put in"] == "c2"
    widget.controls["ratio"].value = 100.0
    widget.controls["columns"].value = 32
    assert "N = 32, mean/std = 100" in widget.caption and widget.error is None
    widget.reset()
    assert widget.picture.png == before and dict(widget.controls["term"].options)["c2 left out"] == "c2"


def test_a_reader_without_a_kernel_sees_the_picture():
    data, metadata = missing_term(term="c1")._repr_mimebundle_()
    assert base64.b64decode(data["image/png"]).startswith(PNG) and VIEW in data
    assert "c1 is missing" in metadata["image/png"]["alt"]
