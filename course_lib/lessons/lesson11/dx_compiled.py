"""Compiled dx kernels for lesson 11: the barriers of three ways to compute the row sums, and the
width of the loads."""

from __future__ import annotations

from functools import cache
from typing import Any

import triton
import triton.language as tl

from course_lib.compiler import Pointer, compile_report
from course_lib.kernels.norm_backward import norm_dx_kernel
from course_lib.lessons.own_launch import order_arguments
from course_lib.lessons.pictures.compiled_kernel.model import learners_kernel, make_pointers

_HALF, _SINGLE = Pointer("fp16"), Pointer("fp32")
_WAYS = {
    "computed anew": {"SAVED": False, "PAIR": False},
    "saved": {"SAVED": True, "PAIR": False},
    "saved, in one reduction": {"SAVED": True, "PAIR": True},
}


@triton.jit
def add_pairs(a, b, other_a, other_b):
    return a + other_a, b + other_b


@triton.jit
def three_ways_kernel(
    dy_ptr, x_ptr, mean_ptr, rstd_ptr, dx_ptr, N, eps, SAVED: tl.constexpr, PAIR: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """dx of packed rows with w = 1. SAVED loads the statistics, else they are recomputed; PAIR
    computes both sums in one reduction."""
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * N + cols, mask=mask, other=0.0).to(tl.float32)
    dy = tl.load(dy_ptr + row * N + cols, mask=mask, other=0.0).to(tl.float32)
    if SAVED:
        mean = tl.load(mean_ptr + row)
        rstd = tl.load(rstd_ptr + row)
    else:
        mean = tl.sum(x, axis=0) / N
        deviation = tl.where(mask, x - mean, 0.0)
        rstd = tl.rsqrt(tl.sum(deviation * deviation, axis=0) / N + eps)
    xhat = (x - mean) * rstd
    if PAIR:
        products, total = tl.reduce((xhat * dy, dy), 0, add_pairs)
    else:
        products = tl.sum(xhat * dy, axis=0)
        total = tl.sum(dy, axis=0)
    dx = (dy - (xhat * (products / N) + total / N)) * rstd
    tl.store(dx_ptr + row * N + cols, dx.to(dx_ptr.dtype.element_ty), mask=mask)


@cache
def count_waits() -> dict[str, tuple[int, int]]:
    """Count barriers (BAR.SYNC) and shuffles (SHFL) in the SASS of each way: fp16, BLOCK 4096, 8
    warps, sm_90."""
    passed = [_HALF, _HALF, _SINGLE, _SINGLE, _HALF, 4096, 1e-5]
    reports = {
        name: compile_report(
            three_ways_kernel, passed, {**way, "BLOCK": 4096}, num_warps=8, arch="sm_90"
        )
        for name, way in _WAYS.items()
    }
    return {
        name: ((report.sass or "").count("BAR.SYNC"), (report.sass or "").count("SHFL"))
        for name, report in reports.items()
    }


def count_loads(stride_dy_row: int, stride_dy_col: int, *, yours: bool = False) -> dict[int, int]:
    """Count the loads per thread by their width in bytes, in LayerNorm's dx for M = 4096 rows of N
    = 8192 columns: fp16, 8 warps, sm_90.

    Args:
        yours: compile the learner's kernel of exercise 11a instead of the course's.

    Raises: CourseError if exercise 11a has not been attempted, or the compiler refuses the kernel.
    """
    tensors, M, N = [_HALF, _HALF, _HALF, _SINGLE, _SINGLE, _HALF], 4096, 8192
    shape: dict[str, Any] = {"ROWS": 1, "BLOCK": N}
    if yours:
        arguments = (
            make_pointers("11a", "fp16")
            | {"stride_dy_row": stride_dy_row, "stride_dy_col": stride_dy_col}
            | shape
        )
        report = compile_report(
            learners_kernel("11a"),
            *order_arguments("11a", M, N, arguments),
            num_warps=8,
            arch="sm_90",
        )
    else:
        passed = [*tensors, stride_dy_row, stride_dy_col, N, 1, N, M, N]
        constants = {"CENTRED": True, "HAS_W": True} | shape
        report = compile_report(norm_dx_kernel, passed, constants, num_warps=8, arch="sm_90")
    return report.loads or {}
