"""Statistics in one sweep by merging blocks; two sweeps of x and not three."""

import triton
import triton.language as tl


@triton.jit
def layer_norm_blocked_kernel(
    x_ptr, y_ptr, w_ptr, b_ptr, mean_ptr, rstd_ptr, stride_x, stride_y, N, eps, BLOCK: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    count = 0.0
    mean = 0.0
    M2 = 0.0
    for start in range(0, N, BLOCK):
        mask = start + lanes < N
        x = tl.load(x_ptr + row * stride_x + start + lanes, mask=mask, other=0.0).to(tl.float32)
        n = tl.sum(tl.where(mask, 1.0, 0.0), axis=0)
        m = tl.sum(x, axis=0) / n
        d = tl.where(mask, x - m, 0.0)
        step = m - mean
        M2 += tl.sum(d * d, axis=0) + step * step * count * (n / (count + n))
        mean += step * (n / (count + n))
        count += n
    rstd = tl.rsqrt(M2 / N + eps)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)
    for start in tl.range(0, N, BLOCK):
        mask = start + lanes < N
        x = tl.load(x_ptr + row * stride_x + start + lanes, mask=mask, other=0.0).to(tl.float32)
        w = tl.load(w_ptr + start + lanes, mask=mask, other=0.0).to(tl.float32)
        b = tl.load(b_ptr + start + lanes, mask=mask, other=0.0).to(tl.float32)
        tl.store(y_ptr + row * stride_y + start + lanes, ((x - mean) * rstd * w + b).to(y_ptr.dtype.element_ty), mask=mask)
