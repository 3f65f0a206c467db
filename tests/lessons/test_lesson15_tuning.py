"""The launch settings of lesson 15: what the compiler says of them, what is refused, and the kernel
that a GPU would time."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import course_lib
from course_lib.base.errors import CourseError
from course_lib.bench import forward, grid, operations, timing
from course_lib.bench.operations import EPS
from course_lib.kernels.launch import device
from course_lib.lessons.lesson15 import tuning
from course_lib.norms import reference


def test_more_stages_are_more_shared_memory_and_bytes_ahead():
    tried = {stages: tuning.try_launch(1024, 2, 4, stages) for stages in (1, 3)}
    tile = 2 * 2 * 1024 * 2
    assert tried[1].ahead == 0 and tried[3].ahead == tried[3].programs * 2 * tile
    assert 2 * tile <= tried[3].shared_bytes < 2 * tile + 1024 and tried[3].spill_bytes == 0
    if course_lib.MODE != "gpu":
        assert "time not measured: no GPU" in str(tried[3])


@pytest.mark.parametrize(
    ("settings", "says"),
    [((4095, 1, 4, 1), "N has to be"), ((1024, 3, 4, 1), "rows has to be"),
        ((1024, 1, 64, 1), "num_warps has to be"), ((1024, 1, 4, 0), "num_stages")],
)  # fmt: skip
def test_settings_that_no_kernel_has_are_refused_in_words(settings, says):
    with pytest.raises(CourseError, match=says):
        tuning.try_launch(*settings)


def test_what_a_gpu_times_is_right(monkeypatch):
    """The clock is taken away: each call runs once, and its dx is looked at."""
    seen = []
    monkeypatch.setattr(forward, "ELEMENTS", 6 * 128)
    monkeypatch.setattr(grid, "TOUCHED", 1)
    monkeypatch.setattr(device, "count_multiprocessors", lambda _: 2)
    monkeypatch.setattr(operations, "floor_us", lambda op, inputs: seen.append(inputs) or 50.0)
    monkeypatch.setattr(
        timing, "device_us", lambda calls: seen.extend(call() for call in calls) or 60.0
    )
    assert tuning._time_over_floor(128, 2, 4, 1, 1) == 1.2
    inputs, dx = seen[0], seen[1:-1]
    for v, got in zip(inputs, dx, strict=True):
        want = reference.layer_norm_vjp(v.dy, v.x, v.w, EPS).dx
        np.testing.assert_allclose(got.double().cpu().numpy(), want, atol=0.02, rtol=0.01)
    assert isinstance(dx[0], torch.Tensor) and tuning._time_over_floor(128, 2, 4, 1, 0) is None
