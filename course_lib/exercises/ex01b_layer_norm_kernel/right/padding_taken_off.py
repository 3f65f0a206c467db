"""The spare lanes stay in the sum, and what they added is taken off: each of them holds -mean."""

import triton
import triton.language as tl


@triton.jit
def layer_norm_kernel(x_ptr, y_ptr, w_ptr, b_ptr, stride_x, stride_y, N, eps, BLOCK: tl.constexpr):
    x_ptr += tl.program_id(0) * stride_x
    y_ptr += tl.program_id(0) * stride_y
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + cols, mask=cols < N, other=0.0)
    first = tl.sum(x) / N
    shifted = tl.where(cols < N, x - first, 0.0)
    mean = tl.sum(shifted) / N
    squares = tl.sum((shifted - mean) * (shifted - mean)) - (BLOCK - N) * mean * mean
    rstd = 1.0 / tl.sqrt(squares / N + eps)
    y = (shifted - mean) * rstd * tl.load(w_ptr + cols, mask=cols < N) + tl.load(b_ptr + cols, mask=cols < N)
    tl.store(y_ptr + cols, y, mask=cols < N)
