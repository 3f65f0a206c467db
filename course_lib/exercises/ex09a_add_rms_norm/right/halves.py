"""Right but different: the sum is rounded and stored after the statistics, from a value rounded at once."""

import triton
import triton.language as tl


@triton.jit
def add_rms_norm_kernel(
    x_ptr, residual_ptr, total_ptr, y_ptr, w_ptr, rstd_ptr, stride_x, stride_residual, stride_total, stride_y, N, eps, BLOCK: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    residual = tl.load(residual_ptr + row * stride_residual + cols, mask=mask, other=0.0).to(tl.float32)
    residual += tl.load(x_ptr + row * stride_x + cols, mask=mask, other=0.0).to(tl.float32)
    stored = residual.to(total_ptr.dtype.element_ty)
    value = stored.to(tl.float32)
    rstd = 1 / tl.sqrt(eps + tl.sum(tl.where(mask, value * value, 0.0), axis=0) / N)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    tl.store(y_ptr + row * stride_y + cols, (w * (value * rstd)).to(y_ptr.dtype.element_ty), mask=mask)
    tl.store(total_ptr + row * stride_total + cols, stored, mask=mask)
    tl.store(rstd_ptr + row, rstd)
