"""Exercise 07a: LayerNorm forward, block by block.

One program normalises one row of N columns. The row may be longer than BLOCK, so the program reads it more than once:
for the statistics, and again to write

    y = (x - mean) * rstd * w + b        rstd = 1 / sqrt(var + eps)        var divided by N

N need not be a multiple of BLOCK. Columns lie next to one another; rows are stride_x (stride_y) elements apart, and
row * stride_x can pass 2^31. Compute in fp32 whatever the dtype of x, w, b and y. Save mean and rstd, one
number per row. No element of x may be read more than three times: the check counts it. A NaN or an Inf in a row makes its mean and all of its y NaN or Inf, and no other row's.

The course launches the kernel for you. Check with the panel in lesson 07, or with `course check 07a` in a terminal.
"""

import triton
import triton.language as tl


@triton.jit
def layer_norm_blocked_kernel(
    x_ptr, y_ptr, w_ptr, b_ptr, mean_ptr, rstd_ptr,
    stride_x, stride_y,     # elements between rows
    N, eps,
    BLOCK: tl.constexpr,    # columns per step, a power of two
):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * stride_x
    y_ptr += row * stride_y

    # YOUR CODE, about 12 lines: mean and rstd of this row, from loops over its blocks. A block is loaded as in the
    # loop below.
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)

    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < N
        x = tl.load(x_ptr + cols, mask=mask, other=0.0).to(tl.float32)
        w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
        b = tl.load(b_ptr + cols, mask=mask, other=0.0).to(tl.float32)
        # YOUR CODE, 1 line: y: this block of the result, in fp32.
        tl.store(y_ptr + cols, y.to(y_ptr.dtype.element_ty), mask=mask)
