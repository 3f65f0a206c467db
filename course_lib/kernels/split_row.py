"""LayerNorm and RMSNorm forward for rows too long for one program, or too few to fill the device: a row is split over programs.

Each program keeps one chunk of one row in registers, publishes the chunk's statistics, waits until all chunks of its row
have published theirs, merges them in a fixed order and writes its part of y. x is read once and y written once, 2 M N
elements, however long the row is; what the programs tell one another is 8 bytes a chunk.

**Why nobody waits forever.** A program does not take the chunk of its program id: it draws a ticket from a counter when it
starts, and tickets go through the rows in order. So the programs that run at any moment hold consecutive tickets, and the
oldest unfinished row is theirs: if the device has room for at least as many programs as a row has chunks, all of that
row's chunks are running or done, whatever the order in which the hardware started the programs. ``split_forward`` refuses a
row with more chunks than the device has multiprocessors. (Several such launches at once, each holding fewer places than
a row has chunks, could starve one another; run them on one stream.)

**Why the bits are fixed.** The chunk length depends on N alone, and the merge adds the chunks' numbers as a tree over their
index. Who came first decides nothing, so a row gets the same bits in every batch.

Sources: the ticket is that of decoupled look-back (Merrill and Garland 2016, "Single-pass Parallel Prefix Scan with
Decoupled Look-back"); the merge is Chan, Golub and LeVeque's (1979).
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from course_lib.interpreter import schedule
from course_lib.kernels import launch_table

_MAX_STEPS = 10_000  # of an interleaved program in CPU mode, which takes a few dozen


@triton.jit
def split_row_forward_kernel(
    x_ptr, y_ptr, w_ptr, b_ptr, mean_ptr, rstd_ptr, partial_ptr, counter_ptr,
    stride_x_row, stride_x_col, stride_y_row,   # in elements; y has unit column stride
    M, N, eps,
    CENTRED: tl.constexpr,    # LayerNorm; else RMSNorm, which has no mean to subtract
    HAS_W: tl.constexpr, HAS_B: tl.constexpr,
    CHUNKS: tl.constexpr,     # chunks of a row
    CHUNKS_2: tl.constexpr,   # the power of two >= CHUNKS
    BLOCK: tl.constexpr,      # columns of a chunk
):  # fmt: skip
    """One chunk of one row. ``counter_ptr`` holds the ticket counter, then one count a row, all 0 at the start."""
    ACC: tl.constexpr = tl.float64 if x_ptr.dtype.element_ty == tl.float64 else tl.float32
    ticket = tl.atomic_add(counter_ptr, 1)
    row = (ticket // CHUNKS).to(tl.int64)
    chunk = ticket % CHUNKS
    cols = chunk * BLOCK + tl.arange(0, BLOCK)
    mask = cols < N
    count = tl.minimum(N - chunk * BLOCK, BLOCK)  # elements of this chunk
    x = tl.load(x_ptr + row * stride_x_row + cols.to(tl.int64) * stride_x_col, mask=mask, other=0.0, eviction_policy="evict_first").to(ACC)
    if CENTRED:
        mine = tl.sum(x, axis=0) / count
        deviation = tl.where(mask, x - mine, 0.0)
        tl.store(partial_ptr + (row * CHUNKS + chunk) * 2, mine)
        tl.store(partial_ptr + (row * CHUNKS + chunk) * 2 + 1, tl.sum(deviation * deviation, axis=0))
    else:
        tl.store(partial_ptr + (row * CHUNKS + chunk) * 2 + 1, tl.sum(x * x, axis=0))
    tl.debug_barrier()  # the thread that counts must not overtake the one that stored
    tl.atomic_add(counter_ptr + 1 + row, 1, sem="release")
    while tl.atomic_add(counter_ptr + 1 + row, 0, sem="acquire") < CHUNKS:
        pass
    tl.debug_barrier()

    others = tl.arange(0, CHUNKS_2)
    there = others < CHUNKS
    squares = tl.load(partial_ptr + (row * CHUNKS + others) * 2 + 1, mask=there, other=0.0, cache_modifier=".cg")
    if CENTRED:
        means = tl.load(partial_ptr + (row * CHUNKS + others) * 2, mask=there, other=0.0, cache_modifier=".cg")
        counts = tl.where(there, tl.minimum(N - others * BLOCK, BLOCK), 0).to(ACC)
        mean = tl.sum(means * counts, axis=0) / N
        between = tl.where(there, means - mean, 0.0)
        rstd = tl.rsqrt((tl.sum(squares, axis=0) + tl.sum(between * between * counts, axis=0)) / N + eps)
        y = (x - mean) * rstd
        if chunk == 0:
            tl.store(mean_ptr + row, mean)
    else:
        rstd = tl.rsqrt(tl.sum(squares, axis=0) / N + eps)
        y = x * rstd
    if chunk == 0:
        tl.store(rstd_ptr + row, rstd)
    if HAS_W:
        y *= tl.load(w_ptr + cols, mask=mask, other=0.0, eviction_policy="evict_last").to(ACC)
    if HAS_B:
        y += tl.load(b_ptr + cols, mask=mask, other=0.0, eviction_policy="evict_last").to(ACC)
    tl.store(y_ptr + row * stride_y_row + cols, y.to(y_ptr.dtype.element_ty), mask=mask, eviction_policy="evict_first")


def fits(x: Tensor) -> bool:
    """True if the device has room for all chunks of a row of ``x`` at once."""
    return x.device.type != "cuda" or launch_table.split(x.shape[1]).chunks <= launch_table.processors(x.device)


def split_forward(x: Tensor, w: Tensor | None, b: Tensor | None, eps: float, *, centred: bool) -> tuple[Tensor, Tensor | None, Tensor]:
    """LayerNorm (``centred``) or RMSNorm of the rows of a matrix, each row split over programs.

    Args:
        x: shape (M, N), N >= 1, fp32, fp16, bf16 or fp64, any strides.
        w, b: shape (N,), any of those dtypes, or None; b only if ``centred``.
        eps: added inside the root.

    Returns: y of x's shape and dtype, contiguous; mean (None if not ``centred``) and rstd, shape (M,), fp32, or fp64 for fp64.

    Raises: ValueError if a row has more chunks than the device has multiprocessors.
    """
    M, N = x.shape
    launch = launch_table.split(N)
    if not fits(x):
        raise ValueError(f"a row of {N} columns has {launch.chunks} chunks, more than this device has multiprocessors; use 'blocked'")
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    dtype = launch_table.statistics_dtype(x.dtype)
    mean = torch.empty(M, dtype=dtype, device=x.device) if centred else None
    rstd = torch.empty(M, dtype=dtype, device=x.device)
    if M == 0:
        return y, mean, rstd
    partial = torch.empty((M, launch.chunks, 2), dtype=dtype, device=x.device)
    counter = torch.zeros(M + 1, dtype=torch.int32, device=x.device)
    arguments = (
        x, y, x if w is None else w.contiguous(), x if b is None else b.contiguous(), rstd if mean is None else mean, rstd, partial, counter,
        x.stride(0), x.stride(1), y.stride(0), M, N, eps,
    )  # fmt: skip
    constexprs = {
        "CENTRED": centred, "HAS_W": w is not None, "HAS_B": b is not None,
        "CHUNKS": launch.chunks, "CHUNKS_2": triton.next_power_of_2(launch.chunks), "BLOCK": launch.block,
    }  # fmt: skip
    grid = (M * launch.chunks,)
    if x.device.type == "cuda":
        split_row_forward_kernel[grid](*arguments, **constexprs, num_warps=launch.num_warps)
    else:
        # the stock interpreter runs one program to its end before the next: the first would wait for the second forever
        schedule.run(split_row_forward_kernel, grid, *arguments, resident=launch.chunks, max_steps=_MAX_STEPS * grid[0], **constexprs)
    return y, mean, rstd
