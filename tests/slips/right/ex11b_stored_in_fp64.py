"""dx in fp64 until the store."""

import triton
import triton.language as tl


@triton.jit
def rms_norm_dx_kernel(
    dy_ptr, x_ptr, w_ptr, rstd_ptr, dx_ptr,
    stride_dy_row, stride_dy_col,   # elements between rows and between columns of dy
    stride_x, stride_dx,            # elements between rows; columns of x and dx are neighbours
    N,
    BLOCK: tl.constexpr,            # power of two >= N
):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    wide = cols.to(tl.int64)        # for dy: column * stride_dy_col can pass 2^31, too
    mask = cols < N
    x = tl.load(x_ptr + row * stride_x + cols, mask=mask, other=0.0).to(tl.float32)
    dy = tl.load(dy_ptr + row * stride_dy_row + wide * stride_dy_col, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    rstd = tl.load(rstd_ptr + row)
    xhat = x * rstd
    wdy = w * dy

    c1 = tl.sum(xhat * wdy, axis=0) / N
    dx = (wdy.to(tl.float64) - xhat * c1) * rstd
    tl.store(dx_ptr + row * stride_dx + cols, dx.to(dx_ptr.dtype.element_ty), mask=mask)
