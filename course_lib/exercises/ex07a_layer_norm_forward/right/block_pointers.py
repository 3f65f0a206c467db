"""Block pointers that advance along the row, in a kernel that is compiled with settings."""

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["N"])
def layer_norm_blocked_kernel(x_ptr, y_ptr, w_ptr, b_ptr, mean_ptr, rstd_ptr, stride_x, stride_y, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    begin = tl.make_block_ptr(x_ptr + row * stride_x, shape=[N], strides=[1], offsets=[0], block_shape=[BLOCK], order=[0])
    total = tl.zeros([BLOCK], tl.float32)
    at = begin
    for _ in range(0, N, BLOCK):
        total += tl.load(at, boundary_check=[0], padding_option="zero").to(tl.float32)
        at = tl.advance(at, [BLOCK])
    mean = tl.sum(total, axis=0) / N
    squares = tl.zeros([BLOCK], tl.float32)
    at = begin
    for start in range(0, N, BLOCK):
        x = tl.load(at, boundary_check=[0], padding_option="zero").to(tl.float32)
        deviation = (x - mean) * (start + tl.arange(0, BLOCK) < N)
        squares += deviation * deviation
        at = tl.advance(at, [BLOCK])
    rstd = tl.rsqrt(tl.sum(squares, axis=0) / N + eps)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * stride_x + cols, mask=cols < N, other=0.0).to(tl.float32)
        w = tl.load(w_ptr + cols, mask=cols < N).to(tl.float32)
        b = tl.load(b_ptr + cols, mask=cols < N).to(tl.float32)
        tl.store(y_ptr + row * stride_y + cols, ((x - mean) * rstd * w + b).to(y_ptr.dtype.element_ty), mask=cols < N)
