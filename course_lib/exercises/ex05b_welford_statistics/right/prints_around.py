"""Prints, a table and a lambda at the top of the file; what the kernel needs is between them."""

import sys

import triton
import triton.language as tl

print("python", sys.version_info[:2], "triton", triton.__version__)
BLOCKS = {name: 2**power for name, power in zip("abc", range(8, 11))}
pick = lambda n: min(b for b in BLOCKS.values() if b >= n)  # noqa: E731


@triton.jit
def merge(n_a, mean_a, M2_a, n_b, mean_b, M2_b):
    n = n_a + n_b
    w = tl.where(n > 0, n_b / tl.maximum(n, 1.0), 0.0)
    d = mean_b - mean_a
    return n, mean_a * (1 - w) + mean_b * w, M2_a + M2_b + d * d * n_a * w


@triton.jit
def welford_kernel(x_ptr, mean_ptr, var_ptr, stride_x, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    n = tl.zeros([BLOCK], tl.float32)
    mean = tl.zeros([BLOCK], tl.float32)
    M2 = tl.zeros([BLOCK], tl.float32)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        one = (cols < N).to(tl.float32)
        x = tl.load(x_ptr + row * stride_x + cols, mask=cols < N, other=0.0).to(tl.float32)
        n, mean, M2 = merge(n, mean, M2, one, x * 1.0, tl.zeros([BLOCK], tl.float32))
    _, mean, M2 = tl.reduce((n, mean, M2), 0, merge)
    tl.store(mean_ptr + row, mean)
    tl.store(var_ptr + row, M2 / N)


print({name: pick(size) for name, size in BLOCKS.items()})
