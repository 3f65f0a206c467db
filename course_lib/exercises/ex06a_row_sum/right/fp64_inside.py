"""Right but different: sums in fp64, from the last block to the first."""

import triton
import triton.language as tl


@triton.jit
def row_sum_kernel(x_ptr, y_ptr, stride_x, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros([BLOCK], dtype=tl.float64)
    steps = tl.cdiv(N, BLOCK)
    for step in range(0, steps):
        cols = (steps - 1 - step) * BLOCK + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row * stride_x + cols, mask=cols < N, other=0.0).to(tl.float64)
    tl.store(y_ptr + row, tl.sum(total, axis=0).to(tl.float32))
