"""A while loop, a reduction by a function of its own, and a docstring in the kernel."""

import triton
import triton.language as tl


@triton.jit
def plus(a, b):
    return a + b


@triton.jit
def row_sum_kernel(x_ptr, y_ptr, stride_x, N, BLOCK: tl.constexpr):
    """One row's sum."""
    row = tl.cast(tl.program_id(0), tl.int64)
    at = x_ptr + row * stride_x + tl.arange(0, BLOCK)
    left = N
    sums = tl.zeros((BLOCK,), tl.float32)
    while left > 0:
        sums += tl.load(at, mask=tl.arange(0, BLOCK) < left, other=0.0).to(tl.float32)
        at += BLOCK
        left -= BLOCK
    tl.store(y_ptr + row, tl.reduce(sums, axis=0, combine_fn=plus))
