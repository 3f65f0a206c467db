"""The loss curves: where two runs part, what is said about it, and losses that come in one by one."""

from __future__ import annotations

import pytest

from course_lib.base.errors import CourseError
from course_lib.lessons import loss_curves as widget
from course_lib.lessons.loss_curves.model import model, title
from course_lib.lessons.loss_curves.widget import draw

RUNS = {
    "right": [3.0, 2.0, 1.5, 1.25],
    "near": [3.0, 2.0, 1.5 + 1e-6, 1.25 - 1e-5],
    "far": [3.0, 2.5, 1.5, float("nan")],
}


@pytest.mark.parametrize(
    ("run", "until", "limit", "parts"),
    [
        ("near", 4, 1e-3, None),
        ("near", 4, 2e-6, 3),
        ("near", 4, 1e-7, 2),
        ("near", 2, 1e-7, None),
        ("far", 4, 1e-3, 1),
        ("far", 4, 1.0, 3),
    ],
)
def test_where_they_part(run, until, limit, parts):
    assert model(RUNS, run, until, limit).parts == parts


def test_the_words_say_what_the_picture_shows():
    state = model(RUNS, "near", 4, 2e-6, baseline=2.0)
    shown = draw(state)
    assert title(state) == "Further apart than 2e-06 nats from step 3 on"
    assert (
        "Equal bit for bit in the first 2 steps" in shown.caption
        and "at step 3" in shown.caption
        and "below 2.000" in shown.caption
    )
    assert shown.alt.startswith(title(state)) and shown.png.startswith(b"\x89PNG")
    assert title(model(RUNS, "near", 2, 1e-3)) == "Every loss is equal, bit for bit, over 2 steps"
    assert "not below 1.000" in draw(model(RUNS, "near", 4, 1e-3, baseline=1.0)).caption


def test_a_run_that_is_not_finite_is_drawn_and_parts_there():
    assert "from step 3 on" in title(model(RUNS, "far", 4, 1.0)) and draw(model(RUNS, "far", 4, 1.0)).png


@pytest.mark.parametrize("values", [("none", 4, 1e-3), ("right", 4, 1e-3), ("near", 0, 1e-3), ("near", 4, 0.0)])
def test_nonsense_is_refused_in_words(values):
    with pytest.raises(CourseError, match="loss_curves"):
        model(RUNS, *values)


def test_losses_as_they_come():
    live = widget({"right": [3.0] * 25, "ours": []}, 25, baseline=2.0)
    assert "waiting for ours" in live.picture.alt
    first = live.picture
    for _ in range(9):
        live.add("ours", 3.0)
    assert live.picture is first  # not a picture a step
    live.add("ours", 3.5)
    assert "Further apart than 0.001 nats from step 9 on" in live.picture.alt and live.error is None
    for _ in range(15):
        live.add("ours", 3.0)
    assert "25 steps" in live.caption
    with pytest.raises(KeyError):
        live.add("theirs", 1.0)


def test_the_controls_redraw_and_reset_goes_back():
    shown = widget(RUNS, baseline=2.0, show="near")
    start = shown.caption
    shown.controls["run"].value = "far"
    assert "far against right" in shown.caption
    shown.controls["until"].value = 1
    assert "1 step:" in shown.caption
    shown.controls["limit"].value = 1e-2
    shown.reset()
    assert shown.caption == start and shown.error is None


def test_what_it_cannot_show():
    for wrong in ({"right": [1.0]}, {}, {"right": [], "ours": []}):
        with pytest.raises(CourseError):
            widget(wrong)
    with pytest.raises(CourseError, match="no run 'x'"):
        widget(RUNS, show="x")
