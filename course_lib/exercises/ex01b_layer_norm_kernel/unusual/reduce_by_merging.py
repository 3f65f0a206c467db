"""Count, mean and M2 of every lane merged by tl.reduce (Chan); a lane of the padding has the count 0."""

import triton
import triton.language as tl


@triton.jit
def merge(n_a, mean_a, m2_a, n_b, mean_b, m2_b):
    n = n_a + n_b
    share = tl.where(n > 0.0, n_b / tl.maximum(n, 1.0), 0.0)
    delta = mean_b - mean_a
    return n, mean_a + delta * share, m2_a + m2_b + delta * delta * n_a * share


@triton.jit
def layer_norm_kernel(
    x_ptr, y_ptr,           # (M, N), fp32
    w_ptr, b_ptr,           # (N,), fp32
    stride_x, stride_y,     # elements between rows
    N, eps,
    BLOCK: tl.constexpr,    # power of two >= N
):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * stride_x + cols, mask=mask, other=0.0)
    n, mean, m2 = tl.reduce((mask.to(tl.float32), x, tl.zeros_like(x)), 0, merge)

    rstd = tl.rsqrt(m2 / n + eps)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0)
    b = tl.load(b_ptr + cols, mask=mask, other=0.0)
    tl.store(y_ptr + row * stride_y + cols, (x - mean) * rstd * w + b, mask=mask)
