"""A row of one block is kept and loaded once; a longer one is loaded twice. Helpers are kernels of their own."""

import triton
import triton.language as tl


@triton.jit
def take(ptr, cols, N):
    return tl.load(ptr + cols, mask=cols < N, other=0.0).to(tl.float32)


@triton.jit
def write(y_ptr, w_ptr, x, rstd, cols, N):
    tl.store(y_ptr + cols, (x * (rstd * take(w_ptr, cols, N))).to(y_ptr.dtype.element_ty), mask=cols < N)


@triton.jit
def rms_norm_blocked_kernel(x_ptr, y_ptr, w_ptr, rstd_ptr, stride_x, stride_y, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * stride_x
    y_ptr += row * stride_y
    cols = tl.arange(0, BLOCK)
    kept = take(x_ptr, cols, N)
    squares = kept * kept
    for start in range(BLOCK, N, BLOCK):
        x = take(x_ptr, start + cols, N)
        squares += x * x
    rstd = tl.rsqrt(tl.sum(squares, axis=0) / N + eps)
    tl.store(rstd_ptr + row, rstd)
    write(y_ptr, w_ptr, kept, rstd, cols, N)
    for start in range(BLOCK, N, BLOCK):
        write(y_ptr, w_ptr, take(x_ptr, start + cols, N), rstd, start + cols, N)
