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
    # YOUR CODE
    pass
