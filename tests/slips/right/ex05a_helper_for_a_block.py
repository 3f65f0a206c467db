"""A helper loads a block; the deviation is multiplied by the mask."""

import triton
import triton.language as tl


@triton.jit
def load_block(row_ptr, cols, N):
    """Columns of a row as fp32, and 1 where they exist, 0 elsewhere."""
    exists = cols < N
    return tl.load(row_ptr + cols, mask=exists, other=0.0).to(tl.float32), exists.to(tl.float32)


@triton.jit
def two_pass_kernel(
    x_ptr, mean_ptr, var_ptr,
    stride_x,               # elements between rows
    N,
    BLOCK: tl.constexpr,    # columns a step, a power of two
):
    row = tl.program_id(0).to(tl.int64)  # 64 bits, so that row * stride_x cannot overflow
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x, _ = load_block(x_ptr + row * stride_x, cols, N)
        total += x
    mean = tl.sum(total, axis=0) / N
    squares = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x, exists = load_block(x_ptr + row * stride_x, cols, N)
        deviation = (x - mean) * exists
        squares += deviation * deviation
    var = tl.sum(squares, axis=0) / N
    tl.store(mean_ptr + row, mean)
    tl.store(var_ptr + row, var)
