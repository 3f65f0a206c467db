"""Full blocks without a mask, then the rest of the row; distances from lane 0's mean, which is one of the numbers near them."""

import triton
import triton.language as tl


@triton.jit
def welford_sums_kernel(x_ptr, mean_ptr, var_ptr, stride_x, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    x_row = x_ptr + row * stride_x
    steps = N // BLOCK
    rest = N % BLOCK
    mean = tl.zeros([BLOCK], tl.float32)
    M2 = tl.zeros([BLOCK], tl.float32)
    for k in range(steps):
        x = tl.load(x_row + k * BLOCK + lanes).to(tl.float32)
        d = x - mean
        mean += d / (k + 1)
        M2 += d * (x - mean)
    x = tl.load(x_row + steps * BLOCK + lanes, mask=lanes < rest, other=0.0).to(tl.float32)
    d = tl.where(lanes < rest, x - mean, 0.0)
    mean += d / (steps + 1)
    M2 += d * (x - mean)
    weight = (steps + tl.where(lanes < rest, 1, 0)).to(tl.float32) / N
    average = tl.sum(tl.where(weight > 0, weight * mean, 0.0), axis=0)
    off = mean - average
    var = tl.sum(M2 / N + weight * off * off, axis=0)
    tl.store(mean_ptr + row, average)
    tl.store(var_ptr + row, var)
