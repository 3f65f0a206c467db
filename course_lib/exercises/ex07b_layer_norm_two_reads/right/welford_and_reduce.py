"""Welford in the lanes and a merge by tl.reduce; the second sweep runs from the last block to the first."""

import triton
import triton.language as tl


@triton.jit
def merge(n_a, mean_a, M2_a, n_b, mean_b, M2_b):
    n = n_a + n_b
    share = n_b / tl.maximum(n, 1.0)
    d = mean_b - mean_a
    return n, mean_a + d * share, M2_a + M2_b + d * d * n_a * share


@triton.jit
def layer_norm_two_reads_kernel(x_ptr, y_ptr, w_ptr, b_ptr, mean_ptr, rstd_ptr, stride_x, stride_y, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    count = tl.zeros([BLOCK], tl.float32)
    means = tl.zeros([BLOCK], tl.float32)
    M2s = tl.zeros([BLOCK], tl.float32)
    for start in range(0, N, BLOCK):
        mask = start + lanes < N
        x = tl.load(x_ptr + row * stride_x + start + lanes, mask=mask, other=0.0).to(tl.float32)
        count += mask.to(tl.float32)
        d = tl.where(mask, x - means, 0.0)
        means += d / tl.maximum(count, 1.0)
        M2s += d * (x - means)
    _, mean, M2 = tl.reduce((count, means, M2s), 0, merge)
    rstd = tl.rsqrt(M2 / N + eps)
    tl.store(rstd_ptr + row, rstd)
    tl.store(mean_ptr + row, mean)
    blocks = tl.cdiv(N, BLOCK)
    for k in range(blocks):
        cols = (blocks - 1 - k) * BLOCK + lanes
        x = tl.load(x_ptr + row * stride_x + cols, mask=cols < N, other=0.0).to(tl.float32)
        w = tl.load(w_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
        b = tl.load(b_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
        tl.store(y_ptr + row * stride_y + cols, ((x - mean) * rstd * w + b).to(y_ptr.dtype.element_ty), mask=cols < N)
