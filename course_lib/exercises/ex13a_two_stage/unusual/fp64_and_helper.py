"""fp64 running sums and one helper for both matrices of stage two."""

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
    dw = tl.zeros([BLOCK_M, BLOCK_N], dtype=tl.float32)
    db = tl.zeros([BLOCK_M, BLOCK_N], dtype=tl.float32)
    for start in range(0, rows_a_chunk, BLOCK_M):
        within = start + tl.arange(0, BLOCK_M)
        rows = chunk * rows_a_chunk + within
        row_mask = (within < rows_a_chunk) & (rows < M)
        mask = row_mask[:, None] & (cols < N)[None, :]
        x = tl.load(x_ptr + rows[:, None] * stride_x + wide, mask=mask, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + rows[:, None] * stride_dy_row + wide * stride_dy_col, mask=mask, other=0.0).to(tl.float32)
        mean = tl.load(mean_ptr + rows, mask=row_mask, other=0.0)
        rstd = tl.load(rstd_ptr + rows, mask=row_mask, other=0.0)
        dw += dy * (x - mean[:, None]) * rstd[:, None]
        db += dy

    at = chunk * N + cols
    tl.store(dw_partial_ptr + at, tl.sum(dw, axis=0), mask=cols < N)
    tl.store(db_partial_ptr + at, tl.sum(db, axis=0), mask=cols < N)


@triton.jit
def add_up(partial_ptr, cols, P, N, BLOCK_P: tl.constexpr, BLOCK_N: tl.constexpr):
    total = tl.zeros([BLOCK_P, BLOCK_N], dtype=tl.float64)
    for start in range(0, P, BLOCK_P):
        rows = (start + tl.arange(0, BLOCK_P)).to(tl.int64)
        mask = (rows < P)[:, None] & (cols < N)[None, :]
        total += tl.load(partial_ptr + rows[:, None] * N + cols[None, :], mask=mask, other=0.0).to(tl.float64)
    return tl.sum(total, axis=0).to(tl.float32)


@triton.jit
def sum_partials_kernel(
    dw_partial_ptr, db_partial_ptr, dw_ptr, db_ptr,
    P, N,
    BLOCK_P: tl.constexpr,   # rows of partial sums a step
    BLOCK_N: tl.constexpr,   # columns a program
):
    cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    dw = add_up(dw_partial_ptr, cols, P, N, BLOCK_P, BLOCK_N)
    db = add_up(db_partial_ptr, cols, P, N, BLOCK_P, BLOCK_N)
    tl.store(dw_ptr + cols, dw.to(dw_ptr.dtype.element_ty), mask=cols < N)
    tl.store(db_ptr + cols, db.to(db_ptr.dtype.element_ty), mask=cols < N)
