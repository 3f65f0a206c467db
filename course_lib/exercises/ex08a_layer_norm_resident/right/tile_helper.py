"""A helper for a tile's mean, masks as factors, and type aliases above."""

from typing import TypeAlias

import triton
import triton.language as tl

Tile: TypeAlias = tl.tensor
Compute = tl.float32


@triton.jit
def mean_of_rows(tile, N):
    return (tl.sum(tile, axis=1) / N)[:, None]


@triton.jit
def layer_norm_resident_kernel(
    x_ptr, y_ptr, w_ptr, b_ptr, mean_ptr, rstd_ptr, stride_x, stride_y, M, N, eps, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    cols = tl.arange(0, BLOCK)[None, :]
    rows = (tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS))[:, None]
    row_inside, col_inside = rows < M, cols < N
    x = tl.load(x_ptr + rows * stride_x + cols, mask=row_inside & col_inside, other=0.0).to(Compute)
    mean = mean_of_rows(x, N)
    centred = (x - mean) * col_inside.to(Compute)
    rstd = 1 / tl.sqrt(mean_of_rows(centred * centred, N) + eps)
    w = tl.load(w_ptr + cols, mask=col_inside, other=0.0).to(Compute)
    b = tl.load(b_ptr + cols, mask=col_inside, other=0.0).to(Compute)
    tl.store(y_ptr + rows * stride_y + cols, (centred * rstd * w + b).to(y_ptr.dtype.element_ty), mask=row_inside & col_inside)
    tl.store(mean_ptr + rows, mean, mask=row_inside)
    tl.store(rstd_ptr + rows, rstd, mask=row_inside)
