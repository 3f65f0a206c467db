"""Right but different: each tile is summed over its rows at once, dx is written out, and the loop is a while."""

import triton
import triton.language as tl


@triton.jit
def persistent_backward_kernel(
    dy_ptr,
    x_ptr,
    w_ptr,
    mean_ptr,
    rstd_ptr,
    dx_ptr,
    dw_partial_ptr,
    db_partial_ptr,
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
    live = cols < N
    w = tl.load(w_ptr + cols, mask=live, other=0.0).to(tl.float32)
    dw = tl.zeros([BLOCK], dtype=tl.float32)
    db = tl.zeros([BLOCK], dtype=tl.float32)
    first = tl.program_id(0).to(tl.int64) * ROWS
    while first < M:
        rows = first + tl.arange(0, ROWS)
        mask = (rows < M)[:, None] & live[None, :]
        dy = tl.load(dy_ptr + rows[:, None] * stride_dy_row + cols[None, :] * stride_dy_col, mask=mask, other=0.0).to(tl.float32)
        x = tl.load(x_ptr + rows[:, None] * stride_x + cols[None, :], mask=mask, other=0.0).to(tl.float32)
        mean = tl.load(mean_ptr + rows, mask=rows < M, other=0.0)[:, None]
        rstd = tl.load(rstd_ptr + rows, mask=rows < M, other=0.0)[:, None]
        xhat = (x - mean) * rstd
        c1 = tl.sum(dy * w[None, :] * xhat, axis=1)[:, None] / N
        c2 = tl.sum(dy * w[None, :], axis=1)[:, None] / N
        dx = rstd * (dy * w[None, :] - c2 - xhat * c1)
        tl.store(dx_ptr + rows[:, None] * stride_dx + cols[None, :], dx.to(dx_ptr.dtype.element_ty), mask=mask)
        dw += tl.sum(dy * xhat, axis=0)
        db += tl.sum(dy, axis=0)
        first += tl.num_programs(0) * ROWS
    tl.store(dw_partial_ptr + tl.program_id(0) * N + cols, dw, mask=live)
    tl.store(db_partial_ptr + tl.program_id(0) * N + cols, db, mask=live)
