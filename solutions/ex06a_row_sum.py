"""Exercise 06a: the sum of each row.

One program adds up one row of N columns and stores one number:

    y[row] = x[row, 0] + x[row, 1] + ... + x[row, N - 1]

The row may be longer than BLOCK, and N need not be a multiple of BLOCK. Columns lie next to one another; rows are
stride_x elements apart, and row * stride_x can pass 2^31. x is fp32, fp16 or bf16. y is fp32: a sum of half-precision
numbers may need more digits, and more range, than any of them.

Let each lane keep a sum of its own through the whole row, and let the lanes meet after the loop. The check counts the
meetings of the lanes (tl.sum and its like): a row may have two, however long it is.

The course launches the kernel for you. Check with the panel in lesson 06, or with `course check 06a` in a terminal.
"""

import triton
import triton.language as tl


@triton.jit
def row_sum_kernel(
    x_ptr, y_ptr,
    stride_x,               # elements between rows of x
    N,
    BLOCK: tl.constexpr,    # columns per step, a power of two
):
    # BEGIN SOLUTION
    #: row, and total: what each lane has added up so far.
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros([BLOCK], dtype=tl.float32)
    # END SOLUTION

    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        # BEGIN SOLUTION
        #: Take these columns of the row into total.
        x = tl.load(x_ptr + row * stride_x + cols, mask=cols < N, other=0.0)
        total += x.to(tl.float32)
        # END SOLUTION

    # BEGIN SOLUTION
    #: Store the row's sum.
    tl.store(y_ptr + row, tl.sum(total, axis=0))
    # END SOLUTION
