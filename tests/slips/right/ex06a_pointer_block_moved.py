"""A block of pointers that moves by BLOCK, zeros_like, and the mask recomputed by `left`."""

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

    lanes = tl.arange(0, BLOCK)
    pointers = x_ptr + row * stride_x + lanes
    for start in range(0, N, BLOCK):
        x = tl.load(pointers, mask=lanes < N - start, other=0.0)
        total += tl.cast(x, tl.float32)
        pointers += BLOCK

    tl.store(y_ptr + row, tl.sum(total, axis=0))
