"""float64 in the second pass, and the square by a math function under its own import."""

import triton
import triton.language as tl
from triton.language import float32, float64
from triton.language.math import fma


@triton.jit
def two_pass_kernel(x_ptr, mean_ptr, var_ptr, stride_x, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], dtype=float64)
    for start in range(0, N, BLOCK):
        total += tl.load(x_ptr + row * stride_x + start + lanes, mask=start + lanes < N, other=0.0).to(float64)
    mean = tl.sum(total, axis=0) / N
    squares = tl.zeros([BLOCK], dtype=float64)
    for start in range(0, N, BLOCK):
        inside = start + lanes < N
        x = tl.load(x_ptr + row * stride_x + start + lanes, mask=inside, other=0.0).to(float64)
        deviation = tl.where(inside, x - mean, 0.0)
        squares = fma(deviation, deviation, squares)
    tl.store(mean_ptr + row, mean.to(float32))
    tl.store(var_ptr + row, (tl.sum(squares, axis=0) / N).to(float32))
