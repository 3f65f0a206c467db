"""Right but different: one number of K at a time, as an outer product; the scale goes into h, and the target's mark is a product."""

import triton
import triton.language as tl


@triton.jit
def linear_cross_entropy_kernel(
    h_ptr, w_ptr, target_ptr, loss_ptr, lse_ptr, stride_h, stride_w, scale, M, N, K, ROWS: tl.constexpr, BLOCK: tl.constexpr, BLOCK_K: tl.constexpr
):  # fmt: skip
    rows = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    live = rows < M
    target = tl.load(target_ptr + rows, mask=live, other=-1)
    m = tl.full((ROWS,), -1e38, tl.float32)
    s = tl.zeros((ROWS,), tl.float32)
    logit = tl.zeros((ROWS,), tl.float32)
    for start in range(0, N, BLOCK):
        cols = (start + tl.arange(0, BLOCK)).to(tl.int64)
        x = tl.zeros((ROWS, BLOCK), tl.float32)
        for k in range(0, K):
            h = tl.load(h_ptr + rows * stride_h + k, mask=live, other=0.0).to(tl.float32) * scale
            w = tl.load(w_ptr + cols * stride_w + k, mask=cols < N, other=0.0).to(tl.float32)
            x = tl.fma(tl.broadcast_to(h[:, None], (ROWS, BLOCK)), tl.broadcast_to(w[None, :], (ROWS, BLOCK)), x)
        x = tl.where((cols < N)[None, :], x, -float("inf"))
        here = (cols[None, :] == target[:, None]) & (cols < N)[None, :]
        logit += tl.sum(tl.where(here, x, 0.0), axis=1)
        new = tl.maximum(m, tl.max(x, axis=1))
        s = tl.sum(tl.exp(x - new[:, None]), axis=1) + tl.exp(m - new) * s
        m = new
    tl.store(lse_ptr + rows, tl.log(s) + m, mask=live)
    tl.store(loss_ptr + rows, tl.log(s) + (m - logit), mask=live)
