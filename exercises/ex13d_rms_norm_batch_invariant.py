"""Optional task 13d: RMSNorm whose rows have the same bits in every batch.

    y = x * rstd * w        rstd = 1 / sqrt(mean(x^2) + eps)        mean over the N columns

One program normalises one row of N columns, as in 02c. A server launches the kernel, with the M rows that it has at that moment. Few rows
cannot fill a GPU, so a program should then have more loads under way: UNROLL is 4 for a batch of few rows, 2 for a larger one, and
1 for a large one. BLOCK, a power of two, is the same in every launch. N may be smaller than BLOCK, larger, or no multiple of it.

The bits of a row's y and rstd must depend on that row, w, N, eps and BLOCK alone: not on M and not on UNROLL. The check launches the first
rows of a batch a second time, as a batch of their own with its own M and UNROLL, and compares. How you use UNROLL is up to you.

x, y (M, N) and w (N,) are fp16, bf16 or fp32, not always the same; rstd (M,) is fp32, and the kernel saves it. Columns lie
next to one another; rows are stride_x (stride_y) elements apart, and row * stride_x can pass 2^31. Compute in fp32, and round once, to
y's dtype. No element of x may be read more than twice. A NaN in a row makes all of its y NaN. If a row holds an Inf, y is what the formula
makes of it: NaN where the Inf is, and 0 in the rest of the row. Neither changes another row.

The course launches the kernel for you. Check with the panel in lesson 13, or with `course check 13d` in a terminal.
"""

import triton
import triton.language as tl


@triton.jit
def rms_norm_batch_invariant_kernel(
    x_ptr, y_ptr, w_ptr, rstd_ptr,
    stride_x, stride_y,
    M, N, eps,
    BLOCK: tl.constexpr,
    UNROLL: tl.constexpr,
):
    # YOUR CODE
    pass
