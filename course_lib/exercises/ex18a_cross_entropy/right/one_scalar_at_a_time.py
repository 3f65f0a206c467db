"""Right but different: the maximum of each block in a scalar, the target's exponential apart from the others."""

import triton
import triton.language as tl


@triton.jit
def load_logits(x_ptr, start, N, BLOCK: tl.constexpr):
    cols = start + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
    return tl.where(cols < N, x, float("-inf"))


@triton.jit
def cross_entropy_kernel(x_ptr, target_ptr, loss_ptr, lse_ptr, stride_x, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_ptr = x_ptr + row * stride_x
    logit = tl.load(x_ptr + tl.load(target_ptr + row)).to(tl.float32)
    top = logit
    for start in range(0, N, BLOCK):
        top = max(top, tl.max(load_logits(x_ptr, start, N, BLOCK)))
    total = 0.0
    for start in range(0, N, BLOCK):
        total = total + tl.sum(tl.exp(load_logits(x_ptr, start, N, BLOCK) - top))
    tl.store(lse_ptr + row, tl.log(total) + top)
    tl.store(loss_ptr + row, tl.log(total) + (top - logit))


@triton.jit
def cross_entropy_dx_kernel(dloss_ptr, x_ptr, target_ptr, lse_ptr, dx_ptr, stride_x, stride_dx, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    target = tl.load(target_ptr + row)
    dloss = tl.load(dloss_ptr + row)
    for start in range(0, N, BLOCK):
        x = load_logits(x_ptr + row * stride_x, start, N, BLOCK)
        y = dloss * tl.exp(x - tl.load(lse_ptr + row))
        y = tl.where(tl.arange(0, BLOCK) == target - start, y - dloss, y)
        cols = start + tl.arange(0, BLOCK)
        tl.store(dx_ptr + row * stride_dx + cols, y.to(dx_ptr.dtype.element_ty), mask=cols < N)
