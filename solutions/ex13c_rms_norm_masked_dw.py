"""Optional task 13c: dw of RMSNorm over the rows that count, with the same bits for any number of programs.

    dw = the sum over the rows that count of dy * xhat        xhat = x * rstd

keep (M,) is int32: 1 for a row that counts, 0 for a row of padding. dy, x and rstd of padding hold anything at all, NaN and Inf among it,
and none of it may reach dw.

The M rows are cut into chunks of rows_a_chunk rows; the last one may be shorter. dw_partial (chunks, N) is fp32 and gets one row for each
chunk: dw over the rows of that chunk, and 0 where all of them are padding. The second kernel of 13a then adds up the rows of
dw_partial. No row of dw_partial depends on the number of programs, and so dw does not, to the last bit.

The grid has P programs, fewer than chunks or more, and every program takes its part of the chunks. ROWS is the number of rows of a step;
rows_a_chunk need not be a multiple of it. BLOCK is a power of two no smaller than N. dy and x are fp16, bf16 or fp32, not always the same;
rstd (M,) is fp32. Compute in fp32. dy has a row stride and a column stride of its own, x a row stride, and offsets can pass 2^31.
No element of dy or x may be read more than once. dw_partial holds NaN before the launch, and its bits are the same in whatever order the
programs run. A NaN or an Inf of a row that counts reaches the row of its chunk, and no other.

The course launches the kernel for you. Check with the panel in lesson 13, or with `course check 13c` in a terminal.
"""

import triton
import triton.language as tl


@triton.jit
def rms_norm_masked_dw_kernel(
    dy_ptr, x_ptr, rstd_ptr, keep_ptr, dw_partial_ptr,
    stride_dy_row, stride_dy_col, stride_x,
    M, N, rows_a_chunk,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    # BEGIN SOLUTION
    #:
    cols = tl.arange(0, BLOCK)
    wide = cols.to(tl.int64)[None, :]
    for chunk in range(tl.program_id(0), tl.cdiv(M, rows_a_chunk), tl.num_programs(0)):
        dw = tl.zeros([ROWS, BLOCK], dtype=tl.float32)
        for start in range(0, rows_a_chunk, ROWS):
            within = start + tl.arange(0, ROWS)
            rows = (chunk * rows_a_chunk + within).to(tl.int64)
            there = (within < rows_a_chunk) & (rows < M)
            counts = tl.load(keep_ptr + rows, mask=there, other=0) != 0
            mask = counts[:, None] & (cols < N)[None, :]
            x = tl.load(x_ptr + rows[:, None] * stride_x + wide, mask=mask, other=0.0).to(tl.float32)
            dy = tl.load(dy_ptr + rows[:, None] * stride_dy_row + wide * stride_dy_col, mask=mask, other=0.0).to(tl.float32)
            rstd = tl.load(rstd_ptr + rows, mask=counts, other=0.0)
            dw += dy * (x * rstd[:, None])
        tl.store(dw_partial_ptr + chunk.to(tl.int64) * N + cols, tl.sum(dw, axis=0), mask=cols < N)
    # END SOLUTION
