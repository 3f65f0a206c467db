"""A while loop over moved pointers."""

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

    x_ptr += row * stride_x
    left = N
    lanes = tl.arange(0, BLOCK)
    while left > 0:
        total += tl.load(x_ptr + lanes, mask=lanes < left, other=0.0).to(tl.float32)
        x_ptr += BLOCK
        left -= BLOCK

    tl.store(y_ptr + row, tl.sum(total, axis=0))
