"""Squares in fp64, w last, cast by tl.cast."""

import triton
import triton.language as tl


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
    rounded = (x + residual).to(total_ptr.dtype.element_ty)
    tl.store(total_ptr + row * stride_total + cols, rounded, mask=mask)
    total = rounded.to(tl.float32)

    rstd = tl.rsqrt((tl.sum(total.to(tl.float64) * total, axis=0) / N).to(tl.float32) + eps)
    tl.store(rstd_ptr + row, rstd)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    y = total * rstd * w
    tl.store(y_ptr + row * stride_y + cols, tl.cast(y, y_ptr.dtype.element_ty), mask=mask)
