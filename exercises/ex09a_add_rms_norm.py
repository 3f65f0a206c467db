"""Exercise 09a: residual addition and RMSNorm in one kernel.

A transformer block adds its input to its output and normalises the sum. Two kernels move 5 M N elements; one moves 4.

    total = x + residual        rounded to total's dtype, and stored: the next layer needs it
    y = total * rstd * w        of the rounded total, so that one kernel gives what two would
    rstd                        of the rounded total, one fp32 number a row, stored: backward needs it

One row a program, BLOCK a power of two no smaller than N. The four matrices have strides of their own. If a row of total holds
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
    # YOUR CODE, about 5 lines: Load x and the residual, and store their sum in total. With which number do you go on?

    # YOUR CODE, about 5 lines: From here on it is 02b.
