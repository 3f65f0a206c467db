"""Kahan's compensated sum in every lane."""

import triton
import triton.language as tl


@triton.jit
def row_sum_kernel(
    x_ptr, y_ptr,
    stride_x,               # elements between rows of x
    N,
    BLOCK: tl.constexpr,    # columns a step, a power of two
):
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros([BLOCK], dtype=tl.float32)
    lost = tl.zeros([BLOCK], dtype=tl.float32)

    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * stride_x + cols, mask=cols < N, other=0.0)
        y = x.to(tl.float32) - lost
        t = total + y
        lost = (t - total) - y
        total = t

    tl.store(y_ptr + row, tl.sum(total, axis=0))
