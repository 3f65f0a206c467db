"""Optional task 18c: the loss of a linear layer's logits, which nobody stores.

    x[row, col] = scale * (sum over k of h[row, k] * w[col, k])        the logits, M rows of N columns
    lse[row] = log(sum of exp(x[row, :]))        loss[row] = lse[row] - x[row, target[row]]

h has M rows of K numbers, w has N rows of K numbers; both are fp16, bf16 or fp32, not always the same. target (M,) is int64, a column of each row
from 0 to N - 1. loss and lse (M,) are fp32. scale is a number above or below 0. The logits are in no tensor: each program makes those of its rows in
tiles, and forgets them.

One program takes ROWS rows. It has BLOCK columns of the logits at a time, and for each of these tiles BLOCK_K of the K numbers at a time. ROWS,
BLOCK and BLOCK_K are powers of two; M, N and K need be no multiples of them, and may be smaller. Numbers of one row lie next to one another. Rows
are stride_h (stride_w) elements apart, and row * stride can pass 2^31. Compute in fp32.

No program reads the same element of w twice, not even for the target's logit. h may be read as often as you like. Logits may be large: several thousands,
or as far below 0 in all columns. A NaN or an Inf in a row of h makes loss and lse of this row NaN or Inf, and no other row's.

`tl.dot` is not allowed: a GPU rounds fp32 to tf32 in it unless it is told otherwise, and CPU mode does not show that. The course launches the
kernel for you. Check with the panel in lesson 18, or with `course check 18c` in a terminal.
"""

import triton
import triton.language as tl


@triton.jit
def linear_cross_entropy_kernel(
    h_ptr, w_ptr, target_ptr, loss_ptr, lse_ptr,
    stride_h, stride_w,
    scale,
    M, N, K,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    # YOUR CODE
    pass
