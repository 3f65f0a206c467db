"""Right but different: one sweep for both statistics, shifted by the mean of the first block, so that nothing cancels."""

import triton
import triton.language as tl


@triton.jit
def layer_norm_blocked_kernel(x_ptr, y_ptr, w_ptr, b_ptr, mean_ptr, rstd_ptr, stride_x, stride_y, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    first = tl.load(x_ptr + row * stride_x + cols, mask=cols < N, other=0.0).to(tl.float32)
    shift = tl.sum(first, axis=0) / tl.minimum(N, BLOCK)
    s = tl.zeros([BLOCK], dtype=tl.float32)
    q = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        d = tl.where(cols < N, tl.load(x_ptr + row * stride_x + cols, mask=cols < N, other=0.0).to(tl.float32) - shift, 0.0)
        s += d
        q += d * d
    offset = tl.sum(s, axis=0) / N
    var = tl.maximum(tl.sum(q, axis=0) / N - offset * offset, 0.0)
    mean = shift + offset
    rstd = 1 / tl.sqrt(var + eps)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * stride_x + cols, mask=cols < N, other=0.0).to(tl.float32)
        w = tl.load(w_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
        b = tl.load(b_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
        tl.store(y_ptr + row * stride_y + cols, ((x - mean) * (rstd * w) + b).to(y_ptr.dtype.element_ty), mask=cols < N)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)
