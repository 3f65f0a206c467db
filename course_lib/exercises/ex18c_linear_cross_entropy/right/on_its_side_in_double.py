"""Right but different: the tile of logits stands on its side, (BLOCK, ROWS), and everything is fp64."""

import triton
import triton.language as tl


@triton.jit
def linear_cross_entropy_kernel(
    h_ptr, w_ptr, target_ptr, loss_ptr, lse_ptr, stride_h, stride_w, scale, M, N, K, ROWS: tl.constexpr, BLOCK: tl.constexpr, BLOCK_K: tl.constexpr
):  # fmt: skip
    row = (tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS))[None, :]
    target = tl.load(target_ptr + row, mask=row < M, other=0)
    m = tl.full((1, ROWS), float("-inf"), tl.float64)
    s = tl.zeros((1, ROWS), tl.float64)
    found = tl.zeros((1, ROWS), tl.float64)
    for start in range(0, N, BLOCK):
        col = (start + tl.arange(0, BLOCK).to(tl.int64))[:, None]
        x = tl.zeros((BLOCK, ROWS), tl.float64)
        for first in range(0, K, BLOCK_K):
            k = first + tl.arange(0, BLOCK_K)
            w = tl.load(w_ptr + col * stride_w + k[None, :], mask=(col < N) & (k < K)[None, :], other=0.0).to(tl.float64)
            h = tl.load(h_ptr + row * stride_h + k[:, None], mask=(row < M) & (k < K)[:, None], other=0.0).to(tl.float64)
            x += tl.sum(w[:, :, None] * h[None, :, :], axis=1)
        x = tl.where(col < N, x * scale, float("-inf"))
        found += tl.sum(tl.where(col == target, x, 0.0), axis=0, keep_dims=True)
        new = tl.maximum(m, tl.max(x, axis=0, keep_dims=True))
        s = s * tl.exp(m - new) + tl.sum(tl.exp(x - new), axis=0, keep_dims=True)
        m = new
    lse = m + tl.log(s)
    tl.store(lse_ptr + row, lse.to(tl.float32), mask=row < M)
    tl.store(loss_ptr + row, (lse - found).to(tl.float32), mask=row < M)
