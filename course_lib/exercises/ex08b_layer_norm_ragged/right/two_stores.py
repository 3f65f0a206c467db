"""Right but different: y is stored in two parts, the row and the zeros behind it; statistics in fp64, on a tile that stands on its side."""

import triton
import triton.language as tl


@triton.jit
def layer_norm_ragged_kernel(
    x_ptr, y_ptr, w_ptr, b_ptr, lengths_ptr, mean_ptr, rstd_ptr, stride_x, stride_y, M, N, eps, ROWS: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    rows = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)[None, :]
    cols = tl.arange(0, BLOCK)[:, None]
    length = tl.load(lengths_ptr + rows, mask=rows < M, other=0)
    row = cols < length
    x = tl.load(x_ptr + rows * stride_x + cols, mask=row, other=0.0).to(tl.float64)
    n = tl.maximum(length, 1)
    mean = tl.sum(x, axis=0, keep_dims=True) / n
    away = (x - mean) * row
    rstd = 1.0 / tl.sqrt(tl.sum(away * away, axis=0, keep_dims=True) / n + eps)
    w = tl.load(w_ptr + cols, mask=cols < N, other=0.0)
    b = tl.load(b_ptr + cols, mask=cols < N, other=0.0)
    y = (away * rstd * w + b).to(tl.float32)
    tl.store(y_ptr + rows * stride_y + cols, y.to(y_ptr.dtype.element_ty), mask=row)
    tl.store(y_ptr + rows * stride_y + cols, tl.zeros_like(y).to(y_ptr.dtype.element_ty), mask=(cols >= length) & (cols < N) & (rows < M))
    tl.store(mean_ptr + rows, mean.to(tl.float32), mask=rows < M)
    tl.store(rstd_ptr + rows, rstd.to(tl.float32), mask=rows < M)
