"""Helpers, one of them returns a tuple; an annotation; keyword arguments in another order."""

import triton
import triton.language as tl


@triton.jit
def at(base, cols, mask):
    return tl.load(base + cols, mask, 0.0)


@triton.jit
def statistics(x, mask, N, eps):
    mean = tl.sum(x) / N
    deviation = tl.where(mask, x, mean) - mean
    return deviation, tl.rsqrt(eps + tl.sum(deviation * deviation) / N)


@triton.jit
def layer_norm_kernel(
    x_ptr, y_ptr,           # (M, N), fp32
    w_ptr, b_ptr,           # (N,), fp32
    stride_x, stride_y,     # elements between rows
    N, eps,
    BLOCK: tl.constexpr,    # power of two >= N
):
    row = tl.program_id(axis=0)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    pair = statistics(at(x_ptr + row * stride_x, cols, mask), mask, eps=eps, N=N)
    deviation, rstd = pair
    half: tl.constexpr = BLOCK // 2
    tl.static_assert(half <= BLOCK)
    w, b = at(w_ptr, cols, mask), at(b_ptr, cols, mask)
    tl.store(mask=mask, pointer=y_ptr + row * stride_y + cols, value=b + rstd * (w * deviation))
