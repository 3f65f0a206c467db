"""min, max and print of Python's, as Triton has them; a device print that is never reached."""

import triton
import triton.language as tl


@triton.jit
def add_rms_norm_kernel(
    x_ptr, residual_ptr, total_ptr, y_ptr, w_ptr, rstd_ptr, stride_x, stride_residual, stride_total, stride_y, N, eps, BLOCK: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, max(BLOCK, 1))
    live = cols < N
    x = tl.load(x_ptr + row * stride_x + cols, mask=live, other=0.0)
    residual = tl.load(residual_ptr + row * stride_residual + cols, mask=live, other=0.0)
    if N < 0:
        tl.device_print("no columns", N)
    total = (x.to(tl.float32) + residual.to(tl.float32)).to(total_ptr.dtype.element_ty)
    tl.store(total_ptr + row * stride_total + cols, total, mask=live)
    wide = total.to(tl.float32)
    rstd = 1.0 / tl.sqrt(tl.sum(wide * wide, axis=0) / N + eps)
    w = tl.load(w_ptr + cols, mask=live, other=0.0).to(tl.float32)
    tl.store(y_ptr + row * stride_y + cols, (wide * (rstd * w)).to(y_ptr.dtype.element_ty), mask=live)
    tl.store(rstd_ptr + row, rstd)
