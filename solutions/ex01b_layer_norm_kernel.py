"""Exercise 01b: LayerNorm, your first norm kernel.

One program normalises one row. The whole row fits in one block: BLOCK is a power of two, and N <= BLOCK.

    y = (x - mean) * rstd * w + b        rstd = 1 / sqrt(var + eps)        var divided by N

Columns lie next to one another. A row of x begins stride_x elements after the one before it, a row of y stride_y.
All tensors are fp32.

Edge cases that are checked: a NaN or an Inf in a row makes all of its y NaN or Inf, and no other
row's.

The course launches the kernel for you, one program per row. Check with the panel in lesson 01, or with `course check 01b` in a
terminal.
"""

import triton
import triton.language as tl


@triton.jit
def layer_norm_kernel(
    x_ptr, y_ptr,           # (M, N), fp32
    w_ptr, b_ptr,           # (N,), fp32
    stride_x, stride_y,     # elements between rows
    N, eps,
    BLOCK: tl.constexpr,    # power of two >= N
):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    # BEGIN SOLUTION
    #: Load this program's row. What should the lanes past column N hold, so that they add nothing to a sum? Then the mean.
    x = tl.load(x_ptr + row * stride_x + cols, mask=mask, other=0.0)
    mean = tl.sum(x, axis=0) / N
    # END SOLUTION

    # BEGIN SOLUTION
    #: The deviation of each element from the mean, then the variance. What does a lane past column N hold after the subtraction?
    deviation = tl.where(mask, x - mean, 0.0)
    var = tl.sum(deviation * deviation, axis=0) / N
    # END SOLUTION

    # BEGIN SOLUTION
    #: rstd, then y with w and b, stored in this program's row of y.
    rstd = tl.rsqrt(var + eps)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0)
    b = tl.load(b_ptr + cols, mask=mask, other=0.0)
    tl.store(y_ptr + row * stride_y + cols, deviation * rstd * w + b, mask=mask)
    # END SOLUTION
