"""One pass over plain sums in fp64, which has digits enough for a mean of 10000 and for one element far out."""

import triton
import triton.language as tl


@triton.jit
def welford_sums_kernel(x_ptr, mean_ptr, var_ptr, stride_x, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros([BLOCK], tl.float64)
    squares = tl.zeros([BLOCK], tl.float64)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * stride_x + cols, mask=cols < N, other=0.0).to(tl.float64)
        total += x
        squares += x * x
    mean = tl.sum(total, axis=0) / N
    var = tl.sum(squares, axis=0) / N - mean * mean
    tl.store(mean_ptr + row, mean.to(tl.float32))
    tl.store(var_ptr + row, tl.where(var < 0.0, 0.0, var).to(tl.float32))
