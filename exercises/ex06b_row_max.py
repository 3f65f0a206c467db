"""Optional task 06b: the largest element of each row, and its column.

    largest[row] = the largest of x[row, 0], x[row, 1], ..., x[row, N - 1]
    column[row] = the column in which it stands; of equal ones, the first

One program has one row of N columns. BLOCK is a power of two, and N may be smaller, larger, or no multiple of it. x (M, N) is fp32, fp16 or
bf16; largest (M,) is fp32 and column (M,) is int64. Columns lie next to one another; rows are stride_x elements apart, and
row * stride_x can pass 2^31. No element of x may be read more than once.

x holds no NaN. It may hold Inf and -Inf, whole rows of one number among them, and 0 and -0 are equal. Nothing else is said of the numbers.

The course launches the kernel for you. Check with the panel in lesson 06, or with `course check 06b` in a terminal.
"""

import triton
import triton.language as tl


@triton.jit
def row_max_kernel(
    x_ptr, largest_ptr, column_ptr,
    stride_x,
    N,
    BLOCK: tl.constexpr,
):
    # YOUR CODE
    pass
