"""Block sums as numbers in fp64, rows from the last program's on, and the root taken of the sum before it is divided."""

import triton
import triton.language as tl


@triton.jit
def rms_norm_blocked_kernel(x_ptr, y_ptr, w_ptr, rstd_ptr, stride_x, stride_y, N, eps, BLOCK: tl.constexpr):
    row = (tl.num_programs(0) - 1 - tl.program_id(0)).to(tl.int64)
    total = tl.full([], 0.0, dtype=tl.float64)
    for block in range(tl.cdiv(N, BLOCK)):
        cols = block * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * stride_x + cols, mask=cols < N, other=0.0).to(tl.float64)
        total += tl.sum(x * x, axis=0)
    n = tl.cast(N, tl.float64)
    rstd = (tl.sqrt(n) / tl.sqrt(total + n * eps)).to(tl.float32)
    for block in range(tl.cdiv(N, BLOCK)):
        cols = block * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * stride_x + cols, mask=cols < N, other=0.0).to(tl.float32)
        w = tl.load(w_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
        tl.store(y_ptr + row * stride_y + cols, (w * rstd * x).to(y_ptr.dtype.element_ty), mask=cols < N)
    tl.store(rstd_ptr + row, rstd)
