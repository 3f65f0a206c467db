"""Exercise 07a: LayerNorm forward, block by block.

One program normalises one row of N columns. The row may be longer than BLOCK, so the program sweeps over it three
times: once for the mean, once for the variance, once to write

    y = (x - mean) * rstd * w + b        rstd = 1 / sqrt(var + eps)        var divided by N

N need not be a multiple of BLOCK. Columns lie next to one another; rows are stride_x (stride_y) elements apart, and
row * stride_x can pass 2^31. Compute in fp32 whatever the dtype of x, w, b and y. Save mean and rstd, one
number per row. A NaN or an Inf in a row makes its mean and all of its y NaN or Inf, and no other row's.

The course launches the kernel for you. Check with the panel in lesson 07, or with `course check 07a` in a terminal.
"""

import triton
import triton.language as tl


@triton.jit
def layer_norm_blocked_kernel(
    x_ptr, y_ptr, w_ptr, b_ptr, mean_ptr, rstd_ptr,
    stride_x, stride_y,     # elements between rows
    N, eps,
    BLOCK: tl.constexpr,    # columns a step, a power of two
):
    # BEGIN SOLUTION
    #: row. Then let x_ptr and y_ptr point at the start of this row.
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * stride_x
    y_ptr += row * stride_y
    # END SOLUTION

    total = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        # BEGIN SOLUTION
        #: Take this block into total.
        total += tl.load(x_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
        # END SOLUTION
    mean = tl.sum(total, axis=0) / N

    squares = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        # BEGIN SOLUTION
        #: Take the squared deviations of this block into squares.
        x = tl.load(x_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
        deviation = tl.where(cols < N, x - mean, 0.0)
        squares += deviation * deviation
        # END SOLUTION
    # BEGIN SOLUTION
    #: Make rstd. Save mean and rstd of this row.
    rstd = tl.rsqrt(tl.sum(squares, axis=0) / N + eps)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)
    # END SOLUTION

    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < N
        # BEGIN SOLUTION
        #: Write this block of y.
        x = tl.load(x_ptr + cols, mask=mask, other=0.0).to(tl.float32)
        w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
        b = tl.load(b_ptr + cols, mask=mask, other=0.0).to(tl.float32)
        y = (x - mean) * rstd * w + b
        tl.store(y_ptr + cols, y.to(y_ptr.dtype.element_ty), mask=mask)
        # END SOLUTION
