"""One helper loads for both sums, and one stores; the second kernel sums row by row."""

import triton
import triton.language as tl


@triton.jit
def store_sum(ptr, tile, mask):
    tl.store(ptr, tl.sum(tile, axis=0).to(ptr.dtype.element_ty), mask=mask)


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
    chunk = tl.program_id(1).to(tl.int64)
    end = tl.minimum((chunk + 1) * rows_a_chunk, M)
    dw, db = tl.zeros([BLOCK_M, BLOCK_N], tl.float32), tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for step in tl.range(0, tl.cdiv(rows_a_chunk, BLOCK_M), num_stages=2):
        rows = chunk * rows_a_chunk + step * BLOCK_M + tl.arange(0, BLOCK_M)
        live = (rows < end)[:, None] & (cols < N)[None, :]
        x = tl.load(x_ptr + rows[:, None] * stride_x + wide, mask=live, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + rows[:, None] * stride_dy_row + wide * stride_dy_col, mask=live, other=0.0).to(tl.float32)
        mean = tl.load(mean_ptr + rows, mask=rows < end, other=0.0)
        rstd = tl.load(rstd_ptr + rows, mask=rows < end, other=0.0)
        dw = tl.fma(dy, (x - mean[:, None]) * rstd[:, None], dw)
        db = db + dy
    store_sum(dw_partial_ptr + chunk * N + cols, dw, cols < N)
    store_sum(db_partial_ptr + chunk * N + cols, db, cols < N)


@triton.jit
def sum_partials_kernel(dw_partial_ptr, db_partial_ptr, dw_ptr, db_ptr, P, N, BLOCK_P: tl.constexpr, BLOCK_N: tl.constexpr):
    cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    dw = tl.zeros([BLOCK_P, BLOCK_N], dtype=tl.float32)
    db = tl.zeros([BLOCK_P, BLOCK_N], dtype=tl.float32)
    for start in range(0, P, BLOCK_P):
        rows = (start + tl.arange(0, BLOCK_P)).to(tl.int64)[:, None]
        live = (rows < P) & (cols < N)[None, :]
        dw += tl.load(dw_partial_ptr + rows * N + cols[None, :], mask=live, other=0.0)
        db += tl.load(db_partial_ptr + rows * N + cols[None, :], mask=live, other=0.0)
    store_sum(dw_ptr + cols, dw, cols < N)
    store_sum(db_ptr + cols, db, cols < N)
