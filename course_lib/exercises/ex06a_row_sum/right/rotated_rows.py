"""Program 0 has row 5, and so on round the matrix: which program has which row is the kernel's own affair."""

import triton
import triton.language as tl


@triton.jit
def row_sum_kernel(x_ptr, y_ptr, stride_x, N, BLOCK: tl.constexpr):
    row = ((tl.program_id(0) + 5) % tl.num_programs(0)).to(tl.int64)
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * stride_x + cols, mask=cols < N, other=0.0)
        total += x.to(tl.float32)
    tl.store(y_ptr + row, tl.sum(total, axis=0))
