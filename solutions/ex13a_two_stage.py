"""Exercise 13a: dw and db in two stages, without a lock.

dw is the sum over the rows of dy * xhat with xhat = (x - mean) * rstd; db is the sum over the rows of dy.

Stage one cuts the M rows into chunks of `rows_a_chunk` rows, the last of which may be shorter, and the columns into blocks
of BLOCK_N. Program (j, c) adds up block j of the columns over the rows of chunk c, BLOCK_M rows per step, and stores one
number a column into row c of two matrices of partial sums, shape (chunks, N), fp32. `rows_a_chunk` need not be a multiple
of BLOCK_M. Nobody else writes there, so nobody has to wait.

Stage two adds up the P rows of those matrices, BLOCK_P rows per step, and rounds once, to the dtypes of dw and db.

The partial sums hold NaN before the launch. dy and x may have strides of their own, dy's column stride included; offsets
can pass 2^31. The same inputs must give the same bits in whatever order the programs run.

The course launches the kernels for you. Check with the panel in lesson 13, or with `course check 13a` in a terminal.
"""

import triton
import triton.language as tl


@triton.jit
def column_partials_kernel(
    dy_ptr, x_ptr, mean_ptr, rstd_ptr, dw_partial_ptr, db_partial_ptr,
    stride_dy_row, stride_dy_col, stride_x,   # elements; the columns of x are neighbours
    M, N, rows_a_chunk,
    BLOCK_M: tl.constexpr,                    # rows per step
    BLOCK_N: tl.constexpr,                    # columns per program
):
    cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    wide = cols.to(tl.int64)[None, :]         # for dy: column * stride_dy_col can pass 2^31, too
    chunk = tl.program_id(1).to(tl.int64)
    # BEGIN SOLUTION
    #: Walk over the rows of this chunk: which rows does a step take, and which of them are the next chunk's, or
    #: nobody's? What do you keep from step to step?
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
    # END SOLUTION

    # BEGIN SOLUTION
    #: Store the partial sums of this chunk in each matrix.
    at = chunk * N + cols
    tl.store(dw_partial_ptr + at, tl.sum(dw, axis=0), mask=cols < N)
    tl.store(db_partial_ptr + at, tl.sum(db, axis=0), mask=cols < N)
    # END SOLUTION


@triton.jit
def sum_partials_kernel(
    dw_partial_ptr, db_partial_ptr, dw_ptr, db_ptr,
    P, N,
    BLOCK_P: tl.constexpr,   # rows of partial sums per step
    BLOCK_N: tl.constexpr,   # columns per program
):
    cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    # BEGIN SOLUTION
    #: The same walk over the P rows of partial sums; then store dw and db.
    dw = tl.zeros([BLOCK_P, BLOCK_N], dtype=tl.float32)
    db = tl.zeros([BLOCK_P, BLOCK_N], dtype=tl.float32)
    for start in range(0, P, BLOCK_P):
        rows = (start + tl.arange(0, BLOCK_P)).to(tl.int64)
        mask = (rows < P)[:, None] & (cols < N)[None, :]
        dw += tl.load(dw_partial_ptr + rows[:, None] * N + cols[None, :], mask=mask, other=0.0)
        db += tl.load(db_partial_ptr + rows[:, None] * N + cols[None, :], mask=mask, other=0.0)
    tl.store(dw_ptr + cols, tl.sum(dw, axis=0).to(dw_ptr.dtype.element_ty), mask=cols < N)
    tl.store(db_ptr + cols, tl.sum(db, axis=0).to(db_ptr.dtype.element_ty), mask=cols < N)
    # END SOLUTION
