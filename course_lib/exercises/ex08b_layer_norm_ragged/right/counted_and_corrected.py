"""Right but different: the length is counted from the mask, and the mean is corrected by the mean of the deviations."""

import triton
import triton.language as tl


@triton.jit
def mean_of(values, count):
    return tl.expand_dims(tl.sum(values, axis=1) / count, 1)


@triton.jit
def layer_norm_ragged_kernel(
    x_ptr, y_ptr, w_ptr, b_ptr, lengths_ptr, mean_ptr, rstd_ptr, stride_x, stride_y, M, N, eps, ROWS: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    first = tl.program_id(0) * ROWS
    if first >= M:
        return
    rows = (first + tl.arange(0, ROWS)).to(tl.int64)
    row_live = rows < M
    cols = tl.arange(0, BLOCK)
    live = (cols[None, :] < tl.load(lengths_ptr + rows, mask=row_live, other=1)[:, None]) & row_live[:, None]
    count = tl.maximum(tl.sum(live.to(tl.float32), axis=1), 1.0)
    x = tl.where(live, tl.load(x_ptr + rows[:, None] * stride_x + cols[None, :], mask=live), 0.0).to(tl.float32)
    mean = mean_of(x, count)
    mean += mean_of(tl.where(live, x - mean, 0.0), count)
    away = tl.where(live, x - mean, 0.0)
    rstd = tl.rsqrt(mean_of(away * away, count) + eps)
    w = tl.load(w_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
    b = tl.load(b_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
    y = tl.where(live, tl.fma(away * rstd, tl.broadcast_to(w[None, :], (ROWS, BLOCK)), tl.broadcast_to(b[None, :], (ROWS, BLOCK))), 0.0)
    tl.store(y_ptr + rows[:, None] * stride_y + cols[None, :], y.to(y_ptr.dtype.element_ty), mask=row_live[:, None] & (cols < N)[None, :])
    tl.store(mean_ptr + rows[:, None], mean, mask=row_live[:, None])
    tl.store(rstd_ptr + rows[:, None], rstd, mask=row_live[:, None])
