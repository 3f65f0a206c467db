"""As many steps for every program: in the last one some meet a tile that is not there, and the masks keep it empty."""

import triton
import triton.language as tl


@triton.jit
def tile_dx(dy, x, w, mean, rstd, N):
    """xhat and dx of a tile, shape (ROWS, BLOCK); dy must be 0 in padded lanes."""
    xhat = (x - mean[:, None]) * rstd[:, None]
    wdy = dy * w[None, :]
    c1 = tl.sum(xhat * wdy, axis=1) / N
    c2 = tl.sum(wdy, axis=1) / N
    return xhat, (wdy - (xhat * c1[:, None] + c2[:, None])) * rstd[:, None]


@triton.jit
def persistent_backward_kernel(
    dy_ptr, x_ptr, w_ptr, mean_ptr, rstd_ptr, dx_ptr, dw_partial_ptr, db_partial_ptr,
    stride_dy_row, stride_dy_col, stride_x, stride_dx,   # elements; the columns of x and dx are neighbours
    M, N,
    ROWS: tl.constexpr,                                  # rows a tile
    BLOCK: tl.constexpr,                                 # power of two >= N
):
    program = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    wide = cols.to(tl.int64)[None, :]                    # for dy: column * stride_dy_col can pass 2^31, too
    w = tl.load(w_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
    dw = tl.zeros([ROWS, BLOCK], dtype=tl.float32)
    db = tl.zeros([ROWS, BLOCK], dtype=tl.float32)
    P = tl.num_programs(0)
    for step in range(tl.cdiv(tl.cdiv(M, ROWS), P)):
        tile = program + step * P
        rows = (tile * ROWS + tl.arange(0, ROWS)).to(tl.int64)
        mask = (rows < M)[:, None] & (cols < N)[None, :]
        x = tl.load(x_ptr + rows[:, None] * stride_x + wide, mask=mask, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + rows[:, None] * stride_dy_row + wide * stride_dy_col, mask=mask, other=0.0).to(tl.float32)
        mean = tl.load(mean_ptr + rows, mask=rows < M, other=0.0)
        rstd = tl.load(rstd_ptr + rows, mask=rows < M, other=0.0)
        xhat, dx = tile_dx(dy, x, w, mean, rstd, N)
        tl.store(dx_ptr + rows[:, None] * stride_dx + wide, dx.to(dx_ptr.dtype.element_ty), mask=mask)
        dw += dy * xhat
        db += dy

    at = program.to(tl.int64) * N + cols
    tl.store(dw_partial_ptr + at, tl.sum(dw, axis=0), mask=cols < N)
    tl.store(db_partial_ptr + at, tl.sum(db, axis=0), mask=cols < N)
