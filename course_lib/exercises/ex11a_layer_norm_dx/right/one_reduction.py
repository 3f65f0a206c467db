"""Right but different: both sums in one tl.reduce over a pair, w applied to rstd's side, rows and columns masked apart."""

import triton
import triton.language as tl


@triton.jit
def add_pairs(a, b, other_a, other_b):
    return a + other_a, b + other_b


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
    rows = (tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS))[:, None]
    cols = tl.arange(0, BLOCK).to(tl.int64)[None, :]
    live = (rows < M) & (cols < N)
    mean = tl.load(mean_ptr + rows, mask=rows < M, other=0.0)
    rstd = tl.load(rstd_ptr + rows, mask=rows < M, other=0.0)
    w = tl.load(w_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
    dy = tl.load(dy_ptr + rows * stride_dy_row + cols * stride_dy_col, mask=live, other=0.0).to(tl.float32)
    x = tl.load(x_ptr + rows * stride_x + cols, mask=live, other=0.0).to(tl.float32)
    deviation = tl.where(live, x - mean, 0.0)
    pull = dy * w * rstd
    products, total = tl.reduce((pull * deviation, pull), 1, add_pairs)
    along = products[:, None] / N * rstd * rstd
    dx = pull - total[:, None] / N - deviation * along
    tl.store(dx_ptr + rows * stride_dx + cols, dx.to(dx_ptr.dtype.element_ty), mask=live)
