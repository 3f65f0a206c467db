"""Times beside the floor: measured in turns, repeated before a near miss counts, and asked only
where this kernel can be so fast."""

from __future__ import annotations

from itertools import cycle

import pytest
import torch

import course_lib
from course_lib.bench import grid, operations, timing
from course_lib.tuning import clock
from course_lib.tuning.clock import GOAL, ROUNDS, Clocks, MatrixShape, NoRoom, time_launch
from course_lib.tuning.launch import LaunchChoice

SHAPE, LAUNCH = MatrixShape(8192, 4096), LaunchChoice(1, 4096, 8)


class FakeGpu:
    """Clocks that give ``times``, one after the other and over again, and remember who was
    asked."""

    def __init__(
        self, tried: list[float], own: list[float] | None = None, floor: list[float] | None = None
    ):
        self.asked: list[str] = []
        self.times = {
            "floor": cycle(floor or [45.0]),
            "tried": cycle(tried),
            "own": cycle(own or [46.0]),
        }

    def prepare(self, shape: MatrixShape, launch: LaunchChoice) -> Clocks:
        assert (shape, launch) == (SHAPE, LAUNCH)
        return Clocks(*(lambda name=name: self.take(name) for name in ("floor", "tried", "own")))

    def take(self, name: str) -> float:
        self.asked.append(name)
        return next(self.times[name])


def test_floor_and_launches_are_timed_in_turns():
    gpu = FakeGpu([46.0])
    timed = time_launch(SHAPE, LAUNCH, gpu.prepare)
    assert gpu.asked == ["floor", "tried", "own"] * ROUNDS
    assert timed.passes and timed.share == pytest.approx(45 / 46)
    assert str(timed) == "46.0 us, floor 45.0 us, 0.98 of the floor's bandwidth"


def test_one_slow_round_does_not_count():
    timed = time_launch(
        SHAPE,
        LAUNCH,
        FakeGpu([46.0, 900.0, 46.5, 46.0, 47.0], floor=[45.0, 45.5, 300.0, 45.0, 44.0]).prepare,
    )
    assert timed.us == 46.5 and timed.floor_us == 45.0 and timed.passes


def test_who_falls_a_little_short_is_timed_again_before_it_counts():
    slow, fast = 45 / 0.88, 45 / 0.93
    noisy = FakeGpu([slow] * ROUNDS + [fast] * ROUNDS)
    timed = time_launch(SHAPE, LAUNCH, noisy.prepare)
    assert len(timed.tried) == 2 * ROUNDS and timed.passes and timed.share > GOAL
    steady = time_launch(SHAPE, LAUNCH, FakeGpu([slow]).prepare)
    assert len(steady.tried) == 2 * ROUNDS and not steady.passes


def test_who_is_far_off_is_not_timed_again():
    timed = time_launch(SHAPE, LAUNCH, FakeGpu([90.0]).prepare)
    assert len(timed.tried) == ROUNDS and not timed.passes and timed.share == 0.5


def test_nobody_is_asked_for_more_than_this_kernel_reaches_on_a_gpu():
    timed = time_launch(SHAPE, LAUNCH, FakeGpu([60.0], own=[55.0]).prepare)
    assert timed.passes and not timed.is_reachable
    assert "the course's own launch reaches 0.82 on this GPU, so nobody is asked for more" in str(
        timed
    )


def test_a_gpu_without_room_is_told_apart():
    def prepare(shape: MatrixShape, launch: LaunchChoice) -> Clocks:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 64.00 MiB.")

    with pytest.raises(NoRoom, match=r"^CUDA out of memory$"):
        time_launch(SHAPE, LAUNCH, prepare)


def test_what_a_gpu_times_is_right_and_outgrows_its_cache(monkeypatch):
    """The clock is taken away: each call runs once, and what it leaves is compared with float64 by
    the bench's own check."""
    made = []
    monkeypatch.setattr(grid, "TOUCHED", 6 * 100 * 4 * 7)
    monkeypatch.setattr(
        timing, "device_us", lambda calls: made.append([call() for call in calls]) or 50.0
    )
    checked = []
    check = operations.check
    monkeypatch.setattr(
        operations, "check", lambda op, got, values: (checked.append(got), check(op, got, values))
    )
    clocks = clock.prepare_gpu(MatrixShape(6, 100, "fp32"), LaunchChoice(4, 128, 2))
    assert len(checked) == 2  # the launch that is tried, and the course's own
    assert clocks.tried() == clocks.own() == 50.0 and [len(outputs) for outputs in made] == [3, 3]
    assert (
        made[0][0][0].shape == (6, 100)
        and made[0][0][0].device.type == torch.device(course_lib.DEVICE).type
    )
    assert clocks.floor() == 50.0


def test_a_launch_with_wrong_results_is_never_timed():
    with pytest.raises(operations.WrongValues):
        clock.prepare_gpu(MatrixShape(6, 100, "fp32"), LaunchChoice(4, 64, 2))
