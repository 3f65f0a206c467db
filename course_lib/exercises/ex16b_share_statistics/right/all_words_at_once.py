"""Right but different: the words of a row are loaded as one block, and merged in two sums as 16a does it."""

import triton
import triton.language as tl


@triton.jit
def share_statistics_kernel(
    x_ptr, mean_ptr, rstd_ptr, word_ptr, ticket_ptr, stride_x, N, eps, CHUNKS: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    place = tl.atomic_add(ticket_ptr, 1).to(tl.int64)
    row, chunk = place // CHUNKS, place % CHUNKS
    cols = chunk * BLOCK + tl.arange(0, BLOCK)
    live = cols < N
    x = tl.load(x_ptr + row * stride_x + cols, mask=live, other=0.0).to(tl.float32)
    mean = tl.sum(x) / tl.minimum(N - chunk * BLOCK, BLOCK).to(tl.float32)
    away = tl.where(live, x - mean, 0.0)
    M2 = tl.sum(away * away)
    bits = (M2.to(tl.uint32, bitcast=True) | 0x80000000).to(tl.uint64) << 32 | mean.to(tl.uint32, bitcast=True).to(tl.uint64)
    tl.atomic_xchg(word_ptr + place, bits.to(tl.int64, bitcast=True), sem="relaxed")
    LANES: tl.constexpr = triton.next_power_of_2(CHUNKS)
    lanes = tl.arange(0, LANES)
    there = lanes < CHUNKS
    words = tl.load(word_ptr + row * CHUNKS + lanes, mask=there, other=-1, volatile=True)
    while tl.max((words >= 0).to(tl.int32)) == 1:
        words = tl.load(word_ptr + row * CHUNKS + lanes, mask=there, other=-1, volatile=True)
    counts = tl.where(there, tl.minimum(N - lanes * BLOCK, BLOCK), 0).to(tl.float32)
    means = tl.where(there, words.to(tl.int32).to(tl.float32, bitcast=True), 0.0)
    M2s = tl.where(there, ((words >> 32) & 0x7FFFFFFF).to(tl.int32).to(tl.float32, bitcast=True), 0.0)
    whole = tl.sum(means * counts) / N
    between = tl.where(there, means - whole, 0.0)
    tl.store(mean_ptr + place, whole)
    tl.store(rstd_ptr + place, 1.0 / tl.sqrt(tl.sum(M2s + between * between * counts) / N + eps))
