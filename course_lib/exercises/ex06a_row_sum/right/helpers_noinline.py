"""A helper that is not inlined, constants computed from others, a multiply in place of a mask's other."""

import math

import triton
import triton.language as T

LANES = 2**4
ZERO = T.constexpr(math.sqrt(LANES) - LANES / 4)


@triton.jit(noinline=True)
def first_of_row(row, stride: T.int64) -> T.tensor:
    """Where the row begins."""
    return row.to(T.int64) * stride


@triton.jit
def row_sum_kernel(x_ptr, y_ptr, stride_x, N, BLOCK: T.constexpr):
    row_ptr = x_ptr + first_of_row(T.program_id(0), stride_x)
    total = T.full((BLOCK,), ZERO, T.float32)
    for first in T.range(0, N, BLOCK):
        cols = first + T.arange(0, BLOCK)
        total = total + T.load(row_ptr + cols, cols < N, 0).cast(T.float32)
    T.store(y_ptr + T.program_id(0), T.sum(total, axis=0))
