"""What the course changes in Triton's interpreter: rounding, launches from two threads, and a hook
that has moved."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

import course_lib
from course_lib.interpreter import install, losses, numerics

interpreted = pytest.mark.skipif(
    course_lib.MODE != "cpu", reason="this process compiles: the interpreter is not in use"
)
BITS = np.arange(2**16, dtype=np.uint32) << 16
# each bf16 value itself, its neighbours in fp32, just under half way to the next one, half way,
# just over
LOW_HALVES = (0x0000, 0x0001, 0x7FFF, 0x8000, 0x8001, 0xFFFF)
VALUES = np.concatenate([BITS | low for low in LOW_HALVES]).astype(np.uint32).view(np.float32)


def by_torch(values: np.ndarray) -> np.ndarray:
    return torch.from_numpy(values).to(torch.bfloat16).view(torch.int16).numpy().view(np.uint16)


def assert_same(bits: np.ndarray, values: np.ndarray) -> None:
    """Equal to PyTorch bit for bit; a NaN has many spellings, and stays one."""
    nan = np.isnan(values)
    np.testing.assert_array_equal(bits[~nan], by_torch(values)[~nan])
    back = (bits[nan].astype(np.uint32) << 16).view(np.float32)
    assert np.isnan(back).all() and nan.any()


@triton.jit
def explicit_kernel(x_ptr, y_ptr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + offsets, tl.load(x_ptr + offsets).to(tl.bfloat16))


@triton.jit
def implicit_kernel(x_ptr, y_ptr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + offsets, tl.load(x_ptr + offsets))


@pytest.mark.filterwarnings("error")
def test_every_bf16_value_and_every_halfway_case_rounds_as_pytorch_rounds():
    assert_same(numerics.bf16_bits(VALUES), VALUES)


@interpreted
@pytest.mark.parametrize("kernel", [explicit_kernel, implicit_kernel], ids=["to", "store"])
def test_a_kernel_rounds_the_same(kernel):
    y = torch.empty(VALUES.size, dtype=torch.bfloat16)
    kernel[(len(LOW_HALVES),)](torch.from_numpy(VALUES), y, BLOCK=2**16)
    assert_same(y.view(torch.int16).numpy().view(np.uint16), VALUES)


@pytest.mark.parametrize(
    ("value", "bits"),
    [
        (1 + 2**-8, 0x3F80),  # half way between 1 and 1 + 2^-7: to the even one, down
        (1 + 3 * 2**-8, 0x3F82),  # half way again: to the even one, up
        (1 + 2**-8 + 2**-20, 0x3F81),
        (float("inf"), 0x7F80),
        (-float("inf"), 0xFF80),
        (3.4028235e38, 0x7F80),  # the largest fp32 lies beyond the largest bf16
        (-0.0, 0x8000),
        (2.0**-133, 0x0001),  # the smallest subnormal
    ],
)
def test_values_worked_out_by_hand(value, bits):
    assert numerics.bf16_bits(np.array([value], dtype=np.float32)).tolist() == [bits]


def test_the_shape_is_kept():
    assert numerics.bf16_bits(np.ones((3, 2), dtype=np.float32)).shape == (3, 2)
    assert numerics.bf16_bits(np.float32(1)).shape == ()


@interpreted
def test_other_casts_are_left_alone():
    x = torch.tensor([1.0, 2.5, -3.75, 65000.0, float("inf"), 1 + 2**-11, 0.1, -0.0])
    for dtype in (torch.float16, torch.float64, torch.float32):
        y = torch.empty(8, dtype=dtype)
        implicit_kernel[(1,)](x, y, BLOCK=8)
        assert torch.equal(y, x.to(dtype))
        half = x.to(torch.bfloat16)
        implicit_kernel[(1,)](half, y, BLOCK=8)
        assert torch.equal(y, half.to(dtype))


# ---- two threads ---------------------------------------------------------------------------------


def nothing() -> None:
    """Called by the kernel below, which the interpreter runs as Python; a test puts something else
    here."""


between = nothing


@triton.jit
def number_kernel(y_ptr, N, BLOCK: tl.constexpr):
    between()
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + offsets, offsets, mask=offsets < N)


def number(n: int, block: int) -> torch.Tensor:
    y = torch.full((n,), -1, dtype=torch.int32)
    number_kernel[(triton.cdiv(n, block),)](y, n, BLOCK=block)
    return y


@interpreted
def test_a_launch_from_another_thread_waits_for_the_one_that_runs(monkeypatch):
    started, results = threading.Event(), {}

    def other_thread():
        started.set()
        results["other"] = number(24, 4)

    thread = threading.Thread(target=other_thread)

    def start_the_other_launch_in_the_middle_of_this_one():
        monkeypatch.setitem(globals(), "between", nothing)
        thread.start()
        started.wait(5)
        # without the lock the other launch is over by now, and the grid index is its last
        thread.join(0.3)
        results["done early"] = "other" in results

    monkeypatch.setitem(globals(), "between", start_the_other_launch_in_the_middle_of_this_one)
    mine = number(64, 8)
    thread.join(10)
    assert not results["done early"]
    assert mine.tolist() == list(range(64)) and results["other"].tolist() == list(range(24))


@interpreted
def test_many_launches_from_four_threads_are_all_right():
    wrong = []

    def launches(seed: int) -> None:
        for block in (2, 4, 8, 16) * 3:
            if number(50 + seed, block).tolist() != list(range(50 + seed)):
                wrong.append((seed, block))

    threads = [threading.Thread(target=launches, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not wrong and not any(thread.is_alive() for thread in threads)


@interpreted
def test_a_kernel_that_raises_does_not_keep_the_lock(monkeypatch):
    def fails():
        raise ValueError("from inside")

    monkeypatch.setitem(globals(), "between", fails)
    with pytest.raises(Exception, match="from inside"):
        number(8, 8)
    monkeypatch.setitem(globals(), "between", nothing)
    got = []
    thread = threading.Thread(target=lambda: got.append(number(8, 8)))
    thread.start()
    thread.join(10)
    assert got and got[0].tolist() == list(range(8))


@interpreted
def test_a_thread_that_launches_already_may_launch_again():
    from course_lib.interpreter.lock import LOCK

    with LOCK:
        assert number(8, 4).tolist() == list(range(8))


# ---- installing ----------------------------------------------------------------------------------


@interpreted
def test_installing_again_changes_nothing():
    from triton.runtime.interpreter import GridExecutor, InterpreterBuilder

    hooks = GridExecutor.__call__, InterpreterBuilder.cast_impl, InterpreterBuilder.create_fp_to_fp
    install()
    assert hooks == (
        GridExecutor.__call__,
        InterpreterBuilder.cast_impl,
        InterpreterBuilder.create_fp_to_fp,
    )
    assert losses() == []


@interpreted
@pytest.mark.parametrize(
    ("gone", "named"),
    [
        ("triton.runtime.interpreter.InterpreterBuilder.cast_impl", "truncated"),
        ("triton.runtime.interpreter.InterpreterBuilder.create_fp_to_fp", "truncated"),
        ("triton.runtime.interpreter.GridExecutor.__call__", "widget"),
        ("triton.runtime.interpreter.GridExecutor", "widget"),
        ("triton.runtime.interpreter.TensorHandle", "truncated"),
    ],
)
def test_a_hook_that_has_moved_is_named_and_nothing_raises(monkeypatch, gone, named):
    import sys

    from triton.runtime.interpreter import GridExecutor, InterpreterBuilder

    state = sys.modules["course_lib.interpreter.install"]
    monkeypatch.setattr(state, "_losses", None)
    # set to themselves: what the second installation changes is undone with the rest
    for owner, name in (
        (GridExecutor, "__call__"),
        (InterpreterBuilder, "cast_impl"),
        (InterpreterBuilder, "create_fp_to_fp"),
    ):
        monkeypatch.setattr(owner, name, getattr(owner, name))
    stock = GridExecutor.__call__, InterpreterBuilder.cast_impl
    if gone.endswith("__call__"):
        # every class can be called for its __call__: its own has to be gone from the type too
        monkeypatch.setattr("triton.runtime.interpreter.GridExecutor", object())
    else:
        monkeypatch.delattr(gone)
    install()
    assert any(named in loss for loss in losses()) and all(
        "Triton changed" in loss for loss in losses()
    )
    # the other one was still made
    if named == "truncated":
        assert GridExecutor.__call__ is not stock[0]
    else:
        assert InterpreterBuilder.cast_impl is not stock[1]
