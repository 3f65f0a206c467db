"""Right but different: a sum over the rows in every step, the rows counted downwards, and rstd on dy's side."""

import triton
import triton.language as tl


@triton.jit
def column_partials_kernel(
    dy_ptr,
    x_ptr,
    mean_ptr,
    rstd_ptr,
    dw_partial_ptr,
    db_partial_ptr,
    stride_dy_row,
    stride_dy_col,
    stride_x,
    M,
    N,
    rows_a_chunk,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    wide = cols.to(tl.int64)[None, :]
    first = tl.program_id(1).to(tl.int64) * rows_a_chunk
    end = tl.minimum(first + rows_a_chunk, M)
    dw = tl.zeros([BLOCK_N], dtype=tl.float32)
    db = tl.zeros([BLOCK_N], dtype=tl.float32)
    for step in range(0, tl.cdiv(rows_a_chunk, BLOCK_M)):
        rows = end - 1 - step * BLOCK_M - tl.arange(0, BLOCK_M)
        here = rows >= first
        mask = here[:, None] & (cols < N)[None, :]
        x = tl.load(x_ptr + rows[:, None] * stride_x + wide, mask=mask, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + rows[:, None] * stride_dy_row + wide * stride_dy_col, mask=mask, other=0.0).to(tl.float32)
        mean = tl.load(mean_ptr + rows, mask=here, other=0.0)
        rstd = tl.load(rstd_ptr + rows, mask=here, other=0.0)
        dw += tl.sum((dy * rstd[:, None]) * (x - mean[:, None]), axis=0)
        db += tl.sum(dy, axis=0)
    out = tl.program_id(1).to(tl.int64) * N + cols
    tl.store(dw_partial_ptr + out, dw, mask=cols < N)
    tl.store(db_partial_ptr + out, db, mask=cols < N)


@triton.jit
def sum_partials_kernel(dw_partial_ptr, db_partial_ptr, dw_ptr, db_ptr, P, N, BLOCK_P: tl.constexpr, BLOCK_N: tl.constexpr):
    cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    dw = tl.zeros([BLOCK_N], dtype=tl.float32)
    db = tl.zeros([BLOCK_N], dtype=tl.float32)
    for step in range(0, tl.cdiv(P, BLOCK_P)):
        rows = (step * BLOCK_P + tl.arange(0, BLOCK_P)).to(tl.int64)
        mask = (rows < P)[:, None] & (cols < N)[None, :]
        dw += tl.sum(tl.load(dw_partial_ptr + rows[:, None] * N + cols[None, :], mask=mask, other=0.0), axis=0)
        db += tl.sum(tl.load(db_partial_ptr + rows[:, None] * N + cols[None, :], mask=mask, other=0.0), axis=0)
    tl.store(dw_ptr + cols, dw.to(dw_ptr.dtype.element_ty), mask=cols < N)
    tl.store(db_ptr + cols, db.to(db_ptr.dtype.element_ty), mask=cols < N)
