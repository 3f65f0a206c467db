"""Welford in the lanes, and the lanes meet by sums of counts, not by tl.reduce."""

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
    count = tl.zeros([BLOCK], dtype=tl.float32)
    mean = tl.zeros([BLOCK], dtype=tl.float32)
    M2 = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < N
        x = tl.load(x_ptr + row * stride_x + cols, mask=mask, other=0.0).to(tl.float32)
        count += mask.to(tl.float32)
        deviation = tl.where(mask, x - mean, 0.0)
        mean += deviation / tl.maximum(count, 1.0)
        M2 += deviation * (x - mean)
    row_mean = tl.sum(mean * count, axis=0) / N
    away = mean - row_mean
    row_M2 = tl.sum(M2 + count * away * away, axis=0)
    tl.store(mean_ptr + row, row_mean)
    tl.store(var_ptr + row, row_M2 / N)
