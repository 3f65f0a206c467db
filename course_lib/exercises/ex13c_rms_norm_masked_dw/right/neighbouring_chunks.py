"""Right but different: a program takes neighbouring chunks, and a step that belongs to no token is passed over."""

import triton
import triton.language as tl


@triton.jit
def add_step(dw, dy_ptr, x_ptr, rstd_ptr, counts, rows, columns, stride_dy_row, stride_dy_col, stride_x, N):
    mask = counts[:, None] & (columns < N)
    xhat = tl.load(x_ptr + rows[:, None] * stride_x + columns, mask=mask, other=0.0).to(tl.float32)
    xhat *= tl.load(rstd_ptr + rows, mask=counts, other=0.0)[:, None]
    return dw + xhat * tl.load(dy_ptr + rows[:, None] * stride_dy_row + columns * stride_dy_col, mask=mask, other=0.0).to(tl.float32)


@triton.jit
def rms_norm_masked_dw_kernel(
    dy_ptr,
    x_ptr,
    rstd_ptr,
    keep_ptr,
    dw_partial_ptr,
    stride_dy_row,
    stride_dy_col,
    stride_x,
    M,
    N,
    rows_a_chunk,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    chunks = tl.cdiv(M, rows_a_chunk)
    each = tl.cdiv(chunks, tl.num_programs(0))
    first = tl.program_id(0) * each
    columns = tl.arange(0, BLOCK).to(tl.int64)[None, :]
    for chunk in range(first, tl.minimum(first + each, chunks)):
        end = tl.minimum((chunk + 1) * rows_a_chunk, M)
        dw = tl.zeros([ROWS, BLOCK], dtype=tl.float32)
        for start in range(chunk * rows_a_chunk, end, ROWS):
            rows = (start + tl.arange(0, ROWS)).to(tl.int64)
            counts = tl.load(keep_ptr + rows, mask=rows < end, other=0) == 1
            if tl.sum(counts.to(tl.int32), axis=0) > 0:
                dw = add_step(dw, dy_ptr, x_ptr, rstd_ptr, counts, rows, columns, stride_dy_row, stride_dy_col, stride_x, N)
        at = dw_partial_ptr + chunk * N + columns
        tl.store(at, tl.sum(dw, axis=0, keep_dims=True), mask=columns < N)
