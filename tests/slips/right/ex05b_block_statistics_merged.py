"""Mean and M2 of each block, merged into three numbers."""

import triton
import triton.language as tl


@triton.jit
def merge(n_a, mean_a, M2_a, n_b, mean_b, M2_b):
    n = n_a + n_b
    share = n_b / tl.maximum(n, 1.0)
    difference = mean_b - mean_a
    mean = mean_a + difference * share
    M2 = M2_a + M2_b + difference * difference * n_a * share
    return n, mean, M2


@triton.jit
def welford_kernel(
    x_ptr, mean_ptr, var_ptr,
    stride_x,               # elements between rows
    N,
    BLOCK: tl.constexpr,    # columns a step, a power of two
):
    row = tl.program_id(0).to(tl.int64)  # 64 bits, so that row * stride_x cannot overflow
    count = 0.0
    mean = 0.0
    M2 = 0.0
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < N
        x = tl.load(x_ptr + row * stride_x + cols, mask=mask, other=0.0).to(tl.float32)
        here = tl.sum(mask.to(tl.float32), axis=0)
        block_mean = tl.sum(x, axis=0) / here
        deviation = tl.where(mask, x - block_mean, 0.0)
        count, mean, M2 = merge(count, mean, M2, here, block_mean, tl.sum(deviation * deviation, axis=0))
    tl.store(mean_ptr + row, mean)
    tl.store(var_ptr + row, M2 / N)
