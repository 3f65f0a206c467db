"""Right but different: words set by compare-and-swap and asked for by atomic_or; the merge goes from the last chunk to the first, in one loop."""

import triton
import triton.language as tl


@triton.jit
def share_statistics_kernel(
    x_ptr, mean_ptr, rstd_ptr, word_ptr, ticket_ptr, stride_x, N, eps, CHUNKS: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    ticket = tl.atomic_add(ticket_ptr, 1, sem="relaxed")
    row = (ticket // CHUNKS).to(tl.int64)
    chunk = ticket % CHUNKS
    cols = chunk * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride_x + cols, mask=cols < N, other=0.0).to(tl.float64)
    count = tl.minimum(N - chunk * BLOCK, BLOCK)
    mean = tl.sum(x, axis=0) / count
    M2 = tl.sum(tl.where(cols < N, (x - mean) * (x - mean), 0.0), axis=0)
    low = mean.to(tl.float32).to(tl.int32, bitcast=True).to(tl.int64) & 0xFFFFFFFF
    high = M2.to(tl.float32).to(tl.int32, bitcast=True).to(tl.int64) << 32
    NEW: tl.constexpr = -(1 << 63)
    while tl.atomic_cas(word_ptr + row * CHUNKS + chunk, tl.full([], 0, tl.int64), high | low | NEW, sem="release") >= 0:
        pass
    seen = 0
    mean_right = 0.0
    M2_right = 0.0
    k = CHUNKS - 1
    while k >= 0:
        word = tl.atomic_or(word_ptr + row * CHUNKS + k, tl.full([], 0, tl.int64), sem="acquire")
        if word < 0:
            n = tl.minimum(N - k * BLOCK, BLOCK)
            d = word.to(tl.int32).to(tl.float32, bitcast=True) - mean_right
            seen += n
            mean_right += d * n / seen
            M2_right += ((word >> 32) & 0x7FFFFFFF).to(tl.int32).to(tl.float32, bitcast=True) + d * d * (n / seen) * (seen - n)
            k -= 1
    tl.store(mean_ptr + row * CHUNKS + chunk, mean_right)
    tl.store(rstd_ptr + row * CHUNKS + chunk, tl.rsqrt(M2_right / N + eps))
