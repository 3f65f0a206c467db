"""The tile is loaded on its side and turned by tl.trans."""

import triton
import triton.language as tl


@triton.jit
def layer_norm_resident_kernel(
    x_ptr, y_ptr, w_ptr, b_ptr, mean_ptr, rstd_ptr,
    stride_x, stride_y,     # elements between rows
    M, N, eps,
    ROWS: tl.constexpr,     # rows a program
    BLOCK: tl.constexpr,    # power of two >= N
):
    cols = tl.arange(0, BLOCK)
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    mask = (rows < M)[:, None] & (cols < N)[None, :]

    turned = tl.load(x_ptr + rows[None, :] * stride_x + cols[:, None], mask=tl.trans(mask), other=0.0)
    x = tl.trans(turned).to(tl.float32)
    mean = tl.sum(x, axis=1) / N
    deviation = tl.where(mask, x - mean[:, None], 0.0)
    rstd = tl.rsqrt(tl.sum(deviation * deviation, axis=1) / N + eps)

    w = tl.load(w_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
    b = tl.load(b_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
    y = deviation * rstd[:, None] * w[None, :] + b[None, :]
    tl.store(y_ptr + rows[:, None] * stride_y + cols[None, :], y.to(y_ptr.dtype.element_ty), mask=mask)
    tl.store(mean_ptr + rows, mean, mask=rows < M)
    tl.store(rstd_ptr + rows, rstd, mask=rows < M)
