"""The spare lanes get the mean itself, so that they deviate by nothing; a helper for the sums; everything in fp64."""

import triton
import triton.language as tl


@triton.jit
def average(values, N):
    return tl.sum(values, axis=0) / N


@triton.jit
def layer_norm_kernel(x_ptr, y_ptr, w_ptr, b_ptr, stride_x, stride_y, N, eps, BLOCK: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    inside = cols < N
    x = tl.load(x_ptr + row * stride_x + cols, mask=inside, other=0).to(tl.float64)
    mean = average(x, N)
    x = tl.where(inside, x, mean)
    rstd = 1 / tl.sqrt(average((x - mean) * (x - mean), N) + eps)
    w = tl.load(w_ptr + cols, mask=inside, other=0).to(tl.float64)
    b = tl.load(b_ptr + cols, mask=inside, other=0).to(tl.float64)
    tl.store(y_ptr + row * stride_y + cols, ((x - mean) * rstd * w + b).to(tl.float32), mask=inside)
