"""Right but different: ROWS is not used, a row is one step, and a row of padding is passed over by an if."""

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
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    wide = cols.to(tl.int64)
    for chunk in range(tl.program_id(0), tl.cdiv(M, rows_a_chunk), tl.num_programs(0)):
        dw = tl.zeros([BLOCK], dtype=tl.float32)
        for row in range(chunk * rows_a_chunk, tl.minimum(M, chunk * rows_a_chunk + rows_a_chunk)):
            if tl.load(keep_ptr + row) != 0:
                at = row.to(tl.int64)
                x = tl.load(x_ptr + at * stride_x + cols, mask=mask, other=0.0).to(tl.float32)
                dy = tl.load(dy_ptr + at * stride_dy_row + wide * stride_dy_col, mask=mask, other=0.0).to(tl.float32)
                dw += x * tl.load(rstd_ptr + at) * dy
        tl.store(dw_partial_ptr + chunk * N + cols, dw, mask=mask)
