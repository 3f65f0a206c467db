"""Three loops over pieces of 8 columns, sums in fp64; BLOCK is not used."""

import triton
import triton.language as tl


@triton.jit
def layer_norm_kernel(
    x_ptr, y_ptr,           # (M, N), fp32
    w_ptr, b_ptr,           # (N,), fp32
    stride_x, stride_y,     # elements between rows
    N, eps,
    BLOCK: tl.constexpr,    # power of two >= N
):
    row = tl.program_id(0)
    lanes = tl.arange(0, 8)
    x_row = x_ptr + row * stride_x
    y_row = y_ptr + row * stride_y

    total = tl.zeros((8,), dtype=tl.float64)
    for start in range(0, N, 8):
        total += tl.load(x_row + start + lanes, mask=start + lanes < N, other=0.0)
    mean = tl.sum(total, axis=0) / N

    squares = tl.zeros((8,), dtype=tl.float64)
    for start in range(0, N, 8):
        inside = start + lanes < N
        piece = tl.load(x_row + start + lanes, mask=inside, other=0.0).to(tl.float64) - mean
        squares += tl.where(inside, piece * piece, 0.0)
    rstd = 1.0 / tl.sqrt(tl.sum(squares, axis=0) / N + eps)

    start = 0
    while start < N:
        at = start + lanes
        y = (tl.load(x_row + at, mask=at < N, other=0.0) - mean) * rstd
        y = y * tl.load(w_ptr + at, mask=at < N, other=0.0) + tl.load(b_ptr + at, mask=at < N, other=0.0)
        tl.store(y_row + at, y.to(tl.float32), mask=at < N)
        start += 8
