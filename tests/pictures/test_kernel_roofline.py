"""The roofline of kernels: passes against a trace, what the browser makes of them, a learner's
kernel that passes, hands that press."""

from __future__ import annotations

import pytest

from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.bench import measurement
from course_lib.kernels.layer_norm import layer_norm_blocked_kernel, layer_norm_resident_kernel
from course_lib.kernels.norm_backward import norm_backward_persistent_kernel
from course_lib.lessons import kernel_roofline, own_kernels
from course_lib.lessons.pictures.access_map.run import record
from course_lib.lessons.pictures.kernel_roofline import model
from course_lib.lessons.pictures.kernel_roofline.model import (
    ELEMENTS,
    KERNELS,
    LENGTHS,
    OWN,
    make_data,
)

SOLUTIONS = {"06a": 1, "07a": 4, "08a": 2, "09a": 4, "11a": 3, "13b": 3}


def solve(monkeypatch):
    """Every exercise of the learner's is the solution, and passes."""

    def load(exercise_id: str):
        (file,) = (paths.ROOT / "solutions").glob(f"ex{exercise_id}_*.py")
        return own_kernels.execute(exercise_id, file.read_text(encoding="utf-8"))

    monkeypatch.setattr(own_kernels, "load_passing", load)


@pytest.mark.parametrize(("exercise", "passes"), SOLUTIONS.items())
def test_a_learners_kernel_is_traced(exercise, passes, monkeypatch):
    solve(monkeypatch)
    own = make_data(exercise)["kernels"]["own"]
    assert own["asked"] == passes and own["label"] == f"yours, {exercise}"
    assert OWN[exercise].least <= passes


def test_a_kernel_that_does_not_pass_is_refused_in_words():
    with pytest.raises(CourseError, match="your 08a is still as the course wrote it"):
        make_data("08a")
    with pytest.raises(CourseError, match="you asked for '99a'"):
        make_data("99a")


@pytest.mark.parametrize(
    ("kernel", "key", "exercise", "constants"),
    [
        (layer_norm_blocked_kernel, "blocked", "07a", {"HAS_W": True, "HAS_B": True}),
        (layer_norm_resident_kernel, "resident", "08a", {"HAS_W": True, "HAS_B": True}),
        (
            norm_backward_persistent_kernel,
            "persistent",
            "13b",
            {"CENTRED": True, "HAS_W": True, "FULL": False, "STAGES": 1},
        ),
    ],
)
def test_the_courses_passes_are_those_of_a_trace(kernel, key, exercise, constants):
    M, N = 4, 256
    launch = model.make_launch(exercise, M, N, model.tables.TileLaunch(2, N, 4), 2)
    tensors = list(launch.tensors.values())
    if key == "persistent":
        tensors.insert(5, launch.tensors["dy"])  # no dtotal
    strides = {
        "blocked": (N, 1, N, 1, N),
        "resident": (N, 1, N, 1, M, N),
        "persistent": (N, 1, N, 1, N, M, N),
    }[key]
    numbers = (*strides, 1e-5) if key != "persistent" else strides
    recording = record(kernel, launch.grid, [*tensors, *numbers], {**launch.constants, **constants})
    assert not recording.fault
    whole = {
        t.name
        for t, tensor in zip(recording.tensors, tensors, strict=True)
        if tensor.shape == (M, N)
    }
    moved = sum(access.bytes for access in recording.accesses if access.tensor in whole)
    assert moved / (M * N * 2) == KERNELS[key].passes


@pytest.fixture
def shown(show, monkeypatch):
    solve(monkeypatch)
    return show(kernel_roofline().picture)


def test_the_browser_computes_what_the_measurement_says(shown):
    rows = {
        (r["op"], r["provider"], r["N"]): r
        for kind in ("forward", "backward")
        for r in measurement.stored(kind).rows
    }
    for N in LENGTHS:
        for seen in shown.call("explain", {"n": N, "counted": "least"}):
            kernel = KERNELS[seen["key"]]
            row = rows.get((kernel.op, kernel.provider, N))
            if row is None:
                assert seen["share"] is None
                continue
            assert seen["us"] == row["us"] and seen["gbps"] == pytest.approx(row["gbps"], abs=1)
            assert seen["tflops"] == pytest.approx(kernel.flop * ELEMENTS / row["us"] / 1e6)
            assert seen["share"] == pytest.approx(seen["gbps"] / 3350, rel=1e-6)
    blocked = next(
        s for s in shown.call("explain", {"n": 4096, "counted": "asked"}) if s["key"] == "blocked"
    )
    assert blocked["share"] > 1.4  # 4 passes in the time of 2: a cache answered


def test_the_words_follow_hands_and_keys(shown):
    assert shown.title == "LayerNorm, resident reaches 82 % of the roof at N = 8192"
    shown.grip("share-blocked").press("Enter")
    shown.page.get_by_role("radio", name="asks for").check()
    assert (
        shown.title
        == "LayerNorm, blocked stands 35 % above the roof, because a cache supplied data"
    )
    shown.grip("share-persistent").click()
    shown.set(n=16384)
    assert shown.title.endswith("and no time at N = 16384")
    assert "No time is stored for rows of 16384 columns." in shown.caption


def test_a_learners_kernel_has_a_place_and_no_time_without_a_gpu(show, monkeypatch):
    solve(monkeypatch)
    asked = kernel_roofline()
    asked.controls["own"].value = "07a"
    asked.ask()
    assert asked.error is None
    shown = show(asked.picture)
    assert shown.title == "Yours, 07a: 1.75 operations per byte, and no time at N = 8192"
    assert "this machine has no GPU" in shown.caption
    shown.set(counted="asked")
    assert "0.875 operations per byte" in shown.title


def test_it_looks_right_everywhere(show, monkeypatch):
    solve(monkeypatch)
    asked = kernel_roofline()
    asked.controls["own"].value = "13b"
    asked.ask()
    shown = show(asked.picture)
    states = [
        {"n": n, "counted": c, "chosen": k}
        for n in (256, 8192, 32768)
        for c in ("least", "asked")
        for k in ("own", "blocked", "locked")
    ]
    shown.assert_clear(states)
    shown.set(n=4096, counted="asked", chosen="blocked")
    shown.shoot("kernel_roofline")
