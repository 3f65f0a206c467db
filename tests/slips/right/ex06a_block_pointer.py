"""A block pointer with padding."""

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

    block = tl.make_block_ptr(x_ptr + row * stride_x, (N,), (1,), (0,), (BLOCK,), (0,))
    for _ in range(0, N, BLOCK):
        total += tl.load(block, boundary_check=(0,), padding_option="zero").to(tl.float32)
        block = tl.advance(block, (BLOCK,))

    tl.store(y_ptr + row, tl.sum(total, axis=0))
