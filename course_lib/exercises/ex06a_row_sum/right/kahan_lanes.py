"""Right but different: each lane keeps what its additions lost, and the lanes meet through tl.reduce with a function of its own."""

import triton
import triton.language as tl


@triton.jit
def add(a, b):
    return a + b


@triton.jit
def row_sum_kernel(x_ptr, y_ptr, stride_x, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros([BLOCK], dtype=tl.float32)
    lost = tl.zeros([BLOCK], dtype=tl.float32)
    for block in range(0, tl.cdiv(N, BLOCK)):
        cols = block * BLOCK + tl.arange(0, BLOCK)
        x = tl.where(cols < N, tl.load(x_ptr + row * stride_x + cols, mask=cols < N), 0.0).to(tl.float32)
        grown = total + x
        big = tl.where(tl.abs(total) >= tl.abs(x), total, x)
        small = tl.where(tl.abs(total) >= tl.abs(x), x, total)
        lost += tl.where(tl.abs(grown) == float("inf"), 0.0, (big - grown) + small)
        total = grown
    tl.store(y_ptr + row, tl.reduce(total + lost, 0, add))
