"""LayerNorm and RMSNorm forward for rows far from a power of two: a row is a tile of BLOCK and one of TAIL columns.

A block has a power of two of lanes, so a row of 4097 columns in one block fills 8192, and half of the lanes do nothing.
Nothing is not free: where rows are no multiple of 16 elements long, every lane has an instruction of its own for each
load and store, masked or not. Two blocks, 4096 + 16, fit the row. The first is full and needs no column mask.

**Rows that begin at any address.** Where a row is no multiple of 16 elements, x and y move 2 bytes at a time. w and b
begin at a multiple of 16 bytes, so the compiler loads them in vectors, and then carries each element through shared
memory to the thread that has its x. That fills the pipe between registers and L1 cache: 83 % busy at N = 4095,
LayerNorm, with 53 % of the memory's bandwidth. Compiled without knowing where w and b begin, it loads them like x: 43
%, and 59 % of the bandwidth. With 128 registers a thread four programs share a multiprocessor.

Bytes: x read once and y written once, 2 M N; with a residual 4 M N. Measured on an H100, fp16, time over floor,
LayerNorm and RMSNorm: one block 4095 1.69 1.23, 4097 4.15 2.02, 5120 1.18 1.04; two tiles 1.40 1.18, 1.20 1.15, 1.02
1.01; w and b like x 1.19 1.07 and 1.15 1.08.

Source: the masked tail after full blocks is how vectorised CPU loops end.
"""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

from course_lib.kernels.launch import choice, operands, tables
from course_lib.kernels.launch.launcher import launch


def two_tiles_kernel(
    x_ptr, residual_ptr,      # (M, N), fp16, bf16, fp32 or fp64, both the same; residual is read only if ADD
    total_ptr, y_ptr,         # (M, N), x's dtype, unit column stride, written; total only if ADD
    w_ptr, b_ptr,             # (N,), any of those dtypes; read only if HAS_W, HAS_B
    mean_ptr, rstd_ptr,       # (M,), fp32, or fp64 for an fp64 x, written; mean only if CENTRED
    stride_x_row, stride_x_col, stride_residual_row, stride_residual_col, stride_y_row,   # in elements
    N, eps,
    CENTRED: tl.constexpr,    # LayerNorm; else RMSNorm
    HAS_W: tl.constexpr, HAS_B: tl.constexpr,
    ADD: tl.constexpr,        # add the residual first, and store the sum in total
    BLOCK: tl.constexpr,      # columns of the first tile, at most N
    TAIL: tl.constexpr,       # columns of the second, at least N - BLOCK
    EVICTION_POLICY: tl.constexpr,   # of x, residual and y, which are read or written once, so that w and b stay in L2
):  # fmt: skip
    """One row a program. Registers: (BLOCK + TAIL) / (32 * num_warps) fp32 a thread."""
    ACC: tl.constexpr = tl.float64 if x_ptr.dtype.element_ty == tl.float64 else tl.float32
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    tail_cols = BLOCK + tl.arange(0, TAIL)
    mask = tail_cols < N
    wide = cols.to(tl.int64) * stride_x_col
    tail_wide = tail_cols.to(tl.int64) * stride_x_col

    x = tl.load(x_ptr + row * stride_x_row + wide, eviction_policy=EVICTION_POLICY)
    tail = tl.load(x_ptr + row * stride_x_row + tail_wide, mask=mask, other=0.0, eviction_policy=EVICTION_POLICY)
    if ADD:
        source = residual_ptr + row * stride_residual_row
        x += tl.load(source + cols.to(tl.int64) * stride_residual_col, eviction_policy=EVICTION_POLICY)
        tail += tl.load(
            source + tail_cols.to(tl.int64) * stride_residual_col, mask=mask, other=0.0, eviction_policy=EVICTION_POLICY
        )
        tl.store(total_ptr + row * stride_y_row + cols, x)
        tl.store(total_ptr + row * stride_y_row + tail_cols, tail, mask=mask)
    x = x.to(ACC)
    tail = tail.to(ACC)

    if CENTRED:
        mean = (tl.sum(x, axis=0) + tl.sum(tail, axis=0)) / N
        x -= mean
        tail = tl.where(mask, tail - mean, 0.0)  # a padded lane holds 0 - mean, and would be squared
        tl.store(mean_ptr + row, mean)
    rstd = tl.rsqrt((tl.sum(x * x, axis=0) + tl.sum(tail * tail, axis=0)) / N + eps)
    tl.store(rstd_ptr + row, rstd)

    y = x * rstd
    tail_y = tail * rstd
    if HAS_W:
        y *= tl.load(w_ptr + cols, eviction_policy="evict_last").to(ACC)
        tail_y *= tl.load(w_ptr + tail_cols, mask=mask, other=0.0, eviction_policy="evict_last").to(ACC)
    if HAS_B:
        y += tl.load(b_ptr + cols, eviction_policy="evict_last").to(ACC)
        tail_y += tl.load(b_ptr + tail_cols, mask=mask, other=0.0, eviction_policy="evict_last").to(ACC)
    tl.store(y_ptr + row * stride_y_row + cols, y.to(y_ptr.dtype.element_ty), eviction_policy=EVICTION_POLICY)
    tl.store(
        y_ptr + row * stride_y_row + tail_cols,
        tail_y.to(y_ptr.dtype.element_ty),
        mask=mask,
        eviction_policy=EVICTION_POLICY,
    )


two_tiles_forward_kernel = triton.jit(two_tiles_kernel)
# the same for rows that begin at any address: w and b are then loaded in the layout of x
unaligned_two_tiles_forward_kernel = triton.jit(two_tiles_kernel, do_not_specialize_on_alignment=["w_ptr", "b_ptr"])


def choose_kernel(N: int, num_warps: int) -> tuple:
    """The kernel for rows of N columns, and the registers a thread may take at most (None: any number)."""
    if N % 16 == 0:
        return two_tiles_forward_kernel, None
    return (
        unaligned_two_tiles_forward_kernel,
        128 if num_warps <= 16 else None,
    )  # 32 warps have 64 each, whatever is asked for


def two_tiles_forward(
    x: Tensor, residual: Tensor | None, w: Tensor | None, b: Tensor | None, y: Tensor, total: Tensor | None,
    mean: Tensor | None, rstd: Tensor, eps: float,
) -> None:  # fmt: skip
    """As :func:`course_lib.kernels.split_row.split_forward`, for 1 <= N <= RESIDENT_LIMIT, and fp64 too, mean and rstd
    with it.

    Raises: ValueError if N is out of that range.
    """
    M, N = x.shape
    block, tail, num_warps = tables.two_tiles(N, fast=choice.is_fast(x))
    kernel, most_registers = choose_kernel(N, num_warps)
    added = operands.first_given(residual, x)
    launch(
        kernel, (M,), x, added, operands.first_given(total, y), y, operands.first_given(w, x), operands.first_given(b, x),
        operands.first_given(mean, rstd), rstd,
        *operands.strides(x), *operands.strides(added), y.stride(0), N, eps,
        CENTRED=mean is not None, HAS_W=w is not None, HAS_B=b is not None, ADD=residual is not None,
        BLOCK=block, TAIL=tail, EVICTION_POLICY=tables.eviction_policy(N, add=residual is not None),
        num_warps=num_warps, maxnreg=most_registers,
    )  # fmt: skip
