"""The race of norms: its times against the stored files, who is first, both clocks; what a GPU
alone could say."""

from __future__ import annotations

import pytest

import course_lib
from course_lib.base.errors import CourseError
from course_lib.bench import measurement
from course_lib.lessons import norm_race
from course_lib.lessons.kit.output import MovingPicture
from course_lib.lessons.lesson15.norm_race.model import HERE, LENGTHS, NAMES, OPERATIONS, make_data

STATES = [{"op": op, "n": n, "clock": clock} for op in OPERATIONS for n in (256, 8192, 32768)
    for clock in ("device", "call")]  # fmt: skip


@pytest.fixture
def shown(show):
    return show(MovingPicture("norm_race", make_data(), "a race"))


def test_the_times_are_those_that_were_stored():
    data = make_data()
    for kind in ("forward", "backward"):
        for row in measurement.stored(kind).rows:
            if row["op"] in OPERATIONS and row["N"] in LENGTHS and row["provider"] in NAMES:
                assert (
                    data["races"][row["op"]][row["provider"]][LENGTHS.index(row["N"])] == row["us"]
                )
                floor = data["floors"][row["op"]][LENGTHS.index(row["N"])]
                assert row["us"] / row["over_floor"] == pytest.approx(floor, rel=0.002)
    assert (
        "locked" in data["races"]["layer_norm_backward"]
        and "locked" not in data["races"]["layer_norm"]
    )


def test_a_time_of_another_gpu_is_never_beside_the_learners():
    with pytest.raises(CourseError, match="your 08a would be timed on this one"):
        make_data(exercise_id="08a")
    if course_lib.MODE != "gpu":
        with pytest.raises(CourseError, match="needs a GPU"):
            make_data(HERE, "08a")
        assert isinstance(norm_race(), MovingPicture)


def test_the_browser_finds_who_is_first(shown):
    rows = {
        (r["op"], r["N"], r["provider"]): r["us"]
        for kind in ("forward", "backward")
        for r in measurement.stored(kind).rows
    }
    for op in OPERATIONS:
        for n in LENGTHS:
            seen = shown.call("explain", {"op": op, "n": n, "clock": "device"})
            times = {name: rows[op, n, name] for name in NAMES if (op, n, name) in rows}
            assert seen["first"]["key"] == min(times, key=times.__getitem__)
    with_python = shown.call("explain", {"op": "layer_norm", "n": 8192, "clock": "call"})
    assert with_python["first"]["key"] == "compile"
    ours = next(runner for runner in with_python["runners"] if runner["key"] == "ours")
    assert ours["us"] == ours["call"] > 2 * ours["device"]


def test_the_words_follow_the_race(shown):
    assert (
        shown.title
        == "LayerNorm, N = 8192: the course's is 1.9 % faster, but two runs differ as much"
    )
    assert "PyTorch 76.4 \u00b5s (1.61 times the floor)" in shown.caption
    shown.page.get_by_role("radio", name="with Python's call").check()
    assert shown.title.startswith("LayerNorm, N = 8192: torch.compile is first")
    shown.page.get_by_role("radio", name="LayerNorm backward").check()
    assert shown.title.startswith(
        "LayerNorm backward, N = 8192: the course's is first, and the next one takes 1.15"
    )


def test_it_looks_right_everywhere(shown):
    shown.assert_clear(STATES)
    shown.set(op="layer_norm_backward", n=1024, clock="device")
    shown.shoot("norm_race")
