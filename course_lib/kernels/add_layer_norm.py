"""A residual addition and the LayerNorm of its result in one kernel, for rows that stay in
registers.

Bytes: x and residual are read once, total and y written once, 4 M N elements. An addition and a
LayerNorm in separate kernels move 5 M N: total is written by one kernel and read by the next.

This is the resident kernel of layer_norm.py with the addition in front. It has its own file so that
lesson 07 can read a kernel without a residual; its caller is ``layer_norm.add_layer_norm_forward``.

Source: the fused addition of lesson 09, which is an option of the RMSNorm kernel.
"""

from __future__ import annotations

import triton
import triton.language as tl

from course_lib.kernels.arguments import add_offset, read_eps


@triton.jit(do_not_specialize=["M"])
def add_layer_norm_kernel(
    x_ptr, residual_ptr,      # (M, N), fp16, bf16, fp32 or fp64, both the same
    # (M, N), unit column stride, written; total has x's dtype, y any of those
    total_ptr, y_ptr,
    w_ptr, b_ptr,             # (N,), any of those dtypes; read only if HAS_W, HAS_B
    mean_ptr, rstd_ptr,       # (M,), fp32, or fp64 for an fp64 x, written
    # in elements
    stride_x_row, stride_x_col, stride_residual_row, stride_residual_col, stride_y_row,
    M, N, eps,
    HAS_W: tl.constexpr, HAS_B: tl.constexpr,
    ROWS: tl.constexpr,       # rows per program
    BLOCK: tl.constexpr,      # power of two >= N: the whole row stays in registers
    # divides N and the row strides; a load of so many elements has 16 bytes
    VECTOR: tl.constexpr = 1,
    W_OFFSET: tl.constexpr = 0.0,   # added to w
):  # fmt: skip
    """A tile of ROWS whole rows per program. Registers: ROWS * BLOCK / (32 * num_warps) fp32 per
    thread."""
    ACC: tl.constexpr = tl.float64 if x_ptr.dtype.element_ty == tl.float64 else tl.float32
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    cols = tl.arange(0, BLOCK)
    # VECTOR divides them, here in plain sight of the compiler
    N = N // VECTOR * VECTOR
    stride_x_row = stride_x_row // VECTOR * VECTOR
    stride_residual_row = stride_residual_row // VECTOR * VECTOR
    stride_y_row = stride_y_row // VECTOR * VECTOR
    col_mask = cols < N
    mask = (rows < M)[:, None] & col_mask[None, :]
    wide = cols.to(tl.int64)[None, :]
    y_offsets = rows[:, None] * stride_y_row + wide

    x = tl.load(
        x_ptr + rows[:, None] * stride_x_row + wide * stride_x_col, mask=mask, other=0.0
    ).to(ACC)
    x += tl.load(
        residual_ptr + rows[:, None] * stride_residual_row + wide * stride_residual_col,
        mask=mask,
        other=0.0,
    ).to(ACC)
    rounded = x.to(total_ptr.dtype.element_ty)
    tl.store(total_ptr + y_offsets, rounded, mask=mask)
    x = rounded.to(ACC)  # the next layer reads the rounded sum, so this one normalises it too

    mean = tl.sum(x, axis=1) / N
    # a padded lane holds 0 - mean, and would be squared
    deviation = tl.where(col_mask[None, :], x - mean[:, None], 0.0)
    rstd = tl.rsqrt(tl.sum(deviation * deviation, axis=1) / N + read_eps(eps))
    y = deviation * rstd[:, None]
    if HAS_W:
        w = tl.load(w_ptr + cols, mask=col_mask, other=0.0, eviction_policy="evict_last").to(ACC)
        y *= add_offset(w, W_OFFSET)[None, :]
    if HAS_B:
        y += tl.load(b_ptr + cols, mask=col_mask, other=0.0, eviction_policy="evict_last").to(ACC)[
            None, :
        ]
    tl.store(mean_ptr + rows, mean, mask=rows < M)
    tl.store(rstd_ptr + rows, rstd, mask=rows < M)
    tl.store(y_ptr + y_offsets, y.to(y_ptr.dtype.element_ty), mask=mask)
