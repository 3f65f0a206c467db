"""Right but different: xhat is never formed; rstd cubed stands in front of the sum of x * wdy."""

import triton
import triton.language as tl


@triton.jit
def rms_norm_dx_kernel(dy_ptr, x_ptr, w_ptr, rstd_ptr, dx_ptr, stride_dy_row, stride_dy_col, stride_x, stride_dx, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    rstd = tl.load(rstd_ptr + row)
    x = tl.load(x_ptr + row * stride_x + cols, mask=cols < N, other=0.0).to(tl.float32)
    wdy = tl.load(dy_ptr + row * stride_dy_row + cols.to(tl.int64) * stride_dy_col, mask=cols < N, other=0.0).to(tl.float32)
    wdy *= tl.load(w_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
    dx = rstd * wdy - x * (rstd * rstd * rstd * (tl.sum(x * wdy, axis=0) / N))
    tl.store(dx_ptr + row * stride_dx + cols, dx.to(dx_ptr.dtype.element_ty), mask=cols < N)
