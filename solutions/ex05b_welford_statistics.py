"""Exercise 05b: mean and variance of long rows in one sweep, by Welford in every lane and a merge of the lanes.

One program takes one row of N columns, BLOCK columns per step. Each lane keeps three numbers of the columns that it has
seen: how many (count), their mean, and M2, the sum of their squared deviations from that mean. After the sweep tl.reduce
merges the BLOCK lanes into one, by the function merge, which takes two partial statistics and returns that of both
together. The check asks for one sweep and for the digits, not for these steps.

Save mean and var = M2 / N, one a row. N need not be a multiple of BLOCK, and may be smaller than it: some lanes then never
see an element, and merge meets two sides with a count of 0. Columns lie next to one another; rows are stride_x elements
apart, and row * stride_x can pass 2^31. Compute in fp32 whatever the dtype of x. The mean may be 10000 times the standard
deviation, or one element lie far from all others. A row with a NaN in it has a NaN for its mean and for its var: nothing may put
a number there. If a row holds an Inf, its mean and its var are Inf or NaN.

The course launches the kernel for you. Check with the panel in lesson 05, or with `course check 05b` in a terminal.
"""

import triton
import triton.language as tl


@triton.jit
def merge(n_a, mean_a, M2_a, n_b, mean_b, M2_b):
    # BEGIN SOLUTION
    #: n, mean and M2 of both sides together.
    n = n_a + n_b
    share = n_b / tl.maximum(n, 1.0)
    difference = mean_b - mean_a
    mean = mean_a + difference * share
    M2 = M2_a + M2_b + difference * difference * n_a * share
    # END SOLUTION
    return n, mean, M2


@triton.jit
def welford_kernel(
    x_ptr, mean_ptr, var_ptr,
    stride_x,               # elements between rows
    N,
    BLOCK: tl.constexpr,    # columns per step, a power of two
):
    row = tl.program_id(0).to(tl.int64)  # 64 bits, so that row * stride_x cannot overflow
    # BEGIN SOLUTION
    #: count, mean and M2 of each lane, before it has seen a column.
    count = tl.zeros([BLOCK], dtype=tl.float32)
    mean = tl.zeros([BLOCK], dtype=tl.float32)
    M2 = tl.zeros([BLOCK], dtype=tl.float32)
    # END SOLUTION
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < N
        # BEGIN SOLUTION
        #: Take this block into count, mean and M2.
        x = tl.load(x_ptr + row * stride_x + cols, mask=mask, other=0.0).to(tl.float32)
        count += mask.to(tl.float32)
        deviation = tl.where(mask, x - mean, 0.0)
        mean += deviation / tl.maximum(count, 1.0)
        M2 += deviation * (x - mean)
        # END SOLUTION
    # BEGIN SOLUTION
    #: Merge the lanes, and save mean and var of this row.
    _, row_mean, row_M2 = tl.reduce((count, mean, M2), 0, merge)
    tl.store(mean_ptr + row, row_mean)
    tl.store(var_ptr + row, row_M2 / N)
    # END SOLUTION
