"""The projection: its model and the browser's vectors against the float64 reference, its words, and
hands that drag the arrows."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib.base.errors import CourseError
from course_lib.lessons import projection
from course_lib.lessons.lesson10.projection.model import EPS, KINDS, STDS, model, push, row
from course_lib.norms import reference

VJPS = {"layer_norm": reference.layer_norm_vjp, "rms_norm": reference.rms_norm_vjp}
START = {
    "kind": "layer_norm", "eps": 0, "where": False, "turn": 130, "length": 1.8, "mean": 0.75,
    "xTurn": 60, "xMean": 0.5, "xStd": 1, "view": 285,
}  # fmt: skip
angles, numbers = st.integers(0, 359), st.floats(-3, 3)


@settings(max_examples=80, deadline=None)
@given(
    kind=st.sampled_from(list(KINDS)), eps=st.sampled_from(EPS), x_turn=angles, x_mean=numbers,
    x_std=st.sampled_from(STDS), turn=angles,
    mean=numbers,
)  # fmt: skip
def test_the_vectors_are_the_references(kind, eps, x_turn, x_mean, x_std, turn, mean):
    x, wdy = row(x_turn, x_mean, x_std), push(turn, mean)
    state = model(kind, x, wdy, eps)
    np.testing.assert_allclose(
        state.dx, VJPS[kind]([wdy], [x], None, eps).dx[0], rtol=1e-9, atol=1e-9 * state.rstd
    )
    np.testing.assert_allclose(state.along_one + state.along_xhat + state.left, wdy, atol=1e-12)
    # what comes through along xhat is the share eps * rstd^2 of what wdy has there, and along 1
    # nothing
    assert (state.left * state.xhat).mean() == pytest.approx(state.c1 * state.kept, abs=1e-9)
    if kind == "layer_norm":
        assert state.left.mean() == pytest.approx(0, abs=1e-12)
    if eps == 0:
        np.testing.assert_allclose(state.again, state.left, atol=1e-9)


@given(turn=angles, mean=numbers, std=st.floats(0.01, 5))
def test_rows_have_the_statistics_that_were_asked_for(turn, mean, std):
    x = row(turn, mean, std)
    assert x.mean() == pytest.approx(mean, abs=1e-9) and x.std() == pytest.approx(std)
    assert push(turn, mean).mean() == pytest.approx(mean, abs=1e-9)
    assert np.linalg.norm(push(turn, mean) - mean) == pytest.approx(1.8)


def test_layer_norm_leaves_one_line_and_rms_norm_a_plane():
    x = row(60, 0.5, 1.0)
    left = {
        kind: np.array([model(kind, x, push(turn, 0.7)).left for turn in range(0, 360, 20)])
        for kind in KINDS
    }
    assert [np.linalg.matrix_rank(left[kind], tol=1e-9) for kind in ("layer_norm", "rms_norm")] == [
        1,
        2,
    ]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("batch_norm", [1, 2, 3], [1, 2, 3]), "layer_norm and rms_norm"),
        (("layer_norm", [1, 2], [1, 2]), "three numbers each"),
        (("layer_norm", [1, 2, 3], [1, 2, 3], -1.0), "cannot be negative"),
        (("layer_norm", [2, 2, 2], [1, 2, 3]), "is constant and eps is 0"),
        (("rms_norm", [0, 0, 0], [1, 2, 3]), "is zero and eps is 0"),
    ],
)
def test_what_does_not_fit_is_said(arguments, words):
    with pytest.raises(CourseError, match=words):
        model(*arguments)


@pytest.mark.parametrize("wrong", [{"kind": "group_norm"}, {"eps": 0.5}])
def test_wrong_arguments_of_the_picture_are_refused(wrong):
    with pytest.raises(CourseError):
        projection(**wrong)


@pytest.fixture
def shown(show):
    return show(projection())


def test_the_browser_takes_wdy_apart_as_the_reference_does(shown):
    for kind, eps, x_turn, x_mean, x_std, turn, mean in itertools.product(
        KINDS, (0.0, 1.0), (0, 200), (-1, 2), (0.1, 3), (15, 300), (-1, 0.5)
    ):
        changes = {
            "kind": kind,
            "eps": eps,
            "xTurn": x_turn,
            "xMean": x_mean,
            "xStd": x_std,
            "turn": turn,
            "mean": mean,
        }
        seen = shown.call("explain", START | changes)
        want = model(kind, row(x_turn, x_mean, x_std), push(turn, mean), eps)
        for name in ("x", "wdy", "xhat", "left", "dx", "again"):
            assert seen[name] == pytest.approx(
                getattr(want, name).tolist(), abs=1e-9 * max(1, want.rstd)
            ), name
        assert (seen["kept"], seen["c1"], seen["c2"]) == pytest.approx(
            (want.kept, want.c1, want.c2 or 0)
        )


@pytest.mark.parametrize(
    ("changes", "title", "words"),
    [
        (
            {},
            "its parts along 1 and along xhat are gone",
            ["c2 = 0.75", "Drag the tip of the arrow wdy"],
        ),
        (
            {"view": 105},
            "its parts along 1 and along xhat are gone",
            ["cannot change the mean", "c2 = 0.75", "is a projector"],
        ),
        (
            {"length": 0},
            "nothing of it reaches dx",
            ["What is left is dx / rstd = [0.00, 0.00, 0.00]"],
        ),
        ({"turn": 60, "mean": 0}, "All of wdy lies along 1 and xhat", ["c2 = 0.00"]),
        ({"eps": 1e-5}, "are gone", ["only at eps = 0 is the matrix a projector"]),
        (
            {"eps": 1.0},
            "With eps = 1, 50 % of the part of wdy along xhat reaches dx",
            ["the matrix is no projector"],
        ),
        (
            {"kind": "rms_norm"},
            "only its part along xhat is gone",
            ["changes the mean of the row", "there is no c2"],
        ),
    ],
)
def test_the_words_say_what_is_shown(shown, changes, title, words):
    shown.set(**START | changes)
    assert title in shown.title
    for part in words:
        assert part in shown.caption


def test_nothing_is_said_of_what_the_page_asks_until_something_is_moved(shown):
    """Lesson 10 asks what the numbers of dx add up to, a screen above the picture."""
    assert "What is left" not in shown.caption and "mean of the row" not in shown.caption
    shown.grip("wdy").press("ArrowRight")
    assert "The mean of this vector is 0.00" in shown.caption


def test_hands_and_keys_move_the_arrows(shown):
    shown.drag("wdy", dx=0, dy=-20)
    assert (
        shown.state["mean"] > 0.8
        and shown.state["turn"] == 130
        and abs(shown.state["length"] - 1.8) < 0.05
    )
    shown.drag("foot", dx=-60, dy=10)
    assert shown.state["turn"] != 130 and shown.state["mean"] > 0.8
    before = shown.title
    shown.grip("wdy").press("ArrowDown")
    assert shown.title != before
    shown.drag("xhat", dx=-80, dy=0)
    assert shown.state["xTurn"] != 60
    turned = shown.state["xTurn"]
    shown.grip("xhat").press("ArrowRight")
    assert shown.state["xTurn"] == (turned + 5) % 360
    for turn in range(0, 360, 45):  # wherever wdy is dragged, nothing of the mean is left
        shown.set(turn=turn)
        assert (
            "The mean of this vector is 0.00, so a step along it cannot change the mean of the row."
            in shown.caption
        )


def test_a_dragged_point_stays_under_the_hand(shown):
    for kind, view, key in itertools.product(KINDS, (0, 105, 285), ("wdy", "foot", "xhat")):
        shown.set(**START | {"kind": kind, "view": view, "length": 1.2, "mean": 0.3})
        start = shown.grip(key).bounding_box()
        dy = 0 if key == "xhat" else 12
        shown.drag(key, dx=8 if key != "xhat" else 0, dy=dy)
        end = shown.grip(key).bounding_box()
        assert (
            abs(end["x"] - start["x"] - (8 if key != "xhat" else 0)) < 5
            and abs(end["y"] - start["y"] - dy) < 5
        ), (kind, view, key)


def test_it_looks_right_everywhere(shown):
    states = [
        {"kind": kind, "eps": eps, "view": view, "turn": turn, "mean": mean, "where": True}
        for kind, eps, view, turn, mean in itertools.product(
            KINDS, (0, 1.0), (0, 105, 285), (0, 15, 60, 200), (-1, 0, 0.75)
        )
    ]

    shown.assert_clear(states)
    unnamed = """(states) => {
        const { stage } = document.querySelector("[data-picture]");
        return states.filter((state) => {
            stage.set(state);
            const names = [...stage.svg.querySelectorAll("text")].map((text) => text.textContent);
            return !["wdy", "left", "xhat"].every((name) => names.includes(name));
        });
    }"""
    for width in shown.WIDTHS:
        shown.set_width(width)
        assert shown.page.evaluate(unnamed, states) == [], width
    shown.set_width(1280)
    shown.set(**START | {"where": True})
    shown.shoot("projection")
    shown.set(kind="rms_norm")
    shown.shoot("projection-rms")
