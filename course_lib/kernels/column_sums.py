"""Add up the rows of two matrices of partial sums, in a fixed order: the last step of every dw and
db.

Each matrix has P rows, one per program that made partial sums, and N columns. One kernel adds up
both matrices, so a backward pass launches two kernels instead of three. The order of the additions
depends only on P. There are no atomics and no locks, and the result has the same bits every time.

Source: stage two of the Triton tutorial "Layer Normalization", which sums its GROUP_SIZE_M buffers
in tiles of 32 x 128.
"""

from __future__ import annotations

import functools

import triton
import triton.language as tl
from torch import Tensor
from triton.language.extra.cuda import gdc_wait

from course_lib.kernels.launch import device, operands, tables
from course_lib.kernels.launch.launcher import Launcher


@triton.jit(do_not_specialize=["P"])
def column_sums_kernel(
    # (P, N), fp32 or fp64, both the same, contiguous; second is read only if HAS_SECOND
    first_ptr, second_ptr,
    # (N,), any floating dtype, written; second_sum only if HAS_SECOND
    first_sum_ptr, second_sum_ptr,
    P, N,
    HAS_SECOND: tl.constexpr,
    BLOCK_P: tl.constexpr,      # partial rows per step
    # columns per program: few, so that there are enough programs to fill the device
    BLOCK_N: tl.constexpr,
    # this kernel may start before the kernel that makes the partial sums has ended
    DEPENDENT: tl.constexpr,
    VECTOR: tl.constexpr = 1,       # divides N; a load of so many elements has 16 bytes
):  # fmt: skip
    """Program p adds up BLOCK_N columns of both matrices. Bytes: reads 8 P N, writes 2 N."""
    if DEPENDENT:
        gdc_wait()
    cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    N = N // VECTOR * VECTOR  # in plain sight of the compiler
    ACC: tl.constexpr = first_ptr.dtype.element_ty
    first = tl.zeros([BLOCK_P, BLOCK_N], dtype=ACC)
    second = tl.zeros([BLOCK_P, BLOCK_N], dtype=ACC)
    for start in range(0, P, BLOCK_P):
        rows = start + tl.arange(0, BLOCK_P)
        offsets = rows.to(tl.int64)[:, None] * N + cols[None, :]
        mask = (rows < P)[:, None] & (cols < N)[None, :]
        first += tl.load(first_ptr + offsets, mask=mask, other=0.0)
        if HAS_SECOND:
            second += tl.load(second_ptr + offsets, mask=mask, other=0.0)
    tl.store(
        first_sum_ptr + cols,
        tl.sum(first, axis=0).to(first_sum_ptr.dtype.element_ty),
        mask=cols < N,
    )
    if HAS_SECOND:
        tl.store(
            second_sum_ptr + cols,
            tl.sum(second, axis=0).to(second_sum_ptr.dtype.element_ty),
            mask=cols < N,
        )


def column_sums(
    first: Tensor | None, second: Tensor | None, total: Tensor | None, other: Tensor | None
) -> None:
    """Fill ``total`` with the column sums of ``first``, and ``other`` with those of ``second``.

    Args:
        first, second: shape (P, N), contiguous, fp32 (or both fp64); P may be 0. Each may be None.
        total, other: shape (N,), any floating dtype; None where the matrix is None.
    """
    if first is None:
        first, second, total, other = second, None, other, None
    if first is None or total is None:
        return
    P, N = first.shape
    block_n, launcher = _prepare(
        N,
        second is not None,
        device.has_dependent_launch(first.device),
        operands.find_vector(first),
    )
    launcher(
        (-(-N // block_n),),
        first,
        first if second is None else second,
        total,
        total if other is None else other,
        P,
        N,
    )


@functools.cache
def _prepare(N: int, has_second: bool, dependent: bool, vector: int) -> tuple[int, Launcher]:
    block_p, block_n, num_warps = tables.column_sums(N)
    return block_n, Launcher(
        column_sums_kernel, HAS_SECOND=has_second, BLOCK_P=block_p, BLOCK_N=block_n,
        DEPENDENT=dependent, VECTOR=vector, num_warps=num_warps,
        **device.dependent_launch_options(dependent),
    )  # fmt: skip
