"""Right but different: rstd folded into w before it meets x, 1 / sqrt instead of rsqrt, a sum by tl.reduce."""

import triton
import triton.language as tl


@triton.jit
def add(a, b):
    return a + b


@triton.jit
def rms_norm_kernel(x_ptr, y_ptr, w_ptr, rstd_ptr, stride_x, stride_y, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride_x + cols, mask=cols < N, other=0.0).to(tl.float32)
    mean_square = tl.reduce(x * x, 0, add) / N
    rstd = 1.0 / tl.sqrt(mean_square + eps)
    w = tl.load(w_ptr + cols, mask=cols < N, other=0.0).to(tl.float32) * rstd
    tl.store(y_ptr + row * stride_y + cols, (w * x).to(y_ptr.dtype.element_ty), mask=cols < N)
    tl.store(rstd_ptr + row, rstd)
