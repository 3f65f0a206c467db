"""Right but different: the smallest of -x, in fp64, with a while loop."""

import triton
import triton.language as tl


@triton.jit
def row_max_kernel(x_ptr, largest_ptr, column_ptr, stride_x, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = x_ptr + row.to(tl.int64) * stride_x
    smallest = tl.full([BLOCK], float("inf"), dtype=tl.float64)
    place = tl.zeros([BLOCK], dtype=tl.int64) + tl.arange(0, BLOCK)
    start = 0
    while start < N:
        cols = start + tl.arange(0, BLOCK)
        x = -tl.load(at + cols, mask=cols < N, other=float("-inf")).to(tl.float64)
        place = tl.where(x < smallest, cols.to(tl.int64), place)
        smallest = tl.minimum(smallest, x)
        start += BLOCK
    least = tl.min(smallest, axis=0)
    tl.store(largest_ptr + row, (-least).to(tl.float32))
    tl.store(column_ptr + row, tl.min(tl.where(smallest == least, place, N), axis=0))
