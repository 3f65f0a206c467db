"""One sweep with two sums in fp64; merge is left in the file and not used."""

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
    total = tl.zeros([BLOCK], dtype=tl.float64)
    squares = tl.zeros([BLOCK], dtype=tl.float64)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < N
        x = tl.load(x_ptr + row * stride_x + cols, mask=mask, other=0.0).to(tl.float64)
        total += x
        squares += x * x
    mean = tl.sum(total, axis=0) / N
    var = tl.sum(squares, axis=0) / N - mean * mean
    var = tl.where(var < 0, 0.0, var)
    tl.store(mean_ptr + row, mean.to(tl.float32))
    tl.store(var_ptr + row, var.to(tl.float32))
