"""Right but different: the second sweep goes from the last block to the first, and the squares are fp64."""

import triton
import triton.language as tl


@triton.jit
def add_rms_norm_in_place_kernel(x_ptr, total_ptr, y_ptr, w_ptr, rstd_ptr, stride_x, stride_total, stride_y, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    squares = tl.zeros([BLOCK], dtype=tl.float64)
    for start in range(0, N, BLOCK):
        there = lanes < N - start
        x = tl.load(x_ptr + row * stride_x + start + lanes, mask=there, other=0.0).to(tl.float32)
        x += tl.load(total_ptr + row * stride_total + start + lanes, mask=there, other=0.0).to(tl.float32)
        total = x.to(total_ptr.dtype.element_ty).to(tl.float64)
        squares += total * total
    rstd = (1 / tl.sqrt(tl.sum(squares, axis=0) / N + eps)).to(tl.float32)
    steps = tl.cdiv(N, BLOCK)
    for step in range(steps):
        cols = (steps - 1 - step) * BLOCK + lanes
        w = tl.load(w_ptr + cols, mask=cols < N, other=1.0).to(tl.float32)
        x = tl.load(x_ptr + row * stride_x + cols, mask=cols < N, other=0.0).to(tl.float32)
        residual = tl.load(total_ptr + row * stride_total + cols, mask=cols < N, other=0.0).to(tl.float32)
        total = (residual + x).to(total_ptr.dtype.element_ty)
        tl.store(y_ptr + row * stride_y + cols, (w * (rstd * total.to(tl.float32))).to(y_ptr.dtype.element_ty), mask=cols < N)
        tl.store(total_ptr + row * stride_total + cols, total, mask=cols < N)
    tl.store(rstd_ptr + row, rstd)
