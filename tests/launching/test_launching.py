"""A launch as typed data runs on a copy of its memory, wherever its tensors lie, and its faults
have an order."""

from __future__ import annotations

import json

import numpy as np
import pytest
import triton
import triton.language as tl
from hypothesis import given
from hypothesis import strategies as st

import course_lib
from course_lib.base.plain import decode, encode
from course_lib.launching.description import Launch, LaunchTensor
from course_lib.launching.far import measure_far
from course_lib.launching.faults import FaultKind, Misuse, find_worst

interpreted = pytest.mark.skipif(
    course_lib.MODE != "cpu", reason="this process compiles its kernels"
)


@triton.jit
def double_kernel(x_ptr, y_ptr, stride_x, stride_y, N, BLOCK: tl.constexpr, PAST: tl.constexpr = 0):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride_x + cols, mask=cols < N + PAST, other=0.0)
    tl.store(y_ptr + row * stride_y + cols, 2 * x, mask=cols < N)


def make_launch(
    M: int, N: int, strides: tuple[int, int], before: int, far: bool = False, **constexprs: int
) -> tuple[Launch, np.ndarray, bytes]:
    """Make a launch of ``double_kernel`` with its values of x and its memory: x from byte
    ``before`` on, then y with NaN in it."""
    of_x, of_y = strides
    sizes = [M * N if far else (M - 1) * stride + N for stride in strides]
    x = LaunchTensor("x", "fp32", 4, (M, N), (of_x, 1), before, far, (N, 1) if far else ())
    y = LaunchTensor(
        "y", "fp32", 4, (M, N), (of_y, 1), before + 4 * sizes[0] + 64, far, (N, 1) if far else ()
    )
    memory = np.full(before // 4 + sum(sizes) + 16 + 16, np.nan, dtype=np.float32)
    values = np.arange(M * N, dtype=np.float32).reshape(M, N)
    view(memory, x)[...] = values
    launch = Launch(
        "double_kernel",
        (M,),
        (x, y),
        ("x", "y", of_x, of_y, N),
        {"BLOCK": triton.next_power_of_2(N), **constexprs},
    )
    return launch, values, memory.tobytes()


def view(memory: np.ndarray, tensor: LaunchTensor) -> np.ndarray:
    strides = tensor.packed_strides if tensor.far else tensor.strides
    return np.lib.stride_tricks.as_strided(
        memory[tensor.start // 4 :], tensor.shape, [4 * stride for stride in strides]
    )


@interpreted
@given(
    M=st.integers(1, 5),
    N=st.integers(1, 20),
    wider=st.tuples(st.integers(0, 9), st.integers(0, 9)),
    before=st.integers(0, 40),
)
def test_a_launch_runs_on_a_copy_of_its_memory_wherever_its_tensors_lie(M, N, wider, before):
    from course_lib.launching.interpreted import PlacedLaunch

    launch, values, memory = make_launch(M, N, (N + wider[0], N + wider[1]), 4 * before)
    placed = PlacedLaunch(launch, memory)
    placed.run(double_kernel)
    after = np.frombuffer(placed.read_memory(), dtype=np.float32)
    assert (view(after, launch.tensors[1]) == 2 * values).all() and (
        view(after, launch.tensors[0]) == values
    ).all()
    assert np.isnan(after).sum() == after.size - 2 * M * N  # nothing else was written
    again = PlacedLaunch(launch, memory)
    assert np.isnan(
        view(np.frombuffer(again.read_memory(), dtype=np.float32), launch.tensors[1])
    ).all()


@interpreted
def test_rows_far_apart_come_back_packed():
    from course_lib.launching.interpreted import PlacedLaunch

    launch, values, memory = make_launch(3, 5, (3 << 29, 3 << 29), 0, far=True)
    assert measure_far(launch) > 2 * 2 * (3 << 29) * 4
    placed = PlacedLaunch(launch, memory)
    placed.run(double_kernel)
    assert (
        view(np.frombuffer(placed.read_memory(), dtype=np.float32), launch.tensors[1]) == 2 * values
    ).all()


@interpreted
def test_an_access_outside_of_the_tensors_stops_the_launch_and_names_the_tensor():
    from course_lib.interpreter.bounds import OutOfBounds
    from course_lib.launching.interpreted import PlacedLaunch

    launch, _, memory = make_launch(2, 5, (5, 5), 64, PAST=2)
    with pytest.raises(OutOfBounds, match="x") as outside:
        PlacedLaunch(launch, memory).run(double_kernel)
    assert outside.value.kind == FaultKind.LOAD


def test_a_launch_comes_back_from_plain_data_as_it_was():
    launch, _, _ = make_launch(2, 5, (8, 9), 64)
    assert decode(Launch, json.loads(json.dumps(encode(Launch, launch)))) == launch
    assert launch.fill_in({"x": 1.5, "y": 2.5}) == [1.5, 2.5, 8, 9, 5]


@given(kinds=st.lists(st.sampled_from(FaultKind), max_size=6))
def test_the_worst_fault_is_the_kind_that_is_listed_first(kinds):
    worst = find_worst(None, *(Misuse(kind, "some words") for kind in kinds), None)
    assert (worst and worst.fault.kind) == min(kinds, key=list(FaultKind).index, default=None)
