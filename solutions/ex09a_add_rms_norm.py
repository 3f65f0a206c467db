"""Exercise 09a: residual addition and RMSNorm in one kernel.

A transformer block adds its input to its output and normalises the sum. Two kernels move 5 M N elements; one moves 4.
No element of x or of the residual may be read twice, and none of total and y at all: the check counts the bytes.

    total = x + residual        rounded to total's dtype, and stored: the next layer needs it
    y = total * rstd * w        of the rounded total, so that one kernel gives what two would
    rstd                        of the rounded total, one fp32 number a row, stored: backward needs it

One row per program, BLOCK a power of two no smaller than N. The four matrices have strides of their own. If a row of total holds
an Inf, y is what the formula makes of it: rstd is 0, so y is NaN where the Inf is and 0 in the rest of the row.

The course launches the kernel for you. Check with the panel in lesson 09, or with `course check 09a` in a terminal.
"""

import triton
import triton.language as tl


@triton.jit
def add_rms_norm_kernel(
    x_ptr, residual_ptr, total_ptr, y_ptr, w_ptr, rstd_ptr,
    stride_x, stride_residual, stride_total, stride_y,     # elements between rows
    N, eps,
    BLOCK: tl.constexpr,                                   # power of two >= N
):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * stride_x + cols, mask=mask, other=0.0).to(tl.float32)
    residual = tl.load(residual_ptr + row * stride_residual + cols, mask=mask, other=0.0).to(tl.float32)
    # BEGIN SOLUTION
    #: Store the sum of x and residual in total. With which number do you go on?
    rounded = (x + residual).to(total_ptr.dtype.element_ty)
    tl.store(total_ptr + row * stride_total + cols, rounded, mask=mask)
    total = rounded.to(tl.float32)
    # END SOLUTION

    # BEGIN SOLUTION
    #: rstd of this row, as in 02b.
    rstd = tl.rsqrt(tl.sum(total * total, axis=0) / N + eps)
    # END SOLUTION
    tl.store(rstd_ptr + row, rstd)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    y = total * rstd * w
    tl.store(y_ptr + row * stride_y + cols, y.to(y_ptr.dtype.element_ty), mask=mask)
