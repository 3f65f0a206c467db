"""Right but different: the rows of a tile one after the other, as blocks of one dimension."""

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
    mask = cols < N
    wide = cols.to(tl.int64) * stride_dy_col
    w = tl.load(w_ptr + cols, mask=mask, other=1.0).to(tl.float32)
    b = tl.load(b_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    for i in range(ROWS):
        row = tl.program_id(0).to(tl.int64) * ROWS + i
        if row < M:
            xhat = (tl.load(y_ptr + row * stride_y + cols, mask=mask, other=0.0) - b) / w
            wdy = w * tl.load(dy_ptr + row * stride_dy_row + wide, mask=mask, other=0.0)
            dx = (wdy - xhat * (tl.sum(xhat * wdy, axis=0) / N) - tl.sum(wdy, axis=0) / N) * tl.load(rstd_ptr + row)
            tl.store(dx_ptr + row * stride_dx + cols, dx.to(dx_ptr.dtype.element_ty), mask=mask)
