"""Right but different: rstd is in wdy from the start, the mask of the rows is left to the pointers' clamp, and xhat is not masked."""

import triton
import triton.language as tl


@triton.jit
def layer_norm_dx_from_y_kernel(
    dy_ptr,
    y_ptr,
    w_ptr,
    b_ptr,
    rstd_ptr,
    dx_ptr,
    stride_dy_row,
    stride_dy_col,
    stride_y,
    stride_dx,
    M,
    N,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    cols = tl.arange(0, BLOCK)
    wide = cols.to(tl.int64)[None, :]
    first = tl.program_id(0).to(tl.int64) * ROWS
    rows = tl.minimum(first + tl.arange(0, ROWS), M - 1)
    there = (cols < N)[None, :]
    rstd = tl.load(rstd_ptr + rows)[:, None]
    w = tl.load(w_ptr + cols, mask=cols < N, other=2.0).to(tl.float32)[None, :]
    b = tl.load(b_ptr + cols, mask=cols < N, other=5.0).to(tl.float32)[None, :]
    g = tl.load(dy_ptr + rows[:, None] * stride_dy_row + wide * stride_dy_col, mask=there, other=0.0).to(tl.float32) * w * rstd
    xhat = tl.load(y_ptr + rows[:, None] * stride_y + wide, mask=there, other=1.0).to(tl.float32)
    xhat = (xhat - b) / w
    dx = g - tl.sum(g, axis=1, keep_dims=True) / N - xhat * (tl.sum(g * xhat, axis=1, keep_dims=True) / N)
    mask = there & (first + tl.arange(0, ROWS) < M)[:, None]
    tl.store(dx_ptr + rows[:, None] * stride_dx + wide, dx.to(dx_ptr.dtype.element_ty), mask=mask)
