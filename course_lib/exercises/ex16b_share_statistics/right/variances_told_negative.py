"""Right but different: the variance of a chunk is told with a minus sign, never 0, and merged by a helper."""

import triton
import triton.language as tl


@triton.jit
def halves(word):
    return (word >> 32).to(tl.int32).to(tl.float32, bitcast=True), word.to(tl.int32).to(tl.float32, bitcast=True)


@triton.jit
def merge(n_a, mean_a, M2_a, n_b, mean_b, M2_b):
    n = n_a + n_b
    d = mean_b - mean_a
    return n, mean_a + d * (n_b / n), M2_a + M2_b + d * d * (n_a * (n_b / n))


@triton.jit
def share_statistics_kernel(
    x_ptr, mean_ptr, rstd_ptr, word_ptr, ticket_ptr, stride_x, N, eps, CHUNKS: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    ticket = tl.atomic_add(ticket_ptr, 1)
    row = (ticket // CHUNKS).to(tl.int64)
    start = ticket % CHUNKS * BLOCK
    cols = start + tl.arange(0, BLOCK)
    live = cols < N
    x = tl.load(x_ptr + row * stride_x + cols, mask=live, other=0.0).to(tl.float32)
    n = tl.sum(live.to(tl.float32))
    mean = tl.sum(x) / n
    var = tl.sum(tl.where(live, (x - mean) * (x - mean), 0.0)) / n
    told = (-var - 1e-30).to(tl.int32, bitcast=True).to(tl.int64) << 32 | (mean.to(tl.int32, bitcast=True).to(tl.int64) & 0xFFFFFFFF)
    told = tl.where(var == var, told, -1)  # a NaN may have any sign
    tl.atomic_xchg(word_ptr + ticket, told, sem="relaxed")
    word = tl.load(word_ptr + row * CHUNKS, volatile=True)
    while word >= 0:
        word = tl.load(word_ptr + row * CHUNKS, volatile=True)
    minus, mean = halves(word)
    n = tl.minimum(N, BLOCK).to(tl.float32)
    M2 = -minus * n
    for k in range(1, CHUNKS):
        word = tl.load(word_ptr + row * CHUNKS + k, volatile=True)
        while word >= 0:
            word = tl.load(word_ptr + row * CHUNKS + k, volatile=True)
        minus, its_mean = halves(word)
        its_n = tl.minimum(N - k * BLOCK, BLOCK).to(tl.float32)
        n, mean, M2 = merge(n, mean, M2, its_n, its_mean, -minus * its_n)
    tl.store(mean_ptr + ticket, mean)
    tl.store(rstd_ptr + ticket, tl.rsqrt(M2 / N + eps))
