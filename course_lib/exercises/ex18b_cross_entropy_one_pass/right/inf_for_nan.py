"""Every NaN becomes an Inf: the exercise allows either."""

import triton
import triton.language as tl


@triton.jit
def cross_entropy_one_pass_kernel(
    x_ptr, target_ptr, loss_ptr, lse_ptr,
    stride_x,
    N,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    x_row = x_ptr + row * stride_x
    m = float("-inf")
    s = 0.0
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_row + cols, mask=cols < N, other=float("-inf")).to(tl.float32)
        new = tl.maximum(m, tl.max(x, axis=0))
        shift = tl.where(new == float("-inf"), 0.0, new)
        s = s * tl.exp(m - shift) + tl.sum(tl.exp(x - shift), axis=0)
        m = new
    lse = m + tl.log(s)
    logit = tl.load(x_row + tl.load(target_ptr + row)).to(tl.float32)
    loss = lse - logit
    tl.store(loss_ptr + row, tl.where(loss == loss, loss, float("inf")))
    tl.store(lse_ptr + row, tl.where(lse == lse, lse, float("inf")))
