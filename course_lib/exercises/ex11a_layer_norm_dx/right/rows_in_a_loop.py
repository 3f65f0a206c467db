"""Row after row in a loop, and the statistics kept in names of their own."""

import triton
import triton.language as tl


@triton.jit
def dx_of_row(wdy, xhat, rstd, N):
    projected = wdy - tl.sum(wdy, axis=0) / N
    return (projected - xhat * (tl.sum(xhat * wdy, axis=0) / N)) * rstd


@triton.jit
def layer_norm_dx_kernel(
    dy_ptr,
    x_ptr,
    w_ptr,
    mean_ptr,
    rstd_ptr,
    dx_ptr,
    stride_dy_row,
    stride_dy_col,
    stride_x,
    stride_dx,
    M,
    N,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    cols = tl.arange(0, BLOCK).to(tl.int64)
    inside = cols < N
    w = tl.load(w_ptr + cols, mask=inside, other=0.0).to(tl.float32)
    first = tl.program_id(0).to(tl.int64) * ROWS
    for step in range(ROWS):
        row = first + step
        live = inside & (row < M)
        x = tl.load(x_ptr + row * stride_x + cols, mask=live, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + row * stride_dy_row + cols * stride_dy_col, mask=live, other=0.0).to(tl.float32)
        rstd = tl.load(rstd_ptr + row, mask=row < M, other=0.0)
        xhat = (x - tl.load(mean_ptr + row, mask=row < M, other=0.0)) * rstd
        dx = dx_of_row(w * dy, xhat, rstd, N)
        tl.store(dx_ptr + row * stride_dx + cols, dx.to(dx_ptr.dtype.element_ty), mask=live)
