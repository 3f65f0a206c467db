"""Exercise 05a: mean and variance of long rows, in two sweeps.

One program takes one row of N columns. The row may be longer than BLOCK, so the program sweeps over it block by block:
once for the mean, and once more for

    var = the mean of (x - mean)^2        divided by N, not N - 1

Save mean and var, one a row. N need not be a multiple of BLOCK. Columns lie next to one another; rows are stride_x
elements apart, and row * stride_x can pass 2^31. Compute in fp32 whatever the dtype of x. The mean may be 10000 times
the standard deviation, or one element lie far from all others, and var must be right all the same. If a row holds an Inf,
its mean and its var are Inf or NaN.

The course launches the kernel for you. Check with the panel in lesson 05, or with `course check 05a` in a terminal.
"""

import triton
import triton.language as tl


@triton.jit
def two_pass_kernel(
    x_ptr, mean_ptr, var_ptr,
    stride_x,               # elements between rows
    N,
    BLOCK: tl.constexpr,    # columns per step, a power of two
):
    row = tl.program_id(0).to(tl.int64)  # 64 bits, so that row * stride_x cannot overflow
    # YOUR CODE, about 5 lines: First sweep: mean.
    # YOUR CODE, about 7 lines: Second sweep: var.
    # YOUR CODE, about 2 lines: Save both for this row.
