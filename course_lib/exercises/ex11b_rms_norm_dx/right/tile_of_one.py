"""Right but different: a tile of one row, fp64 sums, another value than 0 in the padded lanes of x."""

import triton
import triton.language as tl


@triton.jit
def rms_norm_dx_kernel(dy_ptr, x_ptr, w_ptr, rstd_ptr, dx_ptr, stride_dy_row, stride_dy_col, stride_x, stride_dx, N, BLOCK: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) + tl.arange(0, 1)[:, None]
    cols = tl.arange(0, BLOCK)[None, :].to(tl.int64)
    mask = cols < N
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    x = tl.load(x_ptr + rows * stride_x + cols, mask=mask, other=7.0).to(tl.float32)
    wdy = w * tl.load(dy_ptr + rows * stride_dy_row + cols * stride_dy_col, mask=mask, other=0.0).to(tl.float32)
    rstd = tl.load(rstd_ptr + rows)
    xhat = x * rstd
    c1 = (tl.sum((xhat * wdy).to(tl.float64), axis=1, keep_dims=True) / N).to(tl.float32)
    tl.store(dx_ptr + rows * stride_dx + cols, ((wdy - xhat * c1) * rstd).to(dx_ptr.dtype.element_ty), mask=mask)
