"""The loss curves: where two runs part, what is said about it, losses that come in one by one, and
hands that drag."""

from __future__ import annotations

import math

import numpy as np
import pytest

from course_lib.base.errors import CourseError
from course_lib.lessons import loss_curves
from course_lib.lessons.lesson14.loss_curves import widget
from course_lib.lessons.lesson14.loss_curves.model import LIMITS, model

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


@pytest.mark.parametrize(
    "values", [("none", 4, 1e-3), ("right", 4, 1e-3), ("near", 0, 1e-3), ("near", 4, 0.0)]
)
def test_nonsense_is_refused_in_words(values):
    with pytest.raises(CourseError, match="loss_curves"):
        model(RUNS, *values)


def test_what_it_cannot_show():
    for wrong in ({"right": [1.0]}, {}, {"right": [], "ours": []}):
        with pytest.raises(CourseError):
            loss_curves(wrong)
    with pytest.raises(CourseError, match="no run 'x'"):
        loss_curves(RUNS, show="x")


def test_losses_as_they_come(monkeypatch):
    shown = []

    class Handle:
        update = shown.append

    monkeypatch.setattr(
        widget, "display", lambda picture, display_id: shown.append(picture) or Handle
    )
    live = loss_curves({"right": [3.0] * 25, "ours": []}, 25, baseline=2.0)
    live._ipython_display_()
    for number in range(25):
        live.add("ours", 3.0 + number)
    # not a picture a step
    assert [len(picture.data["losses"]["ours"]) for picture in shown] == [0, 10, 20, 25]
    assert shown[-1].data["gaps"]["ours"] == list(range(25))
    with pytest.raises(KeyError):
        live.add("theirs", 1.0)


def make_training(steps: int = 100) -> dict[str, list[float]]:
    """Three trainings: the right one, one that differs by roundings, one that parts at step 4."""
    rng = np.random.default_rng(1)
    right = 2.5 + 2 * np.exp(-np.arange(steps) / 15) + rng.normal(0, 0.08, steps)
    rounding = np.where(np.arange(steps) < 3, 0, 2e-7 * 2.0 ** rng.integers(0, 5, steps))
    away = np.where(np.arange(steps) < 4, rounding, 0.002 + rng.uniform(0, 0.05, steps))
    runs = {
        "PyTorch's LayerNorm": right,
        "the course's": right + rounding,
        "dw never returned": right + away,
    }
    return {name: losses.tolist() for name, losses in runs.items()}


@pytest.fixture
def shown(show):
    return show(loss_curves(make_training(), baseline=2.9).picture)


def test_the_browser_finds_where_they_part_as_the_model_does(shown):
    runs = make_training()
    for run in list(runs)[1:]:
        for limit in LIMITS:
            want = model(runs, run, 100, limit)
            seen = shown.call("explain", {"run": run, "limit": limit, "step": 0, "smooth": False})
            assert seen["parts"] == want.parts and seen["largest"] == pytest.approx(want.gaps.max())
            assert seen["equal"] == 3


def test_the_words_say_what_is_shown(shown, show):
    assert "never differ by more than " in shown.title and "ends below 2.900 nats" in shown.caption
    shown.page.get_by_role("radio", name="dw never returned").check()
    assert shown.title == "The losses first differ by more than 0.001 nats at step 4"
    assert "equal bit for bit in the first 3 steps." in shown.caption
    few = show(loss_curves(RUNS, show="far").picture)
    few.set(limit=0.3)
    assert few.title == "The losses first differ by more than 0.3 nats at step 1"
    few.set(step=3)
    assert "Step 3: NaN and 1.2500 nats, which differ by NaN nats." in few.caption
    waiting = show(loss_curves({"right": [3.0], "ours": []}, 25).picture)
    assert (
        waiting.title == "Waiting for the losses of ours"
        and "No losses yet of ours" in waiting.caption
    )
    same = show(loss_curves({"right": [3.0, 2.0], "ours": [3.0, 2.0]}).picture)
    assert same.title == "Every loss is equal, bit for bit, over 2 steps"
    assert math.isnan(few.call("explain", few.state)["gaps"][3])


def test_every_run_and_axis_has_its_name_in_the_drawing(show):
    training = make_training()
    right = training["PyTorch's LayerNorm"]
    near = {
        f"run {number} lies on the others": [loss + 1e-7 * number for loss in right]
        for number in range(1, 5)
    }
    shown = show(loss_curves(training | near, show="dw never returned").picture)

    def look() -> None:
        for name in (
            *training,
            *near,
            "loss, nats per character",
            "|difference from PyTorch's LayerNorm|, nats",
        ):
            assert name in shown.drawn
        assert shown.drawn.count("step") >= 2

    shown.assert_clear([{}], look)


def test_the_limit_and_the_step_are_dragged_and_moved_by_keys(shown):
    shown.drag("limit", dx=0, dy=70)
    assert shown.state["limit"] < 1e-5 and "first differ by more than" in shown.title
    before = shown.state["limit"]
    shown.grip("limit").press("ArrowUp")
    assert LIMITS.index(shown.state["limit"]) == LIMITS.index(before) + 1
    box = shown.grip("step").locator("rect").bounding_box()
    shown.page.mouse.move(box["x"] + 10, box["y"] + 10)
    shown.page.mouse.down()
    shown.page.mouse.move(box["x"] + 400, box["y"] + 10)
    shown.page.mouse.up()
    step = shown.state["step"]
    assert step > 20 and f"Step {step}: " in shown.caption
    shown.grip("step").press("ArrowLeft")
    assert shown.state["step"] == step - 1


def test_it_looks_right_everywhere(shown):
    shown.assert_clear(
        [
            {"run": run, "limit": limit, "step": step, "smooth": limit < 1e-3}
            for run in list(make_training())[1:]
            for limit in LIMITS[::3]
            for step in (0, 50, 99)
        ]
    )
    shown.set(run="dw never returned", limit=1e-3, step=4, smooth=False)
    shown.shoot("loss_curves")
