"""tl.reduce with a function of one's own, and a mask by tl.where."""

import triton
import triton.language as tl


@triton.jit
def plus(a, b):
    return a + b


@triton.jit
def row_sum_kernel(
    x_ptr, y_ptr,
    stride_x,               # elements between rows of x
    N,
    BLOCK: tl.constexpr,    # columns a step, a power of two
):
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros([BLOCK], dtype=tl.float32)

    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * stride_x + cols, mask=cols < N)
        x = tl.where(cols < N, x, 0.0)
        total += x.to(tl.float32)

    tl.store(y_ptr + row, tl.reduce(total, 0, plus))
