"""Optional task 11c: dx of LayerNorm from y, without x.

The forward pass was y = xhat * w + b. It kept rstd (M,), in fp32, and gave x and mean away: what comes in is y, as it was stored.
No element of w is 0, though some may be as small as 1e-12, so y, w and b say what xhat was. With wdy = w * dy,

    c1 = mean(xhat * wdy)        c2 = mean(wdy)        dx = (wdy - (xhat * c1 + c2)) * rstd

with means over the N columns of a row. dy, y, dx (M, N), w and b (N,) are fp16, bf16 or fp32, not always the same. Compute in fp32, and
round once, to dx's dtype. What y lost when it was stored is lost: dx is that of the numbers in y.

BLOCK is a power of two no smaller than N; a program takes a tile of ROWS rows, and M need not be a multiple of ROWS. Every matrix has
a row stride of its own, and dy a column stride as well: it may be expanded from one number, or transposed. Offsets can pass 2^31.
A NaN or an Inf in dy reaches the dx of its own row, and of no other.

The course launches the kernel for you. Check with the panel in lesson 11, or with `course check 11c` in a terminal.
"""

import triton
import triton.language as tl


@triton.jit
def layer_norm_dx_from_y_kernel(
    dy_ptr, y_ptr, w_ptr, b_ptr, rstd_ptr, dx_ptr,
    stride_dy_row, stride_dy_col, stride_y, stride_dx,
    M, N,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    # YOUR CODE
    pass
