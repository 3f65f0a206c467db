"""Sums and a second pass in helpers that return tuples; the statistics by tl.math; FMA for the last line."""

import triton
import triton.language as tl


@triton.jit
def load_row(ptr, cols, N):
    inside = cols < N
    return tl.load(ptr + cols, mask=inside, other=0.0).to(tl.float32), inside


@triton.jit
def layer_norm_blocked_kernel(x_ptr, y_ptr, w_ptr, b_ptr, mean_ptr, rstd_ptr, stride_x, stride_y, N, eps: tl.float32, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    sums = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, N, BLOCK):
        x, _ = load_row(x_ptr + row * stride_x, start + lanes, N)
        sums += x
    mean = tl.sum(sums) / N
    sums = tl.zeros_like(sums)
    for start in range(0, N, BLOCK):
        x, inside = load_row(x_ptr + row * stride_x, start + lanes, N)
        sums += tl.where(inside, (x - mean) * (x - mean), 0.0)
    rstd = 1.0 / tl.math.sqrt(tl.sum(sums) / N + eps)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)
    for block in tl.range(tl.cdiv(N, BLOCK)):
        cols = block * BLOCK + lanes
        x, inside = load_row(x_ptr + row * stride_x, cols, N)
        w, _ = load_row(w_ptr, cols, N)
        b, _ = load_row(b_ptr, cols, N)
        y = tl.fma((x - mean) * rstd, w, b)
        tl.store(y_ptr + row * stride_y + cols, y.to(y_ptr.type.element_ty), mask=inside)
