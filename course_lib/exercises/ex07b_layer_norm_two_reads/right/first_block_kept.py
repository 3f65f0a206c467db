"""The first block is kept and loaded once; the others are merged one by one, in a helper, and loaded again."""

import triton
import triton.language as tl


@triton.jit
def measure(ptr, cols, N, count):
    x = tl.load(ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / count
    d = tl.where(cols < N, x - mean, 0.0)
    return x, mean, tl.sum(d * d, axis=0)


@triton.jit
def write(y_ptr, w_ptr, b_ptr, x, mean, rstd, cols, N):
    w = tl.load(w_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
    b = tl.load(b_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
    tl.store(y_ptr + cols, (b + w * (rstd * (x - mean))).to(y_ptr.dtype.element_ty), mask=cols < N)


@triton.jit
def layer_norm_two_reads_kernel(x_ptr, y_ptr, w_ptr, b_ptr, mean_ptr, rstd_ptr, stride_x, stride_y, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * stride_x
    y_ptr += row * stride_y
    lanes = tl.arange(0, BLOCK)
    kept, mean, M2 = measure(x_ptr, lanes, N, tl.minimum(N, BLOCK))
    for start in range(BLOCK, N, BLOCK):
        count = tl.minimum(N - start, BLOCK)
        _, other, within = measure(x_ptr, start + lanes, N, count)
        seen = start + count
        M2 += within + (other - mean) * (other - mean) * (start * (count / seen))
        mean = mean * (start / seen) + other * (count / seen)
    rstd = tl.rsqrt(M2 / N + eps)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)
    write(y_ptr, w_ptr, b_ptr, kept, mean, rstd, lanes, N)
    for start in range(BLOCK, N, BLOCK):
        cols = start + lanes
        write(y_ptr, w_ptr, b_ptr, tl.load(x_ptr + cols, mask=cols < N, other=0.0).to(tl.float32), mean, rstd, cols, N)
