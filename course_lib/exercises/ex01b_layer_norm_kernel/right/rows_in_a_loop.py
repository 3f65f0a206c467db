"""A grid of M programs that deals the rows out in another order, and reads the row a second time for y."""

import triton
import triton.language as tl


@triton.jit
def layer_norm_kernel(x_ptr, y_ptr, w_ptr, b_ptr, stride_x, stride_y, N, eps, BLOCK: tl.constexpr):
    row = tl.num_programs(0) - 1 - tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    row_ptr = x_ptr + row * stride_x
    mean = tl.sum(tl.load(row_ptr + cols, mask=mask, other=0.0), 0) / N
    squares = tl.load(row_ptr + cols, mask=mask, other=mean) - mean
    rstd = tl.math.rsqrt(tl.sum(squares * squares, 0) / N + eps)
    x = tl.load(row_ptr + cols, mask=mask)
    y = tl.fma((x - mean) * rstd, tl.load(w_ptr + cols, mask=mask), tl.load(b_ptr + cols, mask=mask))
    tl.store(y_ptr + row * stride_y + cols, y, mask=mask)
