"""Right but different: the lanes merged in pairs by tl.reduce, with the merge of 05b."""

import triton
import triton.language as tl


@triton.jit
def merge(n_a, mean_a, M2_a, n_b, mean_b, M2_b):
    n = n_a + n_b
    share = n_b / tl.maximum(n, 1.0)
    d = mean_b - mean_a
    return n, mean_a + d * share, M2_a + M2_b + d * d * n_a * share


@triton.jit
def merge_kernel(means_ptr, M2s_ptr, mean_ptr, rstd_ptr, stride, length, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    lanes = tl.arange(0, BLOCK)
    there = lanes < tl.cdiv(N, length)
    means = tl.load(means_ptr + row * stride + lanes, mask=there, other=0.0)
    M2s = tl.load(M2s_ptr + row * stride + lanes, mask=there, other=0.0)
    last = N - (tl.cdiv(N, length) - 1) * length
    counts = tl.where(there, tl.where((lanes + 1) * length > N, last, length), 0).to(tl.float32)
    n, mean, M2 = tl.reduce((counts, means, M2s), 0, merge)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, tl.rsqrt(M2 / n + eps))
