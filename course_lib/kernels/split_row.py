"""LayerNorm and RMSNorm forward for rows too long for one program: a row's columns are divided
among a group of programs.

Each program owns one chunk of the columns and loops over the rows of its group. It keeps its chunk
of a row in registers, publishes the chunk's statistics, waits until all chunks of that row are
published, merges them in a fixed order and writes its part of y. x is read once and y written once,
2 M N elements, for any row length; the programs exchange 8 bytes per chunk.

**One word carries the data and its flag.** A chunk's mean and M2, its sum of squared deviations,
are packed into 64 bits and stored by one relaxed atomic exchange. M2 is never negative, so its sign
bit is free: it is set in every published word. With a separate flag, the flag would have to become
visible after the data, which needs a fence and an acquire. On an H100 both are expensive: the fence
waits for the program's earlier stores, and the acquire drops w and b from the L1 cache.

**Other work hides the wait.** A program publishes its part of the next row before it waits for the
other parts of this row, and has started to load the row after that. docs/kernel-trials.md, "Long
rows, split over programs", has the measurements of this and of the designs that it replaced.

**Why no program waits forever.** A program's chunk does not follow from its program id: each
program draws a ticket when it starts, and a group has consecutive tickets. Suppose that the device
has room for as many programs as a row has chunks. Then all programs of the first unfinished group
are running, for any order in which the hardware starts programs, and each of them publishes a row
before it waits for an earlier one. ``split_forward`` refuses a row with more chunks than the device
runs at once, with a quarter of the places left to others. (If several such launches run at once,
and each has fewer programs on the device than a row has chunks, all can wait forever; run them on
one stream. docs/kernels.md, "Kernels that wait", says more.)

**Why the bits are fixed.** The chunk length does not depend on M, and the merge adds the chunks'
numbers as a tree over their index. The order in which chunks are published does not matter, so a
row gets the same bits in every batch.

Sources: the ticket and the word that holds value and flag come from decoupled look-back (Merrill
and Garland 2016, "Single-pass Parallel Prefix Scan with Decoupled Look-back"); the merge is that of
Chan, Golub and LeVeque (1979).
"""

from __future__ import annotations

import functools

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.language.extra.cuda import gdc_wait

from course_lib.kernels.arguments import add_offset
from course_lib.kernels.launch import choice, device, operands, tables
from course_lib.kernels.launch.device_classes import DeviceClass
from course_lib.kernels.launch.launcher import Launcher
from course_lib.kernels.zeroed_words import make_zeroed_words


@triton.jit
def compute_chunk_statistics(x, mask, count, CENTRED: tl.constexpr):
    """Mean and sum of squared deviations of one chunk of ``count`` columns; for RMSNorm its sum of
    squares, twice."""
    if CENTRED:
        mean = tl.sum(x, axis=0) / count
        deviation = tl.where(mask, x - mean, 0.0)
        return mean, tl.sum(deviation * deviation, axis=0)
    else:
        squares = tl.sum(x * x, axis=0)
        return squares, squares


@triton.jit
def merge_statistics(
    means, squares, chunks, N, eps, CHUNKS: tl.constexpr, BLOCK: tl.constexpr, CENTRED: tl.constexpr
):
    """Mean and rstd of rows from the statistics of their chunks along axis 1; for RMSNorm rstd,
    twice.

    ``chunks``: the chunk number of each lane; lanes from CHUNKS on are padding.
    """
    there = chunks < CHUNKS
    squares = tl.where(there, squares, 0.0)
    if CENTRED:
        counts = tl.where(there, tl.minimum(N - chunks * BLOCK, BLOCK), 0).to(tl.float32)
        mean = tl.sum(tl.where(there, means, 0.0) * counts, axis=1) / N
        between = tl.where(there, means - mean[:, None], 0.0)
        return mean, tl.rsqrt(tl.sum(squares + between * between * counts, axis=1) / N + eps)
    else:
        rstd = tl.rsqrt(tl.sum(squares, axis=1) / N + eps)
        return rstd, rstd


@triton.jit
def pack(mean, squares):
    """Two fp32 numbers in one word that is never 0: the second number is not negative, and its sign
    bit is set here."""
    low = mean.to(tl.int32, bitcast=True).to(tl.int64) & 0xFFFFFFFF
    high = (squares.to(tl.int32, bitcast=True) | -2147483648).to(tl.int64) << 32
    return high | low


@triton.jit
def unpack(words):
    """The two numbers of each word."""
    mean = words.to(tl.int32).to(tl.float32, bitcast=True)
    squares = ((words >> 32).to(tl.int32) & 0x7FFFFFFF).to(tl.float32, bitcast=True)
    return mean, squares


@device.needs_resident_programs("CHUNKS")
@triton.jit(do_not_specialize=["M", "groups"])
def split_row_forward_kernel(
    # (M, N), fp16, bf16 or fp32, both the same; residual is read only if ADD
    x_ptr, residual_ptr,
    # (M, N), unit column stride, written; total, of x's dtype, only if ADD; y any of those dtypes
    total_ptr, y_ptr,
    w_ptr, b_ptr,             # (N,), fp16, bf16, fp32 or fp64; read only if HAS_W, HAS_B
    mean_ptr, rstd_ptr,       # (M,), fp32, written; mean only if CENTRED
    # (M * CHUNKS_2,), int64, all 0 at the start: two packed fp32 numbers each
    words_ptr,
    ticket_ptr,               # one int64, 0 at the start
    # in elements
    stride_x_row, stride_x_col, stride_residual_row, stride_residual_col, stride_y_row,
    M, N, eps, groups,
    CENTRED: tl.constexpr,    # LayerNorm; else RMSNorm, which has no mean to subtract
    HAS_W: tl.constexpr, HAS_B: tl.constexpr,
    ADD: tl.constexpr,        # add the residual first, and store the sum in total
    CHUNKS: tl.constexpr,     # chunks of a row
    CHUNKS_2: tl.constexpr,   # the power of two >= CHUNKS
    COPIES: tl.constexpr,     # COPIES * CHUNKS_2 >= the threads of a program
    BLOCK: tl.constexpr,      # columns of a chunk
    DEPENDENT: tl.constexpr,  # this kernel may start before the words are set to 0
    FULL: tl.constexpr,       # no column mask: N == CHUNKS * BLOCK
    # divides N and the row strides; a load of so many elements has 16 bytes
    VECTOR: tl.constexpr = 1,
    W_OFFSET: tl.constexpr = 0.0,   # added to w
):  # fmt: skip
    """Rows g, g + groups, g + 2 groups, ... for one chunk of the columns.

    Each thread reads its own copy of the words: the block of words has COPIES equal rows, so that
    there is a lane per thread. The wait ends when no copy lacks a word, so every thread has read
    every word that it uses.
    """
    if DEPENDENT:
        gdc_wait()
    ticket = tl.atomic_add(ticket_ptr, 1, sem="relaxed").to(tl.int32)
    group = ticket // CHUNKS
    chunk = ticket % CHUNKS
    cols = chunk * BLOCK + tl.arange(0, BLOCK)
    wide = cols.to(tl.int64)
    # VECTOR divides them, here in plain sight of the compiler
    N = N // VECTOR * VECTOR
    stride_x_row = stride_x_row // VECTOR * VECTOR
    stride_residual_row = stride_residual_row // VECTOR * VECTOR
    stride_y_row = stride_y_row // VECTOR * VECTOR
    mask = tl.full([BLOCK], True, dtype=tl.int1) if FULL else cols < N
    count = tl.minimum(N - chunk * BLOCK, BLOCK).to(tl.float32)  # elements of this chunk
    chunks = tl.arange(0, CHUNKS_2)[None, :] + tl.zeros([COPIES, 1], dtype=tl.int32)
    # w stays in registers only for RMSNorm, which is faster that way (docs/kernel-trials.md,
    # "Launch tables"). With LayerNorm's b as well, registers would spill.
    KEEP_W: tl.constexpr = HAS_W and not CENTRED
    if KEEP_W:
        w = tl.load(w_ptr + cols, mask=mask, other=0.0, eviction_policy="evict_last")

    first_row = group.to(tl.int64)
    row = first_row
    x_now = tl.load(
        x_ptr + row * stride_x_row + wide * stride_x_col,
        mask=mask & (row < M),
        other=0.0,
        eviction_policy="evict_first",
    )
    if ADD:
        x_now += tl.load(
            residual_ptr + row * stride_residual_row + wide * stride_residual_col,
            mask=mask & (row < M), other=0.0, eviction_policy="evict_first",
        )  # fmt: skip
        tl.store(total_ptr + row * stride_y_row + cols, x_now, mask=mask & (row < M))
    mean, squares = compute_chunk_statistics(x_now.to(tl.float32), mask, count, CENTRED)
    if row < M:
        tl.atomic_xchg(words_ptr + row * CHUNKS_2 + chunk, pack(mean, squares), sem="relaxed")
    after = row + groups
    more = mask & (after < M)
    x_next = tl.load(
        x_ptr + after * stride_x_row + wide * stride_x_col,
        mask=more,
        other=0.0,
        eviction_policy="evict_first",
    )
    if ADD:
        residual_next = tl.load(
            residual_ptr + after * stride_residual_row + wide * stride_residual_col,
            mask=more,
            other=0.0,
            eviction_policy="evict_first",
        )
    for number in range(group, M, groups):
        row = first_row + (number - group)
        after = row + groups
        further = after + groups
        # load the words now, and use them after the next row's statistics
        words = tl.load(words_ptr + row * CHUNKS_2 + chunks, volatile=True)
        x_after = x_next
        if ADD:
            x_after += residual_next
            tl.store(total_ptr + after * stride_y_row + cols, x_after, mask=mask & (after < M))
        # a barrier, without which the compiler may move the load of the words below the next loads:
        # they would come later
        if CENTRED:
            tl.debug_barrier()
        more = mask & (further < M)
        x_next = tl.load(
            x_ptr + further * stride_x_row + wide * stride_x_col,
            mask=more,
            other=0.0,
            eviction_policy="evict_first",
        )
        if ADD:
            residual_next = tl.load(
                residual_ptr + further * stride_residual_row + wide * stride_residual_col,
                mask=more, other=0.0, eviction_policy="evict_first",
            )  # fmt: skip
        if not CENTRED:
            # RMSNorm has its barrier here: without it the compiler may move the loads below the
            # next lines (docs/kernel-trials.md, "A barrier that keeps the prefetch in front").
            tl.debug_barrier()
        mean, squares = compute_chunk_statistics(x_after.to(tl.float32), mask, count, CENTRED)
        if after < M:
            tl.atomic_xchg(words_ptr + after * CHUNKS_2 + chunk, pack(mean, squares), sem="relaxed")
        missing = tl.sum(tl.sum(((words >= 0) & (chunks < CHUNKS)).to(tl.int32), axis=1), axis=0)
        while missing > 0:
            words = tl.load(words_ptr + row * CHUNKS_2 + chunks, volatile=True)
            missing = tl.sum(
                tl.sum(((words >= 0) & (chunks < CHUNKS)).to(tl.int32), axis=1), axis=0
            )
        chunk_means, chunk_squares = unpack(words)
        means, rstds = merge_statistics(
            chunk_means, chunk_squares, chunks, N, eps, CHUNKS, BLOCK, CENTRED
        )
        rstd = tl.max(rstds, axis=0)  # all copies are equal
        y = x_now.to(tl.float32)
        if CENTRED:
            row_mean = tl.max(means, axis=0)
            y -= row_mean
            if chunk == 0:
                tl.store(mean_ptr + row, row_mean)
        y *= rstd
        if chunk == 0:
            tl.store(rstd_ptr + row, rstd)
        if KEEP_W:
            y *= add_offset(w.to(tl.float32), W_OFFSET)
        elif HAS_W:
            w = tl.load(w_ptr + cols, mask=mask, other=0.0, eviction_policy="evict_last")
            y *= add_offset(w.to(tl.float32), W_OFFSET)
        if HAS_B:
            y += tl.load(b_ptr + cols, mask=mask, other=0.0, eviction_policy="evict_last").to(
                tl.float32
            )
        tl.store(
            y_ptr + row * stride_y_row + cols,
            y.to(y_ptr.dtype.element_ty),
            mask=mask,
            eviction_policy="evict_first",
        )
        x_now = x_after


def split_forward(
    tuned: DeviceClass, x: Tensor, residual: Tensor | None, w: Tensor | None, b: Tensor | None,
    y: Tensor, total: Tensor | None,
    mean: Tensor | None, rstd: Tensor, eps: float, w_offset: float,
) -> None:  # fmt: skip
    """Fill y, rstd and, for LayerNorm, mean with the norm of x's rows, or of those of ``total = x +
    residual``.

    Args:
        x, residual: shape (M, N), M, N >= 1, fp32, fp16 or bf16, any strides.
        w, b: shape (N,), contiguous, any of those dtypes, or None; b only with mean.
        y, total: shape (M, N), contiguous; total None without residual.
        mean, rstd: shape (M,), fp32; mean None for RMSNorm.
        eps: added inside the root.
        w_offset: added to w.

    Raises: ValueError if x is fp64, or a row has more chunks than the device runs at once.
    """
    M, N = x.shape
    shares = tables.split(
        N, x.dtype, centred=mean is not None, add=residual is not None, tuned=tuned
    )
    check_room(x, shares)
    chunks_2 = tables.next_power_of_2(shares.chunks)
    # Word 0 is the ticket counter, word 1 is unused. Each row has a power of two of words, so they
    # need no mask.
    words, dependent = make_zeroed_words(2 + M * chunks_2, x.device)
    groups = tables.even_groups(
        M,
        shares.programs_per_multiprocessor
        * device.count_multiprocessors(x.device)
        // shares.chunks,
    )
    added = operands.first_given(residual, x)
    strides = *operands.strides(x), *operands.strides(added)
    launcher = _prepare(
        shares, mean is not None, w is not None, b is not None, residual is not None, dependent,
        operands.find_vector(x, strides[0], strides[2]), w_offset,
    )  # fmt: skip
    launcher(
        (groups * shares.chunks,), x, added, operands.first_given(total, y), y,
        operands.first_given(w, x), operands.first_given(b, x),
        operands.first_given(mean, rstd), rstd, words[2:], words,
        *strides, y.stride(0), M, N, eps, groups,
    )  # fmt: skip


@functools.cache
def _prepare(
    shares: tables.SplitLaunch, centred: bool, has_w: bool, has_b: bool, add: bool, dependent: bool,
    vector: int, w_offset: float,
) -> Launcher:  # fmt: skip
    chunks_2 = tables.next_power_of_2(shares.chunks)
    return Launcher(
        split_row_forward_kernel, CENTRED=centred, HAS_W=has_w, HAS_B=has_b, ADD=add,
        CHUNKS=shares.chunks, CHUNKS_2=chunks_2, COPIES=tables.copies(chunks_2, shares.num_warps),
        BLOCK=shares.block,
        DEPENDENT=dependent, FULL=shares.full, VECTOR=vector, W_OFFSET=w_offset,
        num_warps=shares.num_warps,
        **device.dependent_launch_options(dependent),
    )  # fmt: skip


def check_room(x: Tensor, shares: tables.SplitLaunch) -> None:
    """Raise ValueError if x is fp64 or the device has no room for all programs of a row at once."""
    if x.dtype == torch.float64:
        raise ValueError(
            "split rows tell one another fp32 numbers, and x is fp64; use 'blocked', or 'columns'"
            " backward"
        )
    if not choice.has_room_for(x, shares):
        raise ValueError(
            f"a row of {x.shape[1]} columns has {shares.chunks} chunks, more than this device runs"
            " at once beside other kernels; use 'few rows', or 'columns' backward"
        )
