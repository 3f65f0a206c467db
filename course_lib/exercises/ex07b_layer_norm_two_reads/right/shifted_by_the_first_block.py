"""Right but different: one sweep for both statistics, shifted by the mean of the first block.

One element far out moves this mean by its distance over BLOCK. That costs few digits unless a row has hundreds of small blocks.
"""

import triton
import triton.language as tl


@triton.jit
def layer_norm_two_reads_kernel(x_ptr, y_ptr, w_ptr, b_ptr, mean_ptr, rstd_ptr, stride_x, stride_y, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    here = tl.load(x_ptr + row * stride_x + cols, mask=cols < N, other=0.0).to(tl.float32)
    shift = tl.sum(here, axis=0) / tl.minimum(N, BLOCK)
    d = tl.where(cols < N, here - shift, 0.0)
    s = d
    q = d * d
    for start in range(BLOCK, N, BLOCK):
        x = tl.load(x_ptr + row * stride_x + start + cols, mask=start + cols < N, other=0.0).to(tl.float32)
        d = tl.where(start + cols < N, x - shift, 0.0)
        s += d
        q += d * d
    offset = tl.sum(s, axis=0) / N
    var = tl.maximum(tl.sum(q, axis=0) / N - offset * offset, 0.0)
    mean = shift + offset
    rstd = 1 / tl.sqrt(var + eps)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)
    for start in range(0, N, BLOCK):
        mask = start + cols < N
        x = tl.load(x_ptr + row * stride_x + start + cols, mask=mask, other=0.0).to(tl.float32)
        w = tl.load(w_ptr + start + cols, mask=mask, other=0.0).to(tl.float32)
        b = tl.load(b_ptr + start + cols, mask=mask, other=0.0).to(tl.float32)
        tl.store(y_ptr + row * stride_y + start + cols, ((x - mean) * (rstd * w) + b).to(y_ptr.dtype.element_ty), mask=mask)
