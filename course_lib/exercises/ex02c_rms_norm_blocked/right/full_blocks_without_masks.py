"""Full blocks are loaded without a mask, and the rest of the row with one."""

import triton
import triton.language as tl


@triton.jit
def rms_norm_blocked_kernel(x_ptr, y_ptr, w_ptr, rstd_ptr, stride_x, stride_y, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_row, y_row = x_ptr + row * stride_x, y_ptr + row * stride_y
    lanes = tl.arange(0, BLOCK)
    full = N // BLOCK * BLOCK
    rest = full + lanes
    squares = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, full, BLOCK):
        x = tl.load(x_row + start + lanes).to(tl.float32)
        squares += x * x
    x = tl.load(x_row + rest, mask=rest < N, other=0.0).to(tl.float32)
    rstd = tl.rsqrt(tl.sum(squares + x * x, axis=0) / N + eps)
    tl.store(rstd_ptr + row, rstd)
    w = tl.load(w_ptr + rest, mask=rest < N, other=0.0).to(tl.float32)
    tl.store(y_row + rest, (x * rstd * w).to(y_ptr.dtype.element_ty), mask=rest < N)
    for start in range(0, full, BLOCK):
        x = tl.load(x_row + start + lanes).to(tl.float32)
        w = tl.load(w_ptr + start + lanes).to(tl.float32)
        tl.store(y_row + start + lanes, (x * rstd * w).to(y_ptr.dtype.element_ty))
