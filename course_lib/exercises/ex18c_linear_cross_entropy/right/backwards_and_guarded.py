"""Right but different: the blocks of columns from the last to the first, and a first block of its own before the loop's merge."""

import triton
import triton.language as tl


@triton.jit
def linear_cross_entropy_kernel(
    h_ptr, w_ptr, target_ptr, loss_ptr, lse_ptr, stride_h, stride_w, scale, M, N, K, ROWS: tl.constexpr, BLOCK: tl.constexpr, BLOCK_K: tl.constexpr
):  # fmt: skip
    first_row = tl.program_id(0).to(tl.int64) * ROWS
    rows = first_row + tl.arange(0, ROWS)
    h_ptr += first_row * stride_h
    blocks = tl.cdiv(N, BLOCK)
    target = tl.load(target_ptr + rows, mask=rows < M, other=N)
    m = tl.zeros((ROWS,), tl.float32)
    s = tl.zeros((ROWS,), tl.float32)
    logit = tl.zeros((ROWS,), tl.float32)
    for i in range(blocks):
        cols = (blocks - 1 - i) * BLOCK + tl.arange(0, BLOCK)
        wide = cols.to(tl.int64)
        x = tl.zeros((ROWS, BLOCK), tl.float32)
        for step in range(tl.cdiv(K, BLOCK_K)):
            k = step * BLOCK_K + tl.arange(0, BLOCK_K)
            h = tl.load(
                h_ptr + tl.arange(0, ROWS).to(tl.int64)[:, None] * stride_h + k, mask=(rows[:, None] < M) & (k < K)[None, :], other=0.0
            )
            w = tl.load(w_ptr + wide[:, None] * stride_w + k, mask=(cols[:, None] < N) & (k < K)[None, :], other=0.0)
            x += tl.sum(h.to(tl.float32)[:, None, :] * w.to(tl.float32)[None, :, :], axis=-1)
        x *= scale
        top = tl.max(tl.where(cols[None, :] < N, x, -float("inf")), axis=1)
        new = top if i == 0 else tl.maximum(m, top)
        terms = tl.where(cols[None, :] < N, tl.exp(x - new[:, None]), 0.0)
        s = (0.0 * s if i == 0 else s * tl.exp(m - new)) + tl.sum(terms, axis=1)
        logit += tl.sum(x * (cols[None, :] == target[:, None]), axis=1)
        m = new
    lse = m + tl.log(s)
    tl.store(lse_ptr + rows, lse, mask=rows < M)
    tl.store(loss_ptr + rows, lse - logit, mask=rows < M)
