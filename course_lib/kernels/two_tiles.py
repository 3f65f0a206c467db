"""LayerNorm and RMSNorm forward for rows far from a power of two: a row is a tile of BLOCK and a
tile of TAIL columns.

The lanes of a block are a power of two. So a row of 4097 columns in one block needs 8192 lanes, and
half of them are idle. Idle lanes are not free: if rows are not whole vectors of 16
bytes, every lane has its own instruction for each load and store, masked or not. Two blocks,
4096 + 16, fit the row. The first is full and needs no column mask.

**Rows that begin at any address.** If rows are not whole vectors of 16 bytes, x and y
move one element at a time. w and b begin at a multiple of 16 bytes, so the compiler would load them
in vectors, and move each element through shared memory to the thread that has its x. Then the pipe
between registers and L1 cache is the bottleneck, not the memory. If the compiler does not know the
alignment of w and b, it loads them like x. With at most 128 registers per thread, four programs
share a multiprocessor.

Bytes: x read once and y written once, 2 M N; with a residual 4 M N. docs/kernel-trials.md has the
measurements: "Forward" compares one block, two tiles, and w and b loaded like x; "Where it stops"
has the counters.

Source: vectorised CPU loops also end with a masked tail after full blocks.
"""

from __future__ import annotations

import functools
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from course_lib.kernels.arguments import add_offset, read_eps
from course_lib.kernels.launch import operands, tables
from course_lib.kernels.launch.device_classes import DeviceClass, find_line, has_whole_vectors
from course_lib.kernels.launch.launcher import Launcher


def two_tiles_kernel(
    # (M, N), fp16, bf16, fp32 or fp64, both the same; residual is read only if ADD
    x_ptr, residual_ptr,
    # (M, N), unit column stride, written; total, of x's dtype, only if ADD; y any of those dtypes
    total_ptr, y_ptr,
    w_ptr, b_ptr,             # (N,), any of those dtypes; read only if HAS_W, HAS_B
    mean_ptr, rstd_ptr,       # (M,), fp32, or fp64 for an fp64 x, written; mean only if CENTRED
    # in elements
    stride_x_row, stride_x_col, stride_residual_row, stride_residual_col, stride_y_row,
    N, eps,
    CENTRED: tl.constexpr,    # LayerNorm; else RMSNorm
    HAS_W: tl.constexpr, HAS_B: tl.constexpr,
    ADD: tl.constexpr,        # add the residual first, and store the sum in total
    BLOCK: tl.constexpr,      # columns of the first tile, at most N
    TAIL: tl.constexpr,       # columns of the second, at least N - BLOCK
    # for x, residual and y, read or written once, so that w and b stay in L2
    EVICTION_POLICY: tl.constexpr,
    # divides N and the row strides; a load of so many elements has 16 bytes
    VECTOR: tl.constexpr = 1,
    W_OFFSET: tl.constexpr = 0.0,   # added to w
):  # fmt: skip
    """One row per program. Registers: (BLOCK + TAIL) / (32 * num_warps) fp32 per thread."""
    ACC: tl.constexpr = tl.float64 if x_ptr.dtype.element_ty == tl.float64 else tl.float32
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    tail_cols = BLOCK + tl.arange(0, TAIL)
    # VECTOR divides them, here in plain sight of the compiler
    N = N // VECTOR * VECTOR
    stride_x_row = stride_x_row // VECTOR * VECTOR
    stride_residual_row = stride_residual_row // VECTOR * VECTOR
    stride_y_row = stride_y_row // VECTOR * VECTOR
    mask = tail_cols < N
    wide = cols.to(tl.int64) * stride_x_col
    tail_wide = tail_cols.to(tl.int64) * stride_x_col

    x = tl.load(x_ptr + row * stride_x_row + wide, eviction_policy=EVICTION_POLICY)
    tail = tl.load(
        x_ptr + row * stride_x_row + tail_wide,
        mask=mask,
        other=0.0,
        eviction_policy=EVICTION_POLICY,
    )
    if ADD:
        source = residual_ptr + row * stride_residual_row
        x += tl.load(
            source + cols.to(tl.int64) * stride_residual_col, eviction_policy=EVICTION_POLICY
        )
        tail += tl.load(
            source + tail_cols.to(tl.int64) * stride_residual_col,
            mask=mask,
            other=0.0,
            eviction_policy=EVICTION_POLICY,
        )
        tl.store(total_ptr + row * stride_y_row + cols, x)
        tl.store(total_ptr + row * stride_y_row + tail_cols, tail, mask=mask)
    x = x.to(ACC)
    tail = tail.to(ACC)

    if CENTRED:
        mean = (tl.sum(x, axis=0) + tl.sum(tail, axis=0)) / N
        x -= mean
        # a padded lane holds 0 - mean, and would be squared
        tail = tl.where(mask, tail - mean, 0.0)
        tl.store(mean_ptr + row, mean)
    rstd = tl.rsqrt((tl.sum(x * x, axis=0) + tl.sum(tail * tail, axis=0)) / N + read_eps(eps))
    tl.store(rstd_ptr + row, rstd)

    y = x * rstd
    tail_y = tail * rstd
    if HAS_W:
        w = tl.load(w_ptr + cols, eviction_policy="evict_last")
        y *= add_offset(w.to(ACC), W_OFFSET)
        tail_w = tl.load(w_ptr + tail_cols, mask=mask, other=0.0, eviction_policy="evict_last")
        tail_y *= add_offset(tail_w.to(ACC), W_OFFSET)
    if HAS_B:
        y += tl.load(b_ptr + cols, eviction_policy="evict_last").to(ACC)
        tail_y += tl.load(b_ptr + tail_cols, mask=mask, other=0.0, eviction_policy="evict_last").to(
            ACC
        )
    tl.store(
        y_ptr + row * stride_y_row + cols,
        y.to(y_ptr.dtype.element_ty),
        eviction_policy=EVICTION_POLICY,
    )
    tl.store(
        y_ptr + row * stride_y_row + tail_cols,
        tail_y.to(y_ptr.dtype.element_ty),
        mask=mask,
        eviction_policy=EVICTION_POLICY,
    )


two_tiles_forward_kernel = triton.jit(two_tiles_kernel)
# for rows that begin at any address: without knowing the alignment of w and b, the compiler loads
# them like x
unaligned_two_tiles_forward_kernel = triton.jit(
    two_tiles_kernel, do_not_specialize_on_alignment=["w_ptr", "b_ptr"]
)


def choose_kernel(N: int, dtype: torch.dtype) -> Any:
    """Return the kernel for rows of N columns."""
    return (
        two_tiles_forward_kernel
        if has_whole_vectors(N, dtype)
        else unaligned_two_tiles_forward_kernel
    )


def two_tiles_forward(
    tuned: DeviceClass, x: Tensor, residual: Tensor | None, w: Tensor | None, b: Tensor | None,
    y: Tensor, total: Tensor | None,
    mean: Tensor | None, rstd: Tensor, eps: float, w_offset: float,
) -> None:  # fmt: skip
    """Compute what :func:`course_lib.kernels.split_row.split_forward` does, for 1 <= N <=
    RESIDENT_LIMIT. x may also be fp64; mean and rstd are then fp64.

    Raises: ValueError if N is out of that range.
    """
    M, N = x.shape
    added = operands.first_given(residual, x)
    strides = *operands.strides(x), *operands.strides(added)
    launcher = _prepare(
        N, x.dtype, tuned, mean is not None, w is not None, b is not None, residual is not None,
        operands.find_vector(x, strides[0], strides[2]), w_offset,
    )  # fmt: skip
    launcher(
        (M,), x, added, operands.first_given(total, y), y, operands.first_given(w, x),
        operands.first_given(b, x),
        operands.first_given(mean, rstd), rstd,
        *strides, y.stride(0), N, eps,
    )  # fmt: skip


@functools.cache
def _prepare(
    N: int, dtype: torch.dtype, tuned: DeviceClass, centred: bool, has_w: bool, has_b: bool,
    add: bool, vector: int, w_offset: float,
) -> Launcher:  # fmt: skip
    block, tail, num_warps = tables.two_tiles(N, dtype, tuned=tuned)
    return Launcher(
        choose_kernel(N, dtype), CENTRED=centred, HAS_W=has_w, HAS_B=has_b, ADD=add, BLOCK=block,
        TAIL=tail,
        EVICTION_POLICY=tables.eviction_policy(N, dtype, add=add), VECTOR=vector,
        W_OFFSET=w_offset,
        num_warps=num_warps, maxnreg=find_line(tuned.two_tiles, N, dtype).registers,
    )  # fmt: skip
