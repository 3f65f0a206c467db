"""Everything of the language at once."""

import triton
from triton.language import *


@triton.jit
def row_sum_kernel(x_ptr, y_ptr, stride_x, N, BLOCK: constexpr):
    row = program_id(0).to(int64)
    total = zeros([BLOCK], dtype=float32)
    for start in range(0, N, BLOCK):
        cols = start + arange(0, BLOCK)
        total += load(x_ptr + row * stride_x + cols, mask=cols < N, other=0.0).to(float32)
    store(y_ptr + row, sum(total, axis=0))
