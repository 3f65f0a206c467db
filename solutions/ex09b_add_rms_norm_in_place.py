"""Optional task 09b: a residual and its RMSNorm, with the sum written over the residual, in rows of any length.

    total = x + residual        rounded to the dtype of total
    y = total * rstd * w        rstd = 1 / sqrt(mean(total^2) + eps)        of the rounded total; mean over the N columns

The residual has no tensor of its own: before the launch it lies in total, and after the launch the sum does. y is a second matrix,
with a row stride of its own. No other two tensors share memory.

One program has one row of N columns. BLOCK is a power of two, and N may be smaller, larger, or no multiple of it. x, total, y (M, N) and
w (N,) are fp16, bf16 or fp32, not always the same; rstd (M,) is fp32, and the kernel saves it. Columns lie next to one another; rows are
stride_x, stride_total and stride_y elements apart, and row * stride can pass 2^31. Compute in fp32, and round each result once.

No element of x or total may be read more than twice, and none of y. No element of total may be read after it was stored: the threads of
a program see one another's stores only after a barrier, and this kernel has none. A NaN in a row makes all of its y NaN. If a row of
total holds an Inf, y is what the formula makes of it: NaN where the Inf is, and 0 in the rest of the row. Neither changes another row.

The course launches the kernel for you. Check with the panel in lesson 09, or with `course check 09b` in a terminal.
"""

import triton
import triton.language as tl


@triton.jit
def add_rms_norm_in_place_kernel(
    x_ptr, total_ptr, y_ptr, w_ptr, rstd_ptr,
    stride_x, stride_total, stride_y,
    N, eps,
    BLOCK: tl.constexpr,
):
    # BEGIN SOLUTION
    #:
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * stride_x
    total_ptr += row * stride_total
    y_ptr += row * stride_y
    squares = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
        residual = tl.load(total_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
        total = (x + residual).to(total_ptr.dtype.element_ty).to(tl.float32)
        squares += total * total
    rstd = tl.rsqrt(tl.sum(squares, axis=0) / N + eps)
    tl.store(rstd_ptr + row, rstd)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
        residual = tl.load(total_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
        w = tl.load(w_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
        rounded = (x + residual).to(total_ptr.dtype.element_ty)
        y = rounded.to(tl.float32) * rstd * w
        tl.store(total_ptr + cols, rounded, mask=cols < N)
        tl.store(y_ptr + cols, y.to(y_ptr.dtype.element_ty), mask=cols < N)
    # END SOLUTION
