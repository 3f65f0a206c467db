"""Right but different: each lane of each row has a maximum and a sum of its own, merged after the last block."""

import triton
import triton.language as tl


@triton.jit
def make_logits(
    h_ptr, w_ptr, rows, cols, stride_h, stride_w, scale, M, N, K, ROWS: tl.constexpr, BLOCK: tl.constexpr, BLOCK_K: tl.constexpr
):
    x = tl.zeros((ROWS, BLOCK), dtype=tl.float32)
    for first in range(0, K, BLOCK_K):
        k = first + tl.arange(0, BLOCK_K)[None, :]
        h = tl.load(h_ptr + rows[:, None] * stride_h + k, mask=(rows[:, None] < M) & (k < K), other=0.0).to(tl.float32)
        w = tl.load(w_ptr + cols[:, None] * stride_w + k, mask=(cols[:, None] < N) & (k < K), other=0.0).to(tl.float32)
        x += tl.sum(tl.expand_dims(h, 1) * tl.expand_dims(w, 0), axis=2)
    return x * scale


@triton.jit
def linear_cross_entropy_kernel(
    h_ptr, w_ptr, target_ptr, loss_ptr, lse_ptr, stride_h, stride_w, scale, M, N, K, ROWS: tl.constexpr, BLOCK: tl.constexpr, BLOCK_K: tl.constexpr
):  # fmt: skip
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS).to(tl.int64)
    target = tl.load(target_ptr + rows, mask=rows < M, other=0)
    m = tl.full((ROWS, BLOCK), -1e38, tl.float32)
    s = tl.zeros((ROWS, BLOCK), tl.float32)
    own = tl.zeros((ROWS, BLOCK), tl.float32)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK).to(tl.int64)
        x = make_logits(h_ptr, w_ptr, rows, cols, stride_h, stride_w, scale, M, N, K, ROWS, BLOCK, BLOCK_K)
        x = tl.where(cols[None, :] < N, x, -float("inf"))
        own = tl.where(cols[None, :] == target[:, None], x, own)
        new = tl.maximum(m, x)
        s = s * tl.exp(m - new) + tl.exp(x - new)
        m = new
    top = tl.max(m, axis=1)
    lse = top + tl.log(tl.sum(s * tl.exp(m - top[:, None]), axis=1))
    tl.store(lse_ptr + rows, lse, mask=rows < M)
    tl.store(loss_ptr + rows, lse - tl.sum(own, axis=1), mask=rows < M)
