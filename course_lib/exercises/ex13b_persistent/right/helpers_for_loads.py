"""Loads in a helper with a keyword, a host class around the launch, and constants from an enumeration of sizes."""

import itertools

import triton
import triton.language as tl

SIZES = list(itertools.accumulate([64, 64, 128], max))


class Persistent:
    programs = 132

    def __init__(self, rows=SIZES[0]):
        self.rows = rows


@triton.jit
def load_tile(ptr, at, mask):
    return tl.load(ptr + at, mask=mask, other=0.0).to(tl.float32)


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
    cols = tl.arange(0, BLOCK)[None, :].to(tl.int64)
    w = load_tile(w_ptr, cols, cols < N)
    dw = tl.zeros([ROWS, BLOCK], tl.float32)
    db = tl.zeros([ROWS, BLOCK], tl.float32)
    tile = tl.program_id(0)
    while tile * ROWS < M:
        rows = (tile * ROWS + tl.arange(0, ROWS)).to(tl.int64)[:, None]
        live = (rows < M) & (cols < N)
        x = load_tile(x_ptr, rows * stride_x + cols, live)
        dy = load_tile(dy_ptr, rows * stride_dy_row + cols * stride_dy_col, mask=live)
        rstd = load_tile(rstd_ptr, rows, rows < M)
        xhat = (x - load_tile(mean_ptr, rows, rows < M)) * rstd
        wdy = dy * w
        c1 = tl.sum(xhat * wdy, axis=1, keep_dims=True) / N
        c2 = tl.sum(wdy, axis=1, keep_dims=True) / N
        dx = (wdy - xhat * c1 - c2) * rstd
        tl.store(dx_ptr + rows * stride_dx + cols, dx.to(dx_ptr.dtype.element_ty), mask=live)
        dw += dy * xhat
        db += dy
        tile += tl.num_programs(0)
    at = tl.program_id(0).to(tl.int64) * N + tl.arange(0, BLOCK)
    tl.store(dw_partial_ptr + at, tl.sum(dw, axis=0), mask=tl.arange(0, BLOCK) < N)
    tl.store(db_partial_ptr + at, tl.sum(db, axis=0), mask=tl.arange(0, BLOCK) < N)
