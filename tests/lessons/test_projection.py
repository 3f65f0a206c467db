"""The projection widget of lesson 02: its vectors against the float64 reference, its words, and its controls."""

from __future__ import annotations

import base64
import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from course_lib.base.errors import CourseError
from course_lib.lessons import projection, style
from course_lib.lessons.live import VIEW
from course_lib.lessons.projection.model import EPS, KINDS, STDS, describe, model, push, row, title
from course_lib.lessons.projection.widget import LOOKS, draw
from course_lib.norms import reference

PNG = b"\x89PNG\r\n\x1a\n"
VJPS = {"layer_norm": reference.layer_norm_vjp, "rms_norm": reference.rms_norm_vjp}
angles, numbers = st.integers(0, 359), st.floats(-3, 3)


@settings(max_examples=80, deadline=None)
@given(
    kind=st.sampled_from(list(KINDS)), eps=st.sampled_from(EPS), x_turn=angles, x_mean=numbers, x_std=st.sampled_from(STDS), turn=angles,
    mean=numbers,
)  # fmt: skip
def test_the_vectors_are_the_references(kind, eps, x_turn, x_mean, x_std, turn, mean):
    x, wdy = row(x_turn, x_mean, x_std), push(turn, mean)
    state = model(kind, x, wdy, eps)
    np.testing.assert_allclose(state.dx, VJPS[kind]([wdy], [x], None, eps).dx[0], rtol=1e-9, atol=1e-9 * state.rstd)
    np.testing.assert_allclose(state.along_one + state.along_xhat + state.left, wdy, atol=1e-12)
    # what comes through along xhat is the share eps * rstd^2 of what wdy has there, and along 1 nothing
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
    left = {kind: np.array([model(kind, x, push(turn, 0.7)).left for turn in range(0, 360, 20)]) for kind in KINDS}
    assert [np.linalg.matrix_rank(left[kind], tol=1e-9) for kind in ("layer_norm", "rms_norm")] == [1, 2]


def test_only_without_eps_it_is_a_projector():
    x, wdy = row(60, 0.5, 1.0), push(15, 0.75)
    assert np.allclose(model("layer_norm", x, wdy, 0.0).again, model("layer_norm", x, wdy, 0.0).left)
    state = model("layer_norm", x, wdy, 1.0)
    assert state.kept == pytest.approx(0.5) and np.linalg.norm(state.again - state.left) > 0.1


@pytest.mark.parametrize(
    ("kind", "eps", "in_title", "in_words"),
    [
        (
            "layer_norm",
            0.0,
            "neither the mean nor the scale",
            ["cannot change the mean", "Along xhat nothing is left:", "it is a projector"],
        ),
        (
            "layer_norm",
            1e-5,
            "neither the mean nor the scale",
            ["but the share eps * rstd^2 = 1e-05", "only at eps = 0"],
        ),
        (
            "layer_norm",
            1.0,
            "lets 50% of the push along xhat through",
            ["cannot change the mean", "it is no projector"],
        ),
        ("rms_norm", 0.0, "The mean may change", ["changes the mean of the row", "it is a projector"]),
    ],
)
def test_title_and_caption_say_what_is_shown(kind, eps, in_title, in_words):
    state = model(kind, row(60, 0.5, 1.0), push(15, 0.75), eps)
    words = describe(state)
    assert in_title in title(state)
    for part in in_words:
        assert part in words
    assert ("c2 = 0.75" in words) == (kind == "layer_norm")


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
def test_wrong_arguments_of_the_widget_are_refused(wrong):
    with pytest.raises(CourseError):
        projection(**wrong)


def test_every_vector_has_a_look_of_its_own():
    looks = [(look["linestyle"], look["marker"]) for look in LOOKS.values()]
    assert len(set(looks)) == len(looks)
    for look in LOOKS.values():
        assert style.contrast(look["color"], style.PANEL) >= 4.5


CHANGES = [
    ("kind", "rms_norm", "RMSNorm, N = 3"),
    ("eps", 1.0, "eps = 1:"),
    ("x_turn", 120, "x = ["),
    ("x_mean", -1.0, "x = ["),
    ("x_std", 0.1, "rstd = 10,"),
    ("push_turn", 90, "wdy = ["),
    ("push_mean", -1.0, "c2 = -1 "),
]


@pytest.mark.parametrize(("control", "value", "words"), CHANGES)
def test_a_control_changes_the_picture_and_the_words(control, value, words):
    widget = projection()
    before, said = bytes(widget._image.value), widget.caption
    widget.controls[control].value = value
    assert widget.error is None and bytes(widget._image.value) != before
    assert widget.caption != said and words in widget.caption
    widget.reset()
    assert bytes(widget._image.value) == before


def test_walking_around_changes_the_picture_and_no_number():
    widget = projection()
    before, said = bytes(widget._image.value), widget.caption
    widget.controls["view"].value = 90
    assert bytes(widget._image.value) != before and widget.caption == said


def test_the_notebook_gets_the_view_the_png_and_its_alt_text():
    data, metadata = projection()._repr_mimebundle_()
    alt = metadata["image/png"]["alt"]
    assert VIEW in data and base64.b64decode(data["image/png"]).startswith(PNG)
    assert data["text/plain"] == alt and "plane at right angles" in alt and "Left is" in alt


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("view", [0, 105, 285])
@pytest.mark.parametrize(
    ("x_turn", "turn", "mean", "eps"), [(0, 0, 1.0, 0.0), (180, 30, -1.0, 0.0), (90, 270, 0.0, 10.0)]
)
def test_every_extreme_is_drawn_inside_the_figure(kind, view, x_turn, turn, mean, eps):
    picture = draw(model(kind, row(x_turn, 2.0, 3.0), push(turn, mean), eps), view)
    pixels = np.asarray(Image.open(io.BytesIO(picture.png)).convert("RGB")).astype(int)
    border = np.concatenate([edge.reshape(-1, 3) for edge in (pixels[:3], pixels[-3:], pixels[:, :3], pixels[:, -3:])])
    assert (abs(border - pixels[0, 0]) < 8).all(), "something touches the edge"
