"""Exercise 11b: dx of RMSNorm.

One program computes one row of dx: BLOCK is a power of two no smaller than N. The forward pass computed y = x * rstd * w
and saved rstd, one fp32 number per row. Which terms of LayerNorm's dx are left is for you to say; in 10b you did.

dy has a row stride and a column stride, x and dx a row stride each. Offsets can pass 2^31. Compute in fp32 whatever the
dtypes, and store dx in its own.

The course launches the kernel for you. Check with the panel in lesson 11, or with `course check 11b` in a terminal.
"""

import triton
import triton.language as tl


@triton.jit
def rms_norm_dx_kernel(
    dy_ptr, x_ptr, w_ptr, rstd_ptr, dx_ptr,
    stride_dy_row, stride_dy_col,   # elements between rows and between columns of dy
    stride_x, stride_dx,            # elements between rows; columns of x and dx are neighbours
    N,
    BLOCK: tl.constexpr,            # power of two >= N
):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    wide = cols.to(tl.int64)        # for dy: column * stride_dy_col can pass 2^31, too
    mask = cols < N
    # YOUR CODE, about 6 lines: Load what the formula needs. Then xhat and wdy.

    # YOUR CODE, about 3 lines: What is left of c1 and c2; then dx.
