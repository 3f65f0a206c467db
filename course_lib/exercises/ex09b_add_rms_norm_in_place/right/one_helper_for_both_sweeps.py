"""Right but different: a helper loads and rounds, and one loop makes both sweeps."""

import triton
import triton.language as tl


@triton.jit
def load_sum(x_ptr, total_ptr, cols, N):
    x = tl.load(x_ptr + cols, mask=cols < N, other=0.0)
    residual = tl.load(total_ptr + cols, mask=cols < N, other=0.0)
    return (x.to(tl.float32) + residual.to(tl.float32)).to(total_ptr.dtype.element_ty)


@triton.jit
def add_rms_norm_in_place_kernel(x_ptr, total_ptr, y_ptr, w_ptr, rstd_ptr, stride_x, stride_total, stride_y, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_row, total_row, y_row = x_ptr + row * stride_x, total_ptr + row * stride_total, y_ptr + row * stride_y
    steps = tl.cdiv(N, BLOCK)
    squares = tl.zeros([BLOCK], dtype=tl.float32)
    rstd = 0.0
    for turn in range(2 * steps):
        cols = (turn % steps) * BLOCK + tl.arange(0, BLOCK)
        total = load_sum(x_row, total_row, cols, N)
        if turn < steps:
            squares += total.to(tl.float32) * total.to(tl.float32)
        else:
            if turn == steps:
                rstd = 1 / tl.sqrt(tl.sum(squares, axis=0) / N + eps)
                tl.store(rstd_ptr + row, rstd)
            w = tl.load(w_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
            tl.store(total_row + cols, total, mask=cols < N)
            tl.store(y_row + cols, (total.to(tl.float32) * rstd * w).to(y_ptr.dtype.element_ty), mask=cols < N)
