"""Right but different: one loop over the steps of all chunks of a program; a chunk's last step stores, and begins anew."""

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
    wide = cols.to(tl.int64)[None, :]
    steps = tl.cdiv(rows_a_chunk, ROWS)
    mine = tl.cdiv(tl.cdiv(M, rows_a_chunk) - tl.program_id(0), tl.num_programs(0))
    dw = tl.zeros([BLOCK], dtype=tl.float32)
    for turn in range(0, mine * steps):
        chunk = tl.program_id(0) + turn // steps * tl.num_programs(0)
        within = turn % steps * ROWS + tl.arange(0, ROWS)
        rows = chunk.to(tl.int64) * rows_a_chunk + within
        counts = tl.load(keep_ptr + rows, mask=(within < rows_a_chunk) & (rows < M), other=0).to(tl.int1)
        mask = counts[:, None] & (cols < N)[None, :]
        dy = tl.load(dy_ptr + rows[:, None] * stride_dy_row + wide * stride_dy_col, mask=mask, other=0.0).to(tl.float32)
        scaled = dy * tl.load(rstd_ptr + rows, mask=counts, other=0.0)[:, None]
        dw += tl.sum(scaled * tl.load(x_ptr + rows[:, None] * stride_x + wide, mask=mask, other=0.0), axis=0)
        if (turn + 1) % steps == 0:
            tl.store(dw_partial_ptr + chunk * N + cols, dw, mask=cols < N)
            dw = tl.zeros([BLOCK], dtype=tl.float32)
