"""Interpreted arithmetic against PyTorch and NumPy: bf16 by value, half-precision sums as a tree,
custom combines."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from hypothesis import given, settings
from hypothesis import strategies as st

import course_lib

pytestmark = pytest.mark.skipif(course_lib.MODE == "gpu", reason="about the CPU interpreter")


@triton.jit
def arithmetic_kernel(a_ptr, b_ptr, out_ptr, N: tl.constexpr):
    cols = tl.arange(0, N)
    a = tl.load(a_ptr + cols)
    b = tl.load(b_ptr + cols)
    tl.store(out_ptr + cols, a + b)
    tl.store(out_ptr + N + cols, a * b)
    tl.store(out_ptr + 2 * N + cols, a - b)
    tl.store(out_ptr + 3 * N + cols, tl.where(a < b, a, b))
    tl.store(out_ptr + 4 * N + cols, -a)
    tl.store(out_ptr + 5 * N + cols, a * 2.0 + 1.0)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_arithmetic_is_that_of_pytorch(dtype):
    a, b = torch.randn(256).to(dtype), torch.randn(256).to(dtype)
    out = torch.empty((6, 256), dtype=dtype)
    arithmetic_kernel[(1,)](a, b, out, N=256)
    want = torch.stack([a + b, a * b, a - b, torch.minimum(a, b), -a, (a * 2.0) + 1.0])
    assert torch.equal(out, want)


@triton.jit
def statistics_kernel(x_ptr, out_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    tl.store(out_ptr, tl.sum(x, axis=0))
    tl.store(out_ptr + 1, tl.max(x, axis=0))
    tl.store(out_ptr + 2, tl.min(x, axis=0))


def test_4096_ones_in_bf16_add_up_to_4096():
    out = torch.empty(3, dtype=torch.bfloat16)
    statistics_kernel[(1,)](torch.ones(4096, dtype=torch.bfloat16), out, N=4096)
    assert out.tolist() == [4096.0, 1.0, 1.0]


def test_maxima_of_negative_bf16_are_those_of_the_numbers():
    x = torch.tensor([-1.0, -8.0, -2.0, -0.5], dtype=torch.bfloat16)
    out = torch.empty(3, dtype=torch.bfloat16)
    statistics_kernel[(1,)](x, out, N=4)
    assert out.tolist() == [-11.5, -0.5, -8.0]


@pytest.mark.parametrize(("dtype", "digits"), [(torch.float16, 11), (torch.bfloat16, 8)])
def test_a_half_precision_sum_loses_what_a_tree_loses(dtype, digits):
    """Halves meet halves: the expected sum is the same tree in PyTorch, which rounds each
    addition."""
    x = (8 + 0.5 * torch.randn(1024, generator=torch.Generator().manual_seed(1))).to(dtype)
    out = torch.empty(3, dtype=dtype)
    statistics_kernel[(1,)](x, out, N=1024)
    tree = x
    while len(tree) > 1:
        tree = tree[: len(tree) // 2] + tree[len(tree) // 2 :]
    exact = x.double().sum()
    assert out[0] == tree[0]
    assert 0 < abs(out[0].double() - exact) / exact < 2.0 ** -(digits - 4)


def test_a_half_precision_sum_overflows_as_on_a_gpu():
    out = torch.empty(3, dtype=torch.float16)
    statistics_kernel[(1,)](torch.full((1024,), 100.0, dtype=torch.float16), out, N=1024)
    assert out[0] == float("inf")


@triton.jit
def merge(mean_a, m2_a, n_a, mean_b, m2_b, n_b):
    n = n_a + n_b
    d = mean_b - mean_a
    return mean_a + d * n_b / n, m2_a + m2_b + d * d * n_a * n_b / n, n


@triton.jit
def welford_kernel(x_ptr, out_ptr, ROWS: tl.constexpr, N: tl.constexpr):
    rows = tl.arange(0, ROWS)
    x = tl.load(x_ptr + rows[:, None] * N + tl.arange(0, N)[None, :])
    mean, m2, n = tl.reduce(
        (x, tl.zeros([ROWS, N], tl.float32), tl.full([ROWS, N], 1.0, tl.float32)), 1, merge
    )
    tl.store(out_ptr + rows, mean)
    tl.store(out_ptr + ROWS + rows, m2 / n)
    tl.store(out_ptr + 2 * ROWS + rows, n)


@pytest.mark.parametrize("shape", [(1, 1), (1, 2), (4, 8), (2, 1024)])
def test_a_welford_combine_over_an_axis(shape):
    x = torch.randn(shape) + 5
    out = torch.empty((3, shape[0]))
    welford_kernel[(1,)](x, out, ROWS=shape[0], N=shape[1])
    np.testing.assert_allclose(out[0], x.mean(dim=1), rtol=1e-6)
    np.testing.assert_allclose(out[1], x.var(dim=1, unbiased=False), rtol=1e-4, atol=1e-6)
    assert (out[2] == shape[1]).all()


@triton.jit
def take_left(a, b):
    return a


@triton.jit
def weighted(a, b):
    return a * 3 + b


@triton.jit
def both(a, b):
    return a + b


@triton.jit
def orders_kernel(x_ptr, out_ptr, scan_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    tl.store(out_ptr, tl.reduce(x, 0, take_left))
    tl.store(out_ptr + 1, tl.reduce(x, 0, both))
    tl.store(scan_ptr + tl.arange(0, N), tl.associative_scan(x, 0, both))
    tl.store(scan_ptr + N + tl.arange(0, N), tl.associative_scan(x, 0, take_left))
    tl.store(scan_ptr + 2 * N + tl.arange(0, N), tl.associative_scan(x, 0, both, reverse=True))


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 6), st.integers(0, 2**16))
def test_reductions_and_scans_keep_the_order_of_lanes(power, seed):
    N = 2**power
    x = torch.from_numpy(np.random.default_rng(seed).integers(-100, 100, N).astype(np.int32))
    out, scan = torch.empty(2, dtype=torch.int32), torch.empty((3, N), dtype=torch.int32)
    orders_kernel[(1,)](x, out, scan, N=N)
    assert out.tolist() == [int(x[0]), int(x.sum())]
    assert scan.tolist() == [
        x.cumsum(0).tolist(),
        [int(x[0])] * N,
        x.flip(0).cumsum(0).flip(0).tolist(),
    ]


@triton.jit
def whole_kernel(x_ptr, out_ptr, ROWS: tl.constexpr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, ROWS)[:, None] * N + tl.arange(0, N)[None, :])
    tl.store(out_ptr, tl.reduce(x, None, both))
    kept = tl.reduce(x, 1, both, keep_dims=True)
    tl.store(out_ptr + 1 + tl.arange(0, ROWS)[:, None], kept)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_a_reduction_over_everything_and_one_that_keeps_its_axis(dtype):
    x = torch.arange(32).reshape(4, 8).to(dtype)
    out = torch.empty(5, dtype=dtype)
    whole_kernel[(1,)](x, out, ROWS=4, N=8)
    assert out.tolist() == [496.0, *x.sum(dim=1).tolist()]


@triton.jit
def larger_kernel(x_ptr, out_ptr):
    x = tl.load(x_ptr + tl.arange(0, 4))
    tl.store(out_ptr + tl.arange(0, 4), tl.maximum(x, 0.0))
    tl.store(out_ptr + 4 + tl.arange(0, 4), tl.minimum(x, 0.0))
    tl.store(out_ptr + 8 + tl.arange(0, 4), tl.maximum(x, 0.0, propagate_nan=tl.PropagateNan.ALL))


def test_maximum_returns_the_number_and_passes_a_nan_on_only_when_asked():
    nan = float("nan")
    out = torch.empty(12)
    larger_kernel[(1,)](torch.tensor([1.0, nan, -1.0, nan]), out)
    assert out[:8].tolist() == [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, -1.0, 0.0]
    assert out[8:].isnan().tolist() == [False, True, False, True]


@triton.jit
def both_ends(low_a, high_a, low_b, high_b):
    return min(low_a, low_b), max(high_a, high_b)


@triton.jit
def range_kernel(x_ptr, low_ptr, high_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    low, high = tl.reduce((x, x), 0, both_ends)
    tl.store(low_ptr, low)
    tl.store(high_ptr, high)


def test_a_combine_function_means_what_the_compiler_makes_of_it():
    """Python's min() and max() of two tensors are elementwise there, and once chose one of the two
    blocks here."""
    x, low, high = torch.tensor([2.0, -1, 3, 0.5, -0.5, 1.5, -2, 1]), torch.empty(1), torch.empty(1)
    range_kernel[(1,)](x, low, high, N=8)
    assert (low.item(), high.item()) == (-2.0, 3.0)
