"""What is said of a launch without a clock: that a legal one is right, that an illegal one is not,
and that the rest agrees with what was measured."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import course_lib
from course_lib.base.errors import CourseError
from course_lib.bench import measurement
from course_lib.bench.operations import EPS, Values
from course_lib.compiler import occupancy
from course_lib.kernels.launch import tables
from course_lib.norms import reference
from course_lib.tuning import clock, launch
from course_lib.tuning.launch import (
    ITEMSIZE,
    WANTED,
    LaunchChoice,
    find_illegal,
    find_misfit,
    predict,
)

POWERS = [1 << n for n in range(6)]


def run(M: int, N: int, one: LaunchChoice) -> tuple[torch.Tensor, dict[str, np.ndarray]]:
    generator = torch.Generator().manual_seed(1000 * M + N)
    x, w, b = (
        torch.randn(*shape, generator=generator).to(course_lib.DEVICE) + 3
        for shape in ((M, N), (N,), (N,))
    )
    outputs = clock._make_call(Values(x, x, x, w, b), one)()
    return x, {
        name: t.double().cpu().numpy()
        for name, t in zip(("y", "mean", "rstd"), outputs, strict=True)
    } | {"want": reference.layer_norm(x, w, b, EPS)}


@settings(max_examples=25, deadline=None)
@given(
    M=st.integers(1, 9), N=st.integers(1, 70), rows=st.sampled_from(POWERS[:4]),
    wider=st.sampled_from([1, 2, 4]),
    num_warps=st.sampled_from(POWERS),
)  # fmt: skip
def test_whatever_is_called_legal_gives_right_numbers(M, N, rows, wider, num_warps):
    one = LaunchChoice(rows, wider * tables.next_power_of_2(N), num_warps)
    assert find_illegal(N, one) is None
    _, got = run(M, N, one)
    for name in ("y", "mean", "rstd"):
        # a row of one number has no deviation, and rstd is 1 / sqrt(eps)
        np.testing.assert_allclose(got[name], getattr(got["want"], name), rtol=1e-4, atol=1e-4)


def test_a_block_smaller_than_the_row_does_leave_columns_out():
    one = LaunchChoice(2, 32, 1)
    fault = find_illegal(40, one)
    assert (
        fault is not None
        and fault.cause == "columns_left_out"
        and "of 40 columns the last 8" in fault.words
    )
    _, got = run(4, 40, one)
    assert not np.allclose(got["y"], got["want"].y, atol=1e-2)


@pytest.mark.parametrize(
    ("values", "cause", "says"),
    [
        ((1, 1024, 2.5), "launch_not_legal", "num_warps is 2.5, and has to be a whole number"),
        ((float("nan"), 1024, 4), "launch_not_legal", "ROWS is nan"),
        ((1, float("inf"), 4), "launch_not_legal", "BLOCK is inf"),
        ((3, 1024, 4), "launch_not_legal", "ROWS is 3, and has to be a power of two"),
        ((0, 1024, 4), "launch_not_legal", "ROWS is 0"),
        ((1, -1024, 4), "launch_not_legal", "BLOCK is -1024"),
        ((1, 1000, 4), "launch_not_legal", "BLOCK is 1000"),
        ((1, 1024, 64), "launch_not_legal", "32 warps at most"),
        ((2048, 1024, 4), "launch_not_legal", "which Triton refuses"),
        ((1, 512, 4), "columns_left_out", "of 1000 columns the last 488 are never normalised"),
    ],
)
def test_what_no_kernel_takes_is_told(values, cause, says):
    fault = find_illegal(1000, values)
    assert fault is not None and fault.cause == cause and says in fault.words


@pytest.mark.parametrize(
    ("M", "N", "dtype", "one", "cause", "says"),
    [
        (
            8192,
            1024,
            "fp16",
            LaunchChoice(4, 2048, 4),
            "lanes_idle",
            "1024 of the lanes of each row load nothing, and 1024 are enough",
        ),
        (
            300,
            1024,
            "fp16",
            LaunchChoice(4, 1024, 4),
            "too_few_programs",
            "300 rows make 75 programs; an H100 has 132 multiprocessors",
        ),
        (
            40,
            1024,
            "fp16",
            LaunchChoice(64, 1024, 16),
            "too_few_programs",
            (
                "40 rows make 1 program; an H100 has 132 multiprocessors, and fewer rows a program"
                " would give 40 of them work"
            ),
        ),
        (
            8192,
            1024,
            "fp16",
            LaunchChoice(16, 1024, 1),
            "tile_spills",
            "a thread gets 512 numbers of x, and has 255 registers",
        ),
        (8192, 4096, "fp16", LaunchChoice(16, 4096, 32), "tile_spills", "may have 64 registers"),
        (
            131072,
            256,
            "fp16",
            LaunchChoice(1, 256, 4),
            "too_little_under_way",
            "16 programs of 4 warps (its 64 warps leave no room",
        ),
        (
            131072,
            256,
            "fp16",
            LaunchChoice(1, 256, 1),
            "too_little_under_way",
            "16 KB under way, and 29.7 KB are wanted",
        ),
    ],
)
def test_what_cannot_be_fast_is_told(M, N, dtype, one, cause, says):
    fault = find_misfit(M, N, dtype, one)
    assert fault is not None and fault.cause == cause and says in fault.words


def test_few_rows_need_no_more_under_way_than_there_is():
    assert find_misfit(40, 512, "fp16", LaunchChoice(1, 512, 8)) is None
    assert find_misfit(65536, 512, "fp16", LaunchChoice(1, 512, 8)) is not None


def test_under_way_is_what_the_resident_programs_asked_for():
    made = predict(1024, "fp16", LaunchChoice(4, 1024, 4))
    assert made.tile_bytes == 4 * 1024 * 2 and made.under_way == made.programs * made.tile_bytes
    assert made.programs == occupancy("sm_90", made.registers, 0, 4) // 4
    assert (
        pytest.approx(15227, abs=1) == launch.NEEDED and pytest.approx(2 * 15227, abs=2) == WANTED
    )
    assert ITEMSIZE["fp32"] * 4 * 1024 == predict(1024, "fp32", LaunchChoice(4, 1024, 4)).tile_bytes


@pytest.mark.skipif(
    course_lib.MODE != "cpu", reason="5120 columns fit with the registers of another Triton"
)
def test_the_prediction_agrees_with_every_measurement_of_this_kernel():
    """On the stored H100, up to 16384 columns: who is said not to fit took more than 1.11 times the
    floor, and everybody else less."""
    rows = [
        r
        for r in measurement.stored("forward").rows
        if (r["op"], r["provider"]) == ("layer_norm", "resident") and r["N"] <= 16384
    ]
    assert len(rows) >= 9
    for r in rows:
        fault = find_misfit(r["M"], r["N"], "fp16", LaunchChoice(*tables.resident(r["N"])))
        assert (fault is None) == (r["over_floor"] < 1 / clock.GOAL), (r, fault)


def test_a_launch_that_the_compiler_does_not_take_is_told(monkeypatch):
    def refuse(*arguments, **options):
        raise launch.CompileError(
            "timeout", "compiling takes longer than 30 seconds", "layer_norm.py", 80, 0, ""
        )

    monkeypatch.setattr(launch, "compile_report", refuse)
    with pytest.raises(
        CourseError,
        match=r"ROWS = 8, BLOCK = 128, num_warps = 2 for 100 columns: .*longer than 30 seconds",
    ):
        predict(100, "fp16", LaunchChoice(8, 128, 2))
