"""Right but different: stage one takes one row a step, stage two adds up its rows one after the other in fp64."""

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
    cols = (tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)).to(tl.int64)
    live = cols < N
    first = tl.program_id(1).to(tl.int64) * rows_a_chunk
    dw = tl.zeros([BLOCK_N], dtype=tl.float32)
    db = tl.zeros([BLOCK_N], dtype=tl.float32)
    for i in range(0, tl.minimum(rows_a_chunk, tl.maximum(M - first, 0))):
        row = first + i
        dy = tl.load(dy_ptr + row * stride_dy_row + cols * stride_dy_col, mask=live, other=0.0).to(tl.float32)
        x = tl.load(x_ptr + row * stride_x + cols, mask=live, other=0.0).to(tl.float32)
        dw += dy * ((x - tl.load(mean_ptr + row)) * tl.load(rstd_ptr + row))
        db += dy
    tl.store(dw_partial_ptr + tl.program_id(1).to(tl.int64) * N + cols, dw, mask=live)
    tl.store(db_partial_ptr + tl.program_id(1).to(tl.int64) * N + cols, db, mask=live)


@triton.jit
def sum_partials_kernel(dw_partial_ptr, db_partial_ptr, dw_ptr, db_ptr, P, N, BLOCK_P: tl.constexpr, BLOCK_N: tl.constexpr):
    cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    live = cols < N
    dw = tl.zeros([BLOCK_N], dtype=tl.float64)
    db = tl.zeros([BLOCK_N], dtype=tl.float64)
    for p in range(0, P):
        at = tl.cast(p, tl.int64) * N + cols
        dw += tl.load(dw_partial_ptr + at, mask=live, other=0.0).to(tl.float64)
        db += tl.load(db_partial_ptr + at, mask=live, other=0.0).to(tl.float64)
    tl.store(dw_ptr + cols, dw.to(tl.float32).to(dw_ptr.dtype.element_ty), mask=live)
    tl.store(db_ptr + cols, db.to(tl.float32).to(db_ptr.dtype.element_ty), mask=live)
