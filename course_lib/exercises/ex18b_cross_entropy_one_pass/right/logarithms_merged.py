"""Right but different: each block becomes its own lse, and two of them are merged as logarithms; the target passes by."""

import triton
import triton.language as tl


@triton.jit
def add_logarithms(a, b):
    return tl.where(a == b, a + 0.6931471805599453, tl.maximum(a, b) + tl.log(1.0 + tl.exp(-tl.abs(a - b))))


@triton.jit
def cross_entropy_one_pass_kernel(x_ptr, target_ptr, loss_ptr, lse_ptr, stride_x, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    target = tl.load(target_ptr + row)
    lse = float("-inf")
    logit = 0.0
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * stride_x + cols, mask=cols < N, other=float("-inf")).to(tl.float32)
        m = tl.max(x, axis=0)
        own = m + tl.log(tl.sum(tl.exp(x - tl.where(m == float("-inf"), 0.0, m)), axis=0))
        lse = add_logarithms(lse, own)
        logit += tl.sum(tl.where(cols == target, x, 0.0), axis=0)
    tl.store(loss_ptr + row, lse - logit)
    tl.store(lse_ptr + row, lse)
