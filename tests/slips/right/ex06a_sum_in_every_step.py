"""A number and not a block is kept, in fp64."""

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
    total = tl.zeros((), dtype=tl.float64)

    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * stride_x + cols, mask=cols < N, other=0.0)
        total += tl.sum(x.to(tl.float64), 0)

    tl.store(y_ptr + row, total.to(tl.float32))
