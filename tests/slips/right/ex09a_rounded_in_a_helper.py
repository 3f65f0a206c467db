"""A helper rounds and widens, tuple returned."""

import triton
import triton.language as tl


@triton.jit
def add_and_round(a, b, dtype: tl.constexpr):
    rounded = (a + b).to(dtype)
    return rounded, rounded.to(tl.float32)


@triton.jit
def add_rms_norm_kernel(
    x_ptr, residual_ptr, total_ptr, y_ptr, w_ptr, rstd_ptr,
    stride_x, stride_residual, stride_total, stride_y,     # elements between rows
    N, eps,
    BLOCK: tl.constexpr,                                   # power of two >= N
):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * stride_x + cols, mask=mask, other=0.0).to(tl.float32)
    residual = tl.load(residual_ptr + row * stride_residual + cols, mask=mask, other=0.0).to(tl.float32)
    rounded, total = add_and_round(x, residual, total_ptr.dtype.element_ty)
    tl.store(total_ptr + row * stride_total + cols, rounded, mask=mask)

    rstd = tl.rsqrt(tl.sum(total * total, axis=0) / N + eps)
    tl.store(rstd_ptr + row, rstd)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    y = total * rstd * w
    tl.store(y_ptr + row * stride_y + cols, y.to(y_ptr.dtype.element_ty), mask=mask)
