"""Right but different: padding is loaded and thrown away by tl.where, the sums are fp64, and the chunks go from the last to the first."""

import triton
import triton.language as tl


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
    cols = tl.arange(0, BLOCK).to(tl.int64)
    chunk = tl.cdiv(M, rows_a_chunk) - 1 - tl.program_id(0)
    while chunk >= 0:
        dw = tl.zeros([BLOCK], dtype=tl.float64)
        for start in range(0, rows_a_chunk, ROWS):
            within = start + tl.arange(0, ROWS)
            rows = chunk.to(tl.int64) * rows_a_chunk + within
            there = (within < rows_a_chunk) & (rows < M)
            mask = there[:, None] & (cols < N)[None, :]
            keep = tl.load(keep_ptr + rows, mask=there, other=0)
            x = tl.load(x_ptr + rows[:, None] * stride_x + cols[None, :], mask=mask, other=0.0).to(tl.float64)
            dy = tl.load(dy_ptr + rows[:, None] * stride_dy_row + (cols * stride_dy_col)[None, :], mask=mask, other=0.0).to(tl.float64)
            term = x * dy * tl.load(rstd_ptr + rows, mask=there, other=0.0)[:, None]
            dw += tl.sum(tl.where(keep[:, None] > 0, term, 0.0), axis=0)
        tl.store(dw_partial_ptr + chunk.to(tl.int64) * N + cols, dw.to(tl.float32), mask=cols < N)
        chunk -= tl.num_programs(0)
