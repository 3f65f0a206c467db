"""Right but different: the number of this program's tiles first, sums in fp64, and the pipelined tl.range."""

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
    program = tl.program_id(0)
    programs = tl.num_programs(0)
    cols = tl.arange(0, BLOCK)
    wide = cols.to(tl.int64)[None, :]
    w = tl.load(w_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)[None, :]
    dw = tl.zeros([ROWS, BLOCK], dtype=tl.float64)
    db = tl.zeros([ROWS, BLOCK], dtype=tl.float64)
    tiles = tl.cdiv(tl.maximum(tl.cdiv(M, ROWS) - program, 0), programs)
    for i in tl.range(0, tiles, num_stages=2):
        rows = ((i * programs + program) * ROWS + tl.arange(0, ROWS)).to(tl.int64)[:, None]
        mask = (rows < M) & (wide < N)
        x = tl.load(x_ptr + rows * stride_x + wide, mask=mask, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + rows * stride_dy_row + wide * stride_dy_col, mask=mask, other=0.0).to(tl.float32)
        xhat = (x - tl.load(mean_ptr + rows, mask=rows < M, other=0.0)) * tl.load(rstd_ptr + rows, mask=rows < M, other=0.0)
        rstd = tl.load(rstd_ptr + rows, mask=rows < M, other=0.0)
        wdy = w * dy
        c1 = tl.sum(xhat * wdy, axis=1, keep_dims=True) / N
        c2 = tl.sum(wdy, axis=1, keep_dims=True) / N
        dx = (wdy - (xhat * c1 + c2)) * rstd
        tl.store(dx_ptr + rows * stride_dx + wide, dx.to(dx_ptr.dtype.element_ty), mask=mask)
        dw += (dy * xhat).to(tl.float64)
        db += dy.to(tl.float64)
    at = program.to(tl.int64) * N + cols
    tl.store(dw_partial_ptr + at, tl.sum(dw, axis=0).to(tl.float32), mask=cols < N)
    tl.store(db_partial_ptr + at, tl.sum(db, axis=0).to(tl.float32), mask=cols < N)
