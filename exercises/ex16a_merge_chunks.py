"""Exercise 16a: mean and rstd of a row from the statistics of its chunks.

A row of N columns is cut into chunks of length columns: the first has columns 0 to length - 1, and so on. The last chunk has what is
left of the row, which may be less. Another kernel has stored two numbers of each chunk: its mean, in means, and in M2s its M2, the
sum of the squared deviations from that mean.

One program takes one row, and has BLOCK lanes: a power of two, and at least as many as the row has chunks. Save mean and rstd = 1 /
sqrt(var + eps) of the row. A lane without a chunk must not read: its place belongs to another row, or to nobody. Rows of means and of
M2s are stride elements apart. The mean of a row may be 10000 times its standard deviation, and N may be a million. If a chunk holds a
NaN, both results of its row are NaN, and with an Inf they are Inf or NaN: nothing may put a number there. All tensors are fp32.

The course launches the kernel for you. Check with the panel in lesson 16, or with `course check 16a` in a terminal.
"""

import triton
import triton.language as tl


@triton.jit
def merge_kernel(
    means_ptr, M2s_ptr,     # a number for each chunk of each row
    mean_ptr, rstd_ptr,     # a number for each row, to be written
    stride,                 # elements between rows of means, and of M2s
    length,                 # columns of a chunk; the last may have fewer
    N, eps,
    BLOCK: tl.constexpr,    # lanes, a power of two
):
    row = tl.program_id(0)
    lanes = tl.arange(0, BLOCK)  # lane k has chunk k
    # YOUR CODE, about 2 lines: How many columns has the chunk of each lane? And a lane without a chunk?
    # YOUR CODE, about 3 lines: Load means and M2s. What is the mean of the row?
    # YOUR CODE, about 2 lines: M2 of the row.
    # YOUR CODE, about 2 lines: Save mean and rstd of this row.
