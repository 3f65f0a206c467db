"""One row a step: BLOCK_M is not used in stage one, BLOCK_P not in stage two."""

import triton
import triton.language as tl


@triton.jit
def column_partials_kernel(
    dy_ptr, x_ptr, mean_ptr, rstd_ptr, dw_partial_ptr, db_partial_ptr,
    stride_dy_row, stride_dy_col, stride_x,
    M, N, rows_a_chunk,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    cols = tl.program_id(0).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = cols < N
    chunk = tl.program_id(1).to(tl.int64)
    first = chunk * rows_a_chunk
    dw = tl.zeros([BLOCK_N], dtype=tl.float32)
    db = tl.zeros([BLOCK_N], dtype=tl.float32)
    for row in range(first, tl.minimum(first + rows_a_chunk, M)):
        x = tl.load(x_ptr + row * stride_x + cols, mask=mask, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + row * stride_dy_row + cols * stride_dy_col, mask=mask, other=0.0).to(tl.float32)
        dw += dy * ((x - tl.load(mean_ptr + row)) * tl.load(rstd_ptr + row))
        db += dy
    tl.store(dw_partial_ptr + chunk * N + cols, dw, mask=mask)
    tl.store(db_partial_ptr + chunk * N + cols, db, mask=mask)


@triton.jit
def sum_partials_kernel(
    dw_partial_ptr, db_partial_ptr, dw_ptr, db_ptr,
    P, N,
    BLOCK_P: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = cols < N
    dw = tl.zeros([BLOCK_N], dtype=tl.float32)
    db = tl.zeros([BLOCK_N], dtype=tl.float32)
    at = cols.to(tl.int64)
    for _ in range(P):
        dw += tl.load(dw_partial_ptr + at, mask=mask, other=0.0)
        db += tl.load(db_partial_ptr + at, mask=mask, other=0.0)
        at += N
    tl.store(dw_ptr + cols, dw.to(dw_ptr.dtype.element_ty), mask=mask)
    tl.store(db_ptr + cols, db.to(db_ptr.dtype.element_ty), mask=mask)
