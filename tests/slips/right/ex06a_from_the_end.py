"""The blocks are taken from the last to the first, by tl.range."""

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

    blocks = tl.cdiv(N, BLOCK)
    for i in tl.range(0, blocks, num_stages=2):
        cols = (blocks - 1 - i) * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * stride_x + cols, mask=cols < N, other=0.0)
        total += x.to(tl.float32)

    tl.store(y_ptr + row, tl.sum(total, axis=0))
