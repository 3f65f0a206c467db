"""Adds up the rows of two matrices of fp32 partial sums, in a fixed order: the last step of every dw and db.

The sums are small (P rows, one a program that made them), but there are N of them, and one kernel adds both up, so that
a backward pass launches two kernels and not three. The order of the additions depends on P alone: no atomics, no locks,
the same bits every time.

Source: stage two of the Triton tutorial "Layer Normalization", which sums its GROUP_SIZE_M buffers in tiles of 32 x
128.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.language.extra.cuda import gdc_wait

from course_lib.kernels.launch import device, tables


@triton.jit(do_not_specialize=["P"])
def column_sums_kernel(
    first_ptr, second_ptr,           # (P, N), fp32 or fp64, both the same, contiguous; second is read only if HAS_SECOND
    first_sum_ptr, second_sum_ptr,   # (N,), any floating dtype, written; second_sum only if HAS_SECOND
    P, N,
    HAS_SECOND: tl.constexpr,
    BLOCK_P: tl.constexpr,      # partial rows a step
    BLOCK_N: tl.constexpr,      # columns a program: few, so that there are programs enough to fill the device
    DEPENDENT: tl.constexpr,    # may have started before the kernel that makes the partial sums has ended
):  # fmt: skip
    """Program p adds up BLOCK_N columns of both matrices. Bytes: reads 8 P N, writes 2 N."""
    if DEPENDENT:
        gdc_wait()
    cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
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
    tl.store(first_sum_ptr + cols, tl.sum(first, axis=0).to(first_sum_ptr.dtype.element_ty), mask=cols < N)
    if HAS_SECOND:
        tl.store(second_sum_ptr + cols, tl.sum(second, axis=0).to(second_sum_ptr.dtype.element_ty), mask=cols < N)


def column_sums(
    first: Tensor, second: Tensor | None, dtype: torch.dtype, second_dtype: torch.dtype | None = None
) -> tuple[Tensor, Tensor | None]:
    """The sums over the rows of ``first`` and, where given, ``second``.

    Args:
        first, second: shape (P, N), contiguous, fp32 (or both fp64); P may be 0.
        dtype, second_dtype: of the results; ``second_dtype`` None takes ``dtype``.

    Returns: two tensors of shape (N,), the second None where ``second`` is.
    """
    P, N = first.shape
    total = torch.empty(N, dtype=dtype, device=first.device)
    other = None if second is None else torch.empty(N, dtype=second_dtype or dtype, device=first.device)
    dependent = device.has_dependent_launch(first.device)
    block_p, block_n, num_warps = tables.column_sums(N)
    column_sums_kernel[(triton.cdiv(N, block_n),)](
        first, first if second is None else second, total, total if other is None else other, P, N,
        HAS_SECOND=second is not None, BLOCK_P=block_p, BLOCK_N=block_n, DEPENDENT=dependent, num_warps=num_warps,
        **device.dependent_launch_options(dependent),
    )  # fmt: skip
    return total, other
