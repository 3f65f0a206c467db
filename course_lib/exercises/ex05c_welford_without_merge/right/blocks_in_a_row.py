"""Each block by two passes in the lanes, and Chan's merge from block to block, with counts that are known."""

import triton
import triton.language as tl


@triton.jit
def welford_sums_kernel(x_ptr, mean_ptr, var_ptr, stride_x, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    mean = 0.0
    M2 = 0.0
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * stride_x + cols, mask=cols < N, other=0.0).to(tl.float32)
        here = tl.minimum(N - start, BLOCK).to(tl.float32)
        block_mean = tl.sum(x, axis=0) / here
        d = tl.where(cols < N, x - block_mean, 0.0)
        between = block_mean - mean
        share = here / (start + here)
        mean += between * share
        M2 += tl.sum(d * d, axis=0) + between * between * share * start
    tl.store(mean_ptr + row, mean)
    tl.store(var_ptr + row, M2 / N)
