"""The second pass corrected by the sum of its deviations; NaN kept by propagate_nan."""

import triton
import triton.language as tl


@triton.jit
def two_pass_kernel(
    x_ptr, mean_ptr, var_ptr,
    stride_x,               # elements between rows
    N,
    BLOCK: tl.constexpr,    # columns a step, a power of two
):
    row = tl.program_id(0).to(tl.int64)  # 64 bits, so that row * stride_x cannot overflow
    x_ptr += row * stride_x
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
    mean = tl.sum(total, axis=0) / N
    squares = tl.zeros([BLOCK], dtype=tl.float32)
    rest = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < N
        x = tl.load(x_ptr + cols, mask=mask, other=0.0).to(tl.float32)
        d = tl.where(mask, x - mean, 0.0)
        squares += d * d
        rest += d
    off = tl.sum(rest, axis=0) / N
    var = tl.maximum(tl.sum(squares, axis=0) / N - off * off, 0.0, propagate_nan=tl.PropagateNan.ALL)
    tl.store(mean_ptr + row, mean + off)
    tl.store(var_ptr + row, var)
