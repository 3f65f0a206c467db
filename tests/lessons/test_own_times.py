"""The time of a learner's kernel: right kernels get one; work done before the clock, or once for
several launches, gets none."""

from __future__ import annotations

import pytest
import torch

import course_lib
from course_lib import catalog
from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.bench import grid, timing
from course_lib.catalog import texts
from course_lib.lessons import own_kernels, own_launch
from course_lib.lessons.pictures.kernel_roofline import model
from course_lib.lessons.pictures.kernel_roofline.model import OWN

N = 256


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """A clock for machines without a GPU, where calls run again in each replay and take 3 us; small
    matrices there."""
    if course_lib.MODE == "gpu":
        return

    def device_us(calls, replays=12, *, renew, judge):
        for call in calls:
            call()
        for _ in range(2):
            renew()
            for call in calls:
                call()
        judge()
        return 3.0

    monkeypatch.setattr(timing, "device_us", device_us)
    monkeypatch.setattr(model, "ELEMENTS", 5 * N)
    monkeypatch.setattr(grid, "TOUCHED", 0)


def load(exercise_id, *changes):
    """The kernel of the solution, with changes of its text."""
    text = texts.read_solution(catalog.get(exercise_id))
    for before, after in changes:
        assert text.count(before) == 1
        text = text.replace(before, after)
    return getattr(own_kernels.execute(exercise_id, text), own_launch.name_kernel(exercise_id))


class Wrapped:
    """An object in the kernel's place, as a file of Python can hold one: ``launch`` decides what
    happens in a launch."""

    def __init__(self, kernel, launch):
        self.kernel, self.launch = kernel, launch

    def __getitem__(self, grid):
        return lambda *arguments, **options: self.launch(self.kernel[grid], arguments, options)


@pytest.mark.parametrize("exercise_id", OWN)
def test_a_solution_has_a_time(exercise_id):
    assert model.time_own(exercise_id, load(exercise_id), N) > 0


def test_every_exercise_here_is_one_of_the_solutions():
    assert all(
        (paths.ROOT / "solutions" / f"{catalog.get(exercise_id).file}.py").exists()
        for exercise_id in OWN
    )


@pytest.mark.parametrize("exercise_id", OWN)
def test_a_launch_that_does_nothing_after_the_first_has_none(exercise_id):
    seen = set()

    def launch(run, arguments, options):
        if arguments[0].data_ptr() not in seen:
            seen.add(arguments[0].data_ptr())
            run(*arguments, **options)

    with pytest.raises(
        CourseError,
        match=f"your kernel of {exercise_id} has no time: what it wrote while it was timed",
    ):
        model.time_own(exercise_id, Wrapped(load(exercise_id), launch), N)


def test_results_that_are_kept_by_address_and_copied_have_none():
    kept = {}

    def launch(run, arguments, options):
        x, y = arguments[:2]
        if x.data_ptr() not in kept:
            run(*arguments, **options)
            kept[x.data_ptr()] = y.clone()
        y.copy_(kept[x.data_ptr()])

    with pytest.raises(CourseError, match="y is wrong by"):
        model.time_own("08a", Wrapped(load("08a"), launch), N)


def test_a_kernel_that_trusts_what_its_output_holds_has_none():
    kernel = load("06a", ("    tl.store(y_ptr + row, tl.sum(total, axis=0))",
        "    if tl.load(y_ptr + row) == 0:\n        tl.store(y_ptr + row, tl.sum(total, axis=0))"))  # fmt: skip  # noqa: E501
    with pytest.raises(CourseError, match="y is wrong by"):
        model.time_own("06a", kernel, N)


def test_work_that_is_done_in_less_precise_numbers_has_none():
    def launch(run, arguments, options):
        run(*arguments, **options)
        arguments[1].mul_(1.02)

    with pytest.raises(CourseError, match="rounding explains"):
        model.time_own("08a", Wrapped(load("08a"), launch), N)


def test_a_judge_sees_what_was_timed_last_on_a_gpu():
    if course_lib.MODE != "gpu":
        pytest.skip("needs a GPU")
    x, y, seen = torch.zeros(8, device="cuda"), torch.zeros(8, device="cuda"), []
    timing.device_us(
        [lambda: torch.add(x, 1, out=y)],
        3,
        renew=lambda: x.add_(1),
        judge=lambda: seen.append(y.clone()),
    )
    assert seen[0].tolist() == [x[0].item() + 1] * 8
