"""The missing term: model and browser against the float64 reference, what it says and what it
hides, and hands that press."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib.base.errors import CourseError
from course_lib.lessons import missing_term
from course_lib.lessons.lesson11.missing_term.model import (
    COLUMNS,
    EPS,
    GRADIENTS,
    KINDS,
    MYSTERIES,
    RATIOS,
    STD,
    TERMS,
    WEIGHTS,
    model,
    name_cause,
    size,
)
from course_lib.norms import reference

START = {
    "kind": "layer_norm", "term": "none", "hidden": None, "gradient": "random", "weights": "random",
    "ratio": 3, "columns": 16, "column": 0,
}  # fmt: skip
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
    np.testing.assert_allclose(
        state.along_one + state.along_xhat + state.rest, state.error, atol=1e-9 * scale
    )
    assert (
        abs(state.rest.mean()) < 1e-6 * scale
        and abs((state.rest * state.xhat).mean()) < 1e-6 * scale
    )
    assert name_cause(state)


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
        ("layer_norm", "both", "c1 and c2 are missing"),
        ("layer_norm", "rstd", "factor of 1.73"),
        ("layer_norm", "w", "look at wdy"),
        ("layer_norm", "mean", "xhat is wrong"),
        ("layer_norm", "divisor", "1/N is missing"),
        ("rms_norm", "c1", "c1 is missing"),
        ("rms_norm", "c2", "RMSNorm has no c2"),
        ("rms_norm", "both", "c1 is missing, and RMSNorm has no c2"),
        ("rms_norm", "w", "look at wdy"),
        ("rms_norm", "mean", "xhat is wrong"),
        ("rms_norm", "divisor", "1/N is missing"),
    ],
)
@pytest.mark.parametrize("columns", [8, 16, 32])
def test_the_error_names_its_cause(kind, term, words, columns):
    assert words in name_cause(model(kind, term, columns=columns))


def test_bf16_statistics_look_like_wrong_row_sums_far_from_0_and_like_lost_digits_near_it():
    assert "digits are lost" in name_cause(model("layer_norm", "statistics", 0.0))
    state = model("layer_norm", "statistics", 100.0)
    assert "xhat is wrong" in name_cause(state) and size(state.error) > 0.02 * size(state.true)


def test_a_gradient_of_ones_with_w_1_hides_all_but_c2():
    seen = {
        term: size(s.error) > s.noise
        for term in TERMS["layer_norm"]
        for s in [model("layer_norm", term, 3.0, 16, "ones", "ones")]
    }
    assert {term for term in ("c1", "c2", "rstd", "w") if seen[term]} == {"c2"}
    assert "does not see" in name_cause(model("layer_norm", "c1", 3.0, 16, "ones", "ones"))


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
        missing_term(
            kind=arguments.get("kind", "layer_norm"), term=arguments.get("term", "nothing")
        )


# ---- the picture


def test_a_picture_that_opens_with_a_mystery_does_not_tell_it(show):
    assert sorted(MYSTERIES) == sorted(TERMS["layer_norm"].keys() - {"none"})
    shown = show(missing_term(mystery=1))
    assert (
        shown.state["hidden"] == "c1"
        and shown.state["term"] is None
        and "which one?" in shown.title
    )
    for across in ("column", "xhat"):
        assert shown.state["across"] == across
        said = f"{shown.title} {shown.caption} {shown.alt} {shown.drawn}"
        assert not any(
            told in said for told in ("is missing", "* rstd", "error = ", "along", "slope")
        ), said
        shown.page.get_by_role("radio", name="xhat", exact=True).check()
    shown.page.get_by_role("radio", name="c2", exact=True).check()
    assert "hollow" in shown.title and "along xhat" not in f"{shown.caption} {shown.drawn}"
    shown.page.get_by_role("radio", name="c1", exact=True).check()
    assert "c1 * rstd is -0.117" in shown.caption and "along xhat" in shown.drawn
    with pytest.raises(CourseError, match="1 to 8"):
        missing_term(mystery=9)


@pytest.fixture
def shown(show):
    return show(missing_term())


def test_the_browser_takes_the_error_apart_as_the_model_does(shown):
    for kind, term, ratio, columns, same in itertools.product(
        KINDS, TERMS["layer_norm"], (0.0, 3.0, 100.0), (3, 16), ("random", "ones")
    ):
        changes = {
            "kind": kind,
            "term": term,
            "ratio": ratio,
            "columns": columns,
            "weights": same,
            "gradient": same,
        }
        want = model(kind, term, ratio, columns, same, same)
        seen = shown.call("explain", START | changes)
        scale = size(want.error) + size(want.wdy) * want.rstd
        for name, values in {
            "dx": want.dx,
            "right": want.true,
            "error": want.error,
            "rest": want.rest,
        }.items():
            assert seen[name] == pytest.approx(values.tolist(), abs=1e-9 * scale), (name, changes)
        assert (seen["slope"], seen["intercept"]) == pytest.approx(
            (want.slope, want.intercept), abs=1e-9 * scale
        )
        assert shown.call("name", START | changes) == name_cause(want), changes


def test_a_hidden_mistake_is_named_from_the_points_and_not_before(shown):
    for _ in range(5):
        shown.page.get_by_role("button", name="Hide a mistake").click()
        hidden = shown.state["hidden"]
        assert hidden in TERMS["layer_norm"] and hidden != "none" and shown.state["term"] is None
        said = f"{shown.title} {shown.caption} {shown.alt} {shown.drawn}"
        assert (
            name_cause(model("layer_norm", hidden)) not in said
            and TERMS["layer_norm"][hidden] not in said
        )
    shown.set(hidden="c1", term=None)
    shown.page.get_by_role("radio", name="c2", exact=True).check()
    assert (
        shown.title == "Not “c2 left out”: that mistake would give the hollow points"
        and "your guess" in shown.drawn
    )
    assert "c1 left out" not in shown.caption
    shown.page.get_by_role("radio", name="c1", exact=True).check()
    assert shown.title == "Yes, c1 left out. The error is c1 * rstd along xhat: c1 is missing"
    shown.set(hidden="c1", term="w", weights="ones", gradient="ones")
    assert (
        "both mistakes give the same dx" in shown.title
        and "the true dx is 0: any code that returns 0 passes." in shown.caption
    )
    shown.page.get_by_role("button", name="Choose it myself").click()
    assert shown.title == "No error"
    shown.page.get_by_role("radio", name="c1", exact=True).check()
    assert shown.title == "This test does not see the mistake"


def test_a_column_is_pressed_in_either_drawing(shown):
    shown.set(term="c1")
    want = model("layer_norm", "c1")
    for key, column in (("column-8", 8), ("bar-12", 12)):
        shown.grip(key).click()
        assert (
            f"Column {column}: dx is {want.dx[column]:.3g} and should be {want.true[column]:.3g}."
            in shown.caption
        )
    shown.page.locator('[data-control="column"] input').press("ArrowLeft")
    assert "Column 11:" in shown.caption


def test_it_looks_right_everywhere(shown):
    states = [
        {"kind": kind, "term": term, "hidden": hidden, "columns": columns, "ratio": ratio}
        for kind, term, hidden, columns, ratio in itertools.product(
            KINDS, TERMS["layer_norm"], (None, "c1", "divisor"), (3, 32), (3, 1000)
        )
    ]
    shown.assert_clear(states)
    shown.set(**START | {"hidden": "c1", "term": "both"})
    shown.shoot("missing_term")
    shown.set(**START | {"hidden": "w", "term": None, "column": 4})
    shown.shoot("missing_term-hidden")
