"""Exercise 02b: RMSNorm forward.

One program normalises one row, read once and held in the lanes: BLOCK is a power of two no smaller than N.

    y = x * rstd * w        rstd = 1 / sqrt(mean(x^2) + eps)        mean over the N columns

Columns lie next to one another; rows are stride_x (stride_y) elements apart. Compute in
fp32 whatever the dtype of x, w and y. Save rstd, one number per row.

Edge cases that are checked: row * stride_x can pass 2^31. If a row holds an Inf, y is what the
formula makes of it: rstd is 0, so y is NaN where the Inf is, and 0 in the rest of the row.

The course launches the kernel for you. Check with the panel in lesson 02, or with `course check 02b` in a terminal.
"""

import triton
import triton.language as tl


@triton.jit
def rms_norm_kernel(
    x_ptr, y_ptr, w_ptr, rstd_ptr,
    stride_x, stride_y,     # elements between rows
    N, eps,
    BLOCK: tl.constexpr,    # power of two >= N
):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    # BEGIN SOLUTION
    #: Load the row, and make rstd.
    x = tl.load(x_ptr + row * stride_x + cols, mask=mask, other=0.0).to(tl.float32)
    rstd = tl.rsqrt(tl.sum(x * x, axis=0) / N + eps)
    # END SOLUTION

    # BEGIN SOLUTION
    #: Save rstd. Make y, and store it.
    tl.store(rstd_ptr + row, rstd)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    y = x * rstd * w
    tl.store(y_ptr + row * stride_y + cols, y.to(y_ptr.dtype.element_ty), mask=mask)
    # END SOLUTION
