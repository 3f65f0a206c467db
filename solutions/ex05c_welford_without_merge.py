"""Optional task 05c: mean and variance of long rows in one sweep, and no function that merges lanes.

One program takes one row of N columns. BLOCK is a power of two, and N may be smaller, larger, or no multiple of it. mean and var are fp32 of shape (M,); var
is divided by N, not N - 1. x has shape (M, N), fp16, bf16 or fp32. Columns lie next to one another; rows are stride_x elements apart, and row * stride_x
can pass 2^31. Compute in fp32.

No element of x may be read more than once. `tl.reduce` and `tl.associative_scan` are refused; `tl.sum` is not. The mean may be 10000 times
the standard deviation, one element may lie far from all others, and the columns of one lane may be far from those of another. A row with a
NaN in it has a NaN for its mean and for its var. If a row holds an Inf, its mean and its var are Inf or NaN.

The course launches the kernel for you. Check with the panel in lesson 05, or with `course check 05c` in a terminal.
"""

import triton
import triton.language as tl


@triton.jit
def welford_sums_kernel(
    x_ptr, mean_ptr, var_ptr,
    stride_x,
    N,
    BLOCK: tl.constexpr,
):
    # BEGIN SOLUTION
    #:
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    mean = tl.zeros([BLOCK], dtype=tl.float32)
    M2 = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, N, BLOCK):
        cols = start + lanes
        x = tl.load(x_ptr + row * stride_x + cols, mask=cols < N, other=0.0).to(tl.float32)
        deviation = tl.where(cols < N, x - mean, 0.0)
        mean += deviation / (start // BLOCK + 1)
        M2 += deviation * (x - mean)
    count = (N - lanes + BLOCK - 1) // BLOCK
    row_mean = tl.sum(count * mean, axis=0) / N
    distance = mean - row_mean
    row_M2 = tl.sum(M2 + count * distance * distance, axis=0)
    tl.store(mean_ptr + row, row_mean)
    tl.store(var_ptr + row, row_M2 / N)
    # END SOLUTION
