"""dy by a block pointer with both strides."""

import triton
import triton.language as tl


@triton.jit
def layer_norm_dx_kernel(
    dy_ptr, x_ptr, w_ptr, mean_ptr, rstd_ptr, dx_ptr,
    stride_dy_row, stride_dy_col,   # elements between rows and between columns of dy
    stride_x, stride_dx,            # elements between rows; columns of x and dx are neighbours
    M, N,
    ROWS: tl.constexpr,             # rows a program
    BLOCK: tl.constexpr,            # power of two >= N
):
    cols = tl.arange(0, BLOCK)
    wide = cols.to(tl.int64)        # for dy: column * stride_dy_col can pass 2^31, too
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    mask = (rows < M)[:, None] & (cols < N)[None, :]

    x = tl.load(x_ptr + rows[:, None] * stride_x + cols[None, :], mask=mask, other=0.0).to(tl.float32)
    block = tl.make_block_ptr(
        dy_ptr, (M, N), (stride_dy_row, stride_dy_col), (tl.program_id(0) * ROWS, 0), (ROWS, BLOCK), (1, 0)
    )
    dy = tl.load(block, boundary_check=(0, 1), padding_option="zero").to(tl.float32)
    w = tl.load(w_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
    mean = tl.load(mean_ptr + rows, mask=rows < M, other=0.0)
    rstd = tl.load(rstd_ptr + rows, mask=rows < M, other=0.0)
    xhat = (x - mean[:, None]) * rstd[:, None]
    wdy = w[None, :] * dy

    c1 = tl.sum(xhat * wdy, axis=1) / N
    c2 = tl.sum(wdy, axis=1) / N
    dx = (wdy - (xhat * c1[:, None] + c2[:, None])) * rstd[:, None]
    tl.store(dx_ptr + rows[:, None] * stride_dx + cols[None, :], dx.to(dx_ptr.dtype.element_ty), mask=mask)
