"""Columns are summed in every step; an end instead of two masks."""

import triton
import triton.language as tl


@triton.jit
def column_partials_kernel(
    dy_ptr, x_ptr, mean_ptr, rstd_ptr, dw_partial_ptr, db_partial_ptr,
    stride_dy_row, stride_dy_col, stride_x,   # elements; the columns of x are neighbours
    M, N, rows_a_chunk,
    BLOCK_M: tl.constexpr,                    # rows a step
    BLOCK_N: tl.constexpr,                    # columns a program
):
    cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    wide = cols.to(tl.int64)[None, :]         # for dy: column * stride_dy_col can pass 2^31, too
    chunk = tl.program_id(1).to(tl.int64)
    end = tl.minimum((chunk + 1) * rows_a_chunk, M)
    dw = tl.zeros([BLOCK_N], dtype=tl.float32)
    db = tl.zeros([BLOCK_N], dtype=tl.float32)
    for start in range(0, rows_a_chunk, BLOCK_M):
        within = start + tl.arange(0, BLOCK_M)
        rows = chunk * rows_a_chunk + within
        row_mask = rows < end
        mask = row_mask[:, None] & (cols < N)[None, :]
        x = tl.load(x_ptr + rows[:, None] * stride_x + wide, mask=mask, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + rows[:, None] * stride_dy_row + wide * stride_dy_col, mask=mask, other=0.0).to(tl.float32)
        mean = tl.load(mean_ptr + rows, mask=row_mask, other=0.0)
        rstd = tl.load(rstd_ptr + rows, mask=row_mask, other=0.0)
        dw += tl.sum(dy * (x - mean[:, None]) * rstd[:, None], axis=0)
        db += tl.sum(dy, axis=0)

    at = chunk * N + cols
    tl.store(dw_partial_ptr + at, dw, mask=cols < N)
    tl.store(db_partial_ptr + at, db, mask=cols < N)


@triton.jit
def sum_partials_kernel(
    dw_partial_ptr, db_partial_ptr, dw_ptr, db_ptr,
    P, N,
    BLOCK_P: tl.constexpr,   # rows of partial sums a step
    BLOCK_N: tl.constexpr,   # columns a program
):
    cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    dw = tl.zeros([BLOCK_P, BLOCK_N], dtype=tl.float32)
    db = tl.zeros([BLOCK_P, BLOCK_N], dtype=tl.float32)
    for start in range(0, P, BLOCK_P):
        rows = (start + tl.arange(0, BLOCK_P)).to(tl.int64)
        mask = (rows < P)[:, None] & (cols < N)[None, :]
        dw += tl.load(dw_partial_ptr + rows[:, None] * N + cols[None, :], mask=mask, other=0.0)
        db += tl.load(db_partial_ptr + rows[:, None] * N + cols[None, :], mask=mask, other=0.0)
    tl.store(dw_ptr + cols, tl.sum(dw, axis=0).to(dw_ptr.dtype.element_ty), mask=cols < N)
    tl.store(db_ptr + cols, tl.sum(db, axis=0).to(db_ptr.dtype.element_ty), mask=cols < N)
