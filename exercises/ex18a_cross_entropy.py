"""Optional task 18a: softmax and cross entropy of a long row, forward and backward.

    lse[row] = log(sum of exp(x[row, :]))        loss[row] = lse[row] - x[row, target[row]]
    dx[row, col] = dloss[row] * (softmax(x)[row, col] - (1 where col is target[row], else 0))        softmax(x) = exp(x - lse)

x holds the logits: M rows of N columns, fp16, bf16 or fp32. target (M,) is int64, a column of each row from 0 to N - 1. loss, lse and dloss
(M,) are fp32; dx has the dtype of x. One program takes one row in both kernels, and the row may be longer than BLOCK, a power of two: N may be
smaller, larger, or no multiple of it. Columns lie next to one another. Rows are stride_x (stride_dx) elements apart, and row * stride_x can pass
2^31. Compute in fp32, and round once, to dx's dtype.

Logits may be large: 10000, or -10000 in all columns. A logit may be -Inf (a column that the model forbids): its softmax is 0, and it spoils
nothing. No row has these alone, and the target is never one of them. A NaN or an Inf in a row of x makes loss and lse of this row NaN or Inf,
and one in dloss its row of dx, where softmax is above 0; no other row changes. dloss may be 0: dx of that row is 0.

The forward kernel reads x as often as you like. The backward kernel gets the lse that forward saved. It reads x once, and
may read the target's logit once more. Take BLOCK columns at a time: one at a time is too slow for the check.

The course launches the kernels for you. Check with the panel in lesson 18, or with `course check 18a` in a terminal.
"""

import triton
import triton.language as tl


@triton.jit
def cross_entropy_kernel(
    x_ptr, target_ptr, loss_ptr, lse_ptr,
    stride_x,
    N,
    BLOCK: tl.constexpr,
):
    # YOUR CODE
    pass


@triton.jit
def cross_entropy_dx_kernel(
    dloss_ptr, x_ptr, target_ptr, lse_ptr, dx_ptr,
    stride_x, stride_dx,
    N,
    BLOCK: tl.constexpr,
):
    # YOUR CODE
    pass
