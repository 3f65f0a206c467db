"""Right but different: w and b are loaded for every row with its mask, so y is 0 behind it by itself."""

import triton
import triton.language as tl


@triton.jit
def layer_norm_ragged_kernel(
    x_ptr, y_ptr, w_ptr, b_ptr, lengths_ptr, mean_ptr, rstd_ptr, stride_x, stride_y, M, N, eps, ROWS: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    cols = tl.arange(0, BLOCK)
    lengths = tl.load(lengths_ptr + rows, mask=rows < M, other=0)
    there = cols[None, :] < lengths[:, None]
    table = tl.broadcast_to(cols[None, :], (ROWS, BLOCK))
    x = tl.load(x_ptr + rows[:, None] * stride_x + table, mask=there, other=0.0).to(tl.float32)
    share = 1.0 / tl.maximum(lengths, 1).to(tl.float32)
    mean = tl.sum(x, axis=1) * share
    x = tl.where(there, x - mean[:, None], 0.0)
    rstd = tl.rsqrt(tl.sum(x * x, axis=1) * share + eps)
    y = x * rstd[:, None] * tl.load(w_ptr + table, mask=there, other=0.0) + tl.load(b_ptr + table, mask=there, other=0.0)
    y = tl.where(there, y, 0.0)
    tl.store(y_ptr + rows[:, None] * stride_y + table, y.to(y_ptr.dtype.element_ty), mask=(table < N) & (rows < M)[:, None])
    tl.store(mean_ptr + rows, mean, mask=rows < M)
    tl.store(rstd_ptr + rows, rstd, mask=rows < M)
