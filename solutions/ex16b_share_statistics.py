"""Optional task 16b: mean and rstd of long rows in one launch.

A row of N columns is cut into CHUNKS chunks of BLOCK columns; the last chunk has what is left, one column at least. M * CHUNKS
programs are launched, and each of them has one chunk of one row. It reads its chunk of x once. The programs of a row tell one
another what they found, so that each can compute mean and rstd = 1 / sqrt(var + eps) of the whole row. It stores them in
mean[row, chunk] and rstd[row, chunk]: both are fp32, packed, of shape (M, CHUNKS).

All programs of a row store the same bits. The same inputs give the same bits in whatever order the programs run.

The GPU starts the programs in any order and has room for CHUNKS of them at a time. The others start when one has ended. No
program may wait for ever.

word holds M * CHUNKS integers of 64 bits and ticket one of 32 bits, all 0 before the launch. What each of them means is yours
to decide.

x, (M, N), is fp16, bf16 or fp32; its rows are stride_x elements apart, and row * stride_x can pass 2^31. Compute in fp32. The
mean of a row may be 10000 times its standard deviation, and a row may be constant. A NaN in x makes both results of its row NaN,
and an Inf makes them Inf or NaN. Neither changes another row.

The course launches the kernel for you. Check with the panel in lesson 16, or with `course check 16b` in a terminal.
"""

import triton
import triton.language as tl


@triton.jit
def share_statistics_kernel(
    x_ptr, mean_ptr, rstd_ptr, word_ptr, ticket_ptr,
    stride_x,
    N, eps,
    CHUNKS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    # BEGIN SOLUTION
    #:
    ticket = tl.atomic_add(ticket_ptr, 1, sem="relaxed")
    row = (ticket // CHUNKS).to(tl.int64)
    chunk = ticket % CHUNKS
    cols = chunk * BLOCK + tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * stride_x + cols, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / tl.minimum(N - chunk * BLOCK, BLOCK)
    deviation = tl.where(mask, x - mean, 0.0)
    M2 = tl.sum(deviation * deviation, axis=0)
    low = mean.to(tl.int32, bitcast=True).to(tl.int64) & 0xFFFFFFFF
    high = (M2.to(tl.int32, bitcast=True) | -2147483648).to(tl.int64) << 32
    words_ptr = word_ptr + row * CHUNKS
    tl.atomic_xchg(words_ptr + chunk, high | low, sem="relaxed")
    mean = 0.0
    M2 = 0.0
    for k in range(CHUNKS):
        word = tl.load(words_ptr + k, volatile=True)
        while word >= 0:
            word = tl.load(words_ptr + k, volatile=True)
        its_mean = word.to(tl.int32).to(tl.float32, bitcast=True)
        its_M2 = ((word >> 32).to(tl.int32) & 0x7FFFFFFF).to(tl.float32, bitcast=True)
        before = k * BLOCK
        share = tl.minimum(N - before, BLOCK) / tl.minimum(N, before + BLOCK)
        distance = its_mean - mean
        mean += distance * share
        M2 += its_M2 + distance * distance * share * before
    tl.store(mean_ptr + row * CHUNKS + chunk, mean)
    tl.store(rstd_ptr + row * CHUNKS + chunk, tl.rsqrt(M2 / N + eps))
    # END SOLUTION
