"""A root and a division in place of rsqrt; the reduction by a matrix of one row."""

import triton
import triton.language as tl

ONE = tl.constexpr(1.0)


@triton.jit
def rms_norm_kernel(x_ptr, y_ptr, w_ptr, rstd_ptr, stride_x, stride_y, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)[None, :]
    inside = cols < N
    x = tl.load(x_ptr + row * stride_x + cols, mask=inside, other=0.0).to(tl.float32)
    mean_square = tl.sum(tl.reshape(x * x, (BLOCK,)), axis=0) / N
    rstd = tl.fdiv(ONE, tl.sqrt_rn(mean_square + eps))
    tl.store(rstd_ptr + row, rstd)
    w = tl.load(w_ptr + cols, mask=inside, other=0.0)
    tl.store(y_ptr + row * stride_y + cols, (x * rstd * w.to(tl.float32)).to(y_ptr.dtype.element_ty), mask=inside)
