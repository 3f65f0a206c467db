"""Right but different: a row that fits into one block is loaded once, and its sum is kept."""

import triton
import triton.language as tl


@triton.jit
def add(x_ptr, total_ptr, cols, mask):
    x = tl.load(x_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    return (x + tl.load(total_ptr + cols, mask=mask, other=0.0)).to(total_ptr.dtype.element_ty)


@triton.jit
def finish(total, rstd, total_ptr, y_ptr, w_ptr, cols, mask):
    y = total.to(tl.float32) * rstd * tl.load(w_ptr + cols, mask=mask, other=0.0)
    tl.store(total_ptr + cols, total, mask=mask)
    tl.store(y_ptr + cols, y.to(y_ptr.dtype.element_ty), mask=mask)


@triton.jit
def add_rms_norm_in_place_kernel(x_ptr, total_ptr, y_ptr, w_ptr, rstd_ptr, stride_x, stride_total, stride_y, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * stride_x
    total_ptr += row * stride_total
    y_ptr += row * stride_y
    lanes = tl.arange(0, BLOCK)
    first = add(x_ptr, total_ptr, lanes, lanes < N)
    squares = first.to(tl.float32) * first.to(tl.float32)
    for start in range(BLOCK, N, BLOCK):
        total = add(x_ptr, total_ptr, start + lanes, start + lanes < N).to(tl.float32)
        squares += total * total
    rstd = tl.rsqrt(tl.sum(squares, axis=0) / N + eps)
    tl.store(rstd_ptr + row, rstd)
    finish(first, rstd, total_ptr, y_ptr, w_ptr, lanes, lanes < N)
    for start in range(BLOCK, N, BLOCK):
        cols = start + lanes
        finish(add(x_ptr, total_ptr, cols, cols < N), rstd, total_ptr, y_ptr, w_ptr, cols, cols < N)
