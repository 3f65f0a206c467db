"""The row is split into steps of 64 columns, whatever BLOCK and UNROLL are. y is written UNROLL blocks at a time: it adds up nothing."""

import triton
import triton.language as tl


@triton.jit
def rms_norm_batch_invariant_kernel(x_ptr, y_ptr, w_ptr, rstd_ptr, stride_x, stride_y, M, N, eps, BLOCK: tl.constexpr, UNROLL: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * stride_x
    y_ptr += row * stride_y
    squares = tl.zeros([64], dtype=tl.float32)
    for start in range(0, N, 64):
        cols = start + tl.arange(0, 64)
        x = tl.load(x_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
        squares += x * x
    rstd = tl.rsqrt(tl.sum(squares, axis=0) / N + eps)
    tl.store(rstd_ptr + row, rstd)
    for start in range(0, N, BLOCK * UNROLL):
        cols = start + tl.arange(0, BLOCK * UNROLL)
        x = tl.load(x_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
        w = tl.load(w_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
        tl.store(y_ptr + cols, (x * (rstd * w)).to(y_ptr.dtype.element_ty), mask=cols < N)
