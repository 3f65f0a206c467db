"""The lanes count after all, the weights are shares of N, and what the distances add is a sum of its own."""

import triton
import triton.language as tl


@triton.jit
def step(mean, M2, x, seen, mask):
    old = x - mean
    mean = tl.where(mask, mean + old / seen, mean)
    return mean, tl.where(mask, M2 + old * (x - mean), M2)


@triton.jit
def welford_sums_kernel(x_ptr, mean_ptr, var_ptr, stride_x, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    x_ptr += row.to(tl.int64) * stride_x
    lanes = tl.arange(0, BLOCK)
    count = tl.zeros([BLOCK], tl.float32)
    mean = tl.zeros([BLOCK], tl.float32)
    M2 = tl.zeros([BLOCK], tl.float32)
    for block in range(tl.cdiv(N, BLOCK)):
        mask = block * BLOCK + lanes < N
        x = tl.load(x_ptr + block * BLOCK + lanes, mask=mask, other=0.0).to(tl.float32)
        count += tl.where(mask, 1.0, 0.0)
        mean, M2 = step(mean, M2, x, tl.maximum(count, 1.0), mask)
    share = count / N
    row_mean = tl.sum(share * mean, axis=0)
    var = tl.sum(M2, axis=0) / N + tl.sum(share * (mean - row_mean) * (mean - row_mean), axis=0)
    tl.store(mean_ptr + row, row_mean)
    tl.store(var_ptr + row, var)
