"""Optional task 16b: mean and rstd of long rows in one launch.

A row of N columns is cut into CHUNKS chunks of BLOCK columns; the last chunk has what is left, one column at least. M * CHUNKS
programs are launched, and each of them has one chunk of one row. It reads its chunk of x once. The programs of a row tell one
another what they found, so that each can compute mean and rstd = 1 / sqrt(var + eps) of the whole row. It stores them in
mean[row, chunk] and rstd[row, chunk]: both are fp32, packed, of shape (M, CHUNKS).

All programs of a row store the same bits. The same inputs give the same bits in whatever order the programs run.

The GPU starts the programs in any order and has room for CHUNKS of them at a time. The others start when one has ended. No
program may wait for ever.

word holds M * CHUNKS integers of 64 bits and ticket one of 32 bits, all 0 before the launch. What each of them means is yours
to decide.

x, (M, N), is fp16, bf16 or fp32; its rows are stride_x elements apart, and row * stride_x can pass 2^31. Compute in fp32. The
mean of a row may be 10000 times its standard deviation, and a row may be constant. A NaN in x makes both results of its row NaN,
and an Inf makes them Inf or NaN. Neither changes another row.

The course launches the kernel for you. Check with the panel in lesson 16, or with `course check 16b` in a terminal.
"""

import triton
import triton.language as tl


@triton.jit
def share_statistics_kernel(
    x_ptr, mean_ptr, rstd_ptr, word_ptr, ticket_ptr,
    stride_x,
    N, eps,
    CHUNKS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    # YOUR CODE
    pass
