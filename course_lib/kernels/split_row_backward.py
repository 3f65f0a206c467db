"""LayerNorm and RMSNorm backward for long rows: the programs of a group work on the same rows, each
on its own columns.

The persistent kernels of norm_backward.py keep x, dy and their part of dw and db in registers,
which is possible up to 8192 columns. Here a row's columns are divided among CHUNKS programs. Each
program keeps its own columns of dw and db. For every row the programs of a group exchange two
numbers: their parts of the sums under c1 and c2. x and dy are read once and dx is written once, 3 M
N elements, as for short rows; a design that computes c1 and c2 in a separate kernel moves 5 M N.

The exchange is that of split_row.py: one 64-bit word per row and chunk, stored by a relaxed atomic
exchange. It is published one row ahead of the wait, while the row after next is being loaded. The
sums under c1 and c2 can have either sign, so no sign bit is free. Instead a published word is not
0, because the lowest bit of the second sum is set. That changes a finite sum by at most its last
digit in fp32, an error as small as a rounding. An infinite one becomes NaN: then the row's dx is
all NaN, where the other designs have infinities among its NaN. docs/kernel-trials.md, "Backward",
has the measurements of this and of the designs that it replaced.

**Why no program waits forever, and why the bits are fixed**: as in split_row.py. The rows of a
group, and the order in which the parts are added, depend only on the grid and on N.

Source: the persistent design of flash-attention's and quack's backward kernels; the exchange is
that of split_row.py.
"""

from __future__ import annotations

import functools

import triton
import triton.language as tl
from torch import Tensor
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from course_lib.kernels.arguments import add_offset
from course_lib.kernels.column_sums import column_sums
from course_lib.kernels.launch import device, operands, tables
from course_lib.kernels.launch.device_classes import DeviceClass
from course_lib.kernels.launch.launcher import Launcher
from course_lib.kernels.split_row import check_room
from course_lib.kernels.zeroed_words import make_zeroed_words


@triton.jit
def pack_sums(first, second):
    """Two fp32 numbers in one word that is never 0: the lowest bit of the second number is set
    here."""
    low = first.to(tl.int32, bitcast=True).to(tl.int64) & 0xFFFFFFFF
    high = (second.to(tl.int32, bitcast=True) | 1).to(tl.int64) << 32
    return high | low


@triton.jit
def compute_row_sums(
    x, dy, w, mean, rstd, CENTRED: tl.constexpr, HAS_W: tl.constexpr, W_OFFSET: tl.constexpr
):
    """A chunk's parts of the sums of xhat * wdy and, for LayerNorm, of wdy; for RMSNorm the first
    part, twice."""
    x = x.to(tl.float32)
    wdy = dy.to(tl.float32)
    if HAS_W:
        wdy *= add_offset(w.to(tl.float32), W_OFFSET)
    if CENTRED:
        x -= mean
    products = tl.sum(x * wdy, axis=0) * rstd
    if CENTRED:
        return products, tl.sum(wdy, axis=0)
    else:
        return products, products


@triton.jit
def add_first_keep_rest(count, first, second, other_count, other_first, other_second):
    """Combine function that adds the counts and keeps the first of the other numbers: if the count
    of missing words is 0, all lanes have equal copies of these."""
    return count + other_count, first, second


@triton.jit
def read_words(words, chunks, N, CHUNKS: tl.constexpr, CENTRED: tl.constexpr):
    """The number of words that are missing among all threads' copies, and the row's c1 and, for
    LayerNorm, c2, which are valid only if none is missing.

    One reduction computes all three, and so needs only one pair of barriers. That is faster for
    LayerNorm (docs/kernel-trials.md, "Backward"). split_row.py has separate reductions, because a
    joint one is slower there.
    """
    missing = tl.sum(((words == 0) & (chunks < CHUNKS)).to(tl.int32), axis=1)
    c1 = (
        tl.sum(
            tl.where(chunks < CHUNKS, words.to(tl.int32).to(tl.float32, bitcast=True), 0.0), axis=1
        )
        / N
    )
    c2 = c1
    if CENTRED:
        c2 = (
            tl.sum(
                tl.where(
                    chunks < CHUNKS, (words >> 32).to(tl.int32).to(tl.float32, bitcast=True), 0.0
                ),
                axis=1,
            )
            / N
        )
    return tl.reduce((missing, c1, c2), 0, add_first_keep_rest)


@device.needs_resident_programs("CHUNKS")
@triton.jit(do_not_specialize=["M", "groups"])
def split_row_backward_kernel(
    dy_ptr, x_ptr,                       # (M, N), fp16, bf16 or fp32
    w_ptr,                               # (N,), fp16, bf16, fp32 or fp64; read only if HAS_W
    mean_ptr, rstd_ptr,                  # (M,), fp32; mean is read only if CENTRED
    dtotal_ptr,                          # (M, N), laid out like dx; read only if HAS_DTOTAL
    dx_ptr,                              # (M, N), x's dtype, written
    # (groups, N), fp32, contiguous, written only if HAS_DW, HAS_DB
    dw_partial_ptr, db_partial_ptr,
    # (M * CHUNKS_2,), int64, all 0 at the start: two packed fp32 numbers each
    words_ptr,
    ticket_ptr,                          # one int64, 0 at the start
    # in elements; dx has unit column stride
    stride_dy_row, stride_dy_col, stride_x_row, stride_x_col, stride_dx_row,
    M, N, groups,
    CENTRED: tl.constexpr,    # LayerNorm; else RMSNorm, which has no mean, no c2 and no db
    HAS_W: tl.constexpr,
    CHUNKS: tl.constexpr,     # programs that share a row
    CHUNKS_2: tl.constexpr,   # the power of two >= CHUNKS
    COPIES: tl.constexpr,     # COPIES * CHUNKS_2 >= the threads of a program: split_row.py says why
    BLOCK: tl.constexpr,      # columns a program owns
    # this kernel may start before the words are set to 0, and the next before this one ends
    DEPENDENT: tl.constexpr,
    HAS_DTOTAL: tl.constexpr, # add the gradient of the sum that was normalised
    HAS_DW: tl.constexpr, HAS_DB: tl.constexpr,   # db only for LayerNorm
    # divides N and the row strides; a load of so many elements has 16 bytes
    VECTOR: tl.constexpr = 1,
    W_OFFSET: tl.constexpr = 0.0,   # added to w
):  # fmt: skip
    """Rows g, g + groups, g + 2 groups, ... for one chunk of the columns. Bytes: reads x and dy,
    writes dx (3 M N; 4 M N with dtotal)."""
    if DEPENDENT:
        gdc_wait()
        gdc_launch_dependents()
    # Group, chunk and rows are 64-bit like the ticket: with 32 bits the kernel is slower
    # (docs/kernel-trials.md, "Launch tables").
    ticket = tl.atomic_add(ticket_ptr, 1, sem="relaxed")
    group = ticket // CHUNKS
    chunk = ticket % CHUNKS
    cols = chunk * BLOCK + tl.arange(0, BLOCK)
    wide = cols.to(tl.int64)
    # VECTOR divides them, here in plain sight of the compiler
    N = N // VECTOR * VECTOR
    stride_dy_row = stride_dy_row // VECTOR * VECTOR
    stride_x_row = stride_x_row // VECTOR * VECTOR
    stride_dx_row = stride_dx_row // VECTOR * VECTOR
    mask = cols < N
    chunks = tl.arange(0, CHUNKS_2)[None, :] + tl.zeros([COPIES, 1], dtype=tl.int32)
    # w stays in registers only for RMSNorm. With LayerNorm's db or with dtotal as well, registers
    # would spill (docs/kernel-trials.md, "Launch tables").
    KEEP_W: tl.constexpr = HAS_W and not CENTRED and not HAS_DTOTAL
    w = 1.0
    if HAS_W:
        w = tl.load(w_ptr + cols, mask=mask, other=0.0, eviction_policy="evict_last")
    dw = tl.zeros([BLOCK], dtype=tl.float32)
    db = tl.zeros([BLOCK], dtype=tl.float32)

    first_row = group
    here = mask & (first_row < M)
    x_now = tl.load(
        x_ptr + first_row * stride_x_row + wide * stride_x_col,
        mask=here,
        other=0.0,
        eviction_policy="evict_first",
    )
    dy_now = tl.load(
        dy_ptr + first_row * stride_dy_row + wide * stride_dy_col,
        mask=here,
        other=0.0,
        eviction_policy="evict_first",
    )
    rstd = tl.load(rstd_ptr + first_row, mask=first_row < M, other=0.0)
    mean = 0.0
    mean_after = 0.0
    if CENTRED:
        mean = tl.load(mean_ptr + first_row, mask=first_row < M, other=0.0)
    first, second = compute_row_sums(x_now, dy_now, w, mean, rstd, CENTRED, HAS_W, W_OFFSET)
    if first_row < M:
        tl.atomic_xchg(
            words_ptr + first_row * CHUNKS_2 + chunk, pack_sums(first, second), sem="relaxed"
        )
    further = first_row + groups  # the row whose x and dy were loaded last
    more = mask & (further < M)
    x_next = tl.load(
        x_ptr + further * stride_x_row + wide * stride_x_col,
        mask=more,
        other=0.0,
        eviction_policy="evict_first",
    )
    dy_next = tl.load(
        dy_ptr + further * stride_dy_row + wide * stride_dy_col,
        mask=more,
        other=0.0,
        eviction_policy="evict_first",
    )
    for number in range(group, M, groups):
        row = first_row + (number - group)
        after = row + groups
        further += groups
        more = mask & (further < M)
        if HAS_W and not KEEP_W:
            w = tl.load(w_ptr + cols, mask=mask, other=0.0, eviction_policy="evict_last")
        # load the words now, and use them after the next row's sums
        words = tl.load(words_ptr + row * CHUNKS_2 + chunks, volatile=True)
        x_after = x_next
        dy_after = dy_next
        x_next = tl.load(
            x_ptr + further * stride_x_row + wide * stride_x_col,
            mask=more,
            other=0.0,
            eviction_policy="evict_first",
        )
        dy_next = tl.load(
            dy_ptr + further * stride_dy_row + wide * stride_dy_col,
            mask=more,
            other=0.0,
            eviction_policy="evict_first",
        )
        rstd_after = tl.load(rstd_ptr + after, mask=after < M, other=0.0)
        if CENTRED:
            mean_after = tl.load(mean_ptr + after, mask=after < M, other=0.0)
        first, second = compute_row_sums(
            x_after, dy_after, w, mean_after, rstd_after, CENTRED, HAS_W, W_OFFSET
        )
        if after < M:
            tl.atomic_xchg(
                words_ptr + after * CHUNKS_2 + chunk, pack_sums(first, second), sem="relaxed"
            )
        missing, c1, c2 = read_words(words, chunks, N, CHUNKS, CENTRED)
        while missing > 0:
            words = tl.load(words_ptr + row * CHUNKS_2 + chunks, volatile=True)
            missing, c1, c2 = read_words(words, chunks, N, CHUNKS, CENTRED)
        dy = dy_now.to(tl.float32)
        wdy = dy
        if HAS_W:
            wdy = dy * add_offset(w.to(tl.float32), W_OFFSET)
        if CENTRED:
            xhat = (x_now.to(tl.float32) - mean) * rstd
            dx = (wdy - (xhat * c1 + c2)) * rstd
        else:
            xhat = x_now.to(tl.float32) * rstd
            dx = (wdy - xhat * c1) * rstd
        if HAS_DTOTAL:
            dx += tl.load(
                dtotal_ptr + row * stride_dx_row + wide,
                mask=mask,
                other=0.0,
                eviction_policy="evict_first",
            ).to(tl.float32)
        tl.store(
            dx_ptr + row * stride_dx_row + wide,
            dx.to(dx_ptr.dtype.element_ty),
            mask=mask,
            eviction_policy="evict_first",
        )
        if HAS_DW:
            dw += dy * xhat  # keep this after the store: before it, twice as many registers spill
        if HAS_DB:
            db += dy
        x_now = x_after
        dy_now = dy_after
        rstd = rstd_after
        mean = mean_after
    partial = first_row * N + wide
    if HAS_DW:
        tl.store(dw_partial_ptr + partial, dw, mask=mask)
    if HAS_DB:
        tl.store(db_partial_ptr + partial, db, mask=mask)


def split_backward(
    tuned: DeviceClass, dy: Tensor, x: Tensor, w: Tensor | None, mean: Tensor | None, rstd: Tensor,
    dtotal: Tensor | None, dx: Tensor, dw: Tensor | None, db: Tensor | None, w_offset: float,
) -> None:  # fmt: skip
    """Fill ``dx`` and, where they are given, ``dw`` and ``db``.

    Args:
        dy, x: shape (M, N), M >= 1, fp32, fp16 or bf16, any strides.
        w: shape (N,), contiguous, or None.
        mean, rstd: shape (M,), fp32, as the forward pass saved them; mean None for RMSNorm.
        dtotal: shape (M, N), contiguous, added to dx before dx is rounded; or None.
        dx: shape (M, N), contiguous.
        dw, db: shape (N,), any floating dtype, or None; db None for RMSNorm.
        w_offset: added to w.

    Raises: ValueError if x is fp64, or a row has more chunks than the device runs at once.
    """
    M, N = x.shape
    shares = tables.split_backward(N, x.dtype, tuned=tuned)
    check_room(x, shares)
    groups = tables.even_groups(
        M,
        shares.programs_per_multiprocessor
        * device.count_multiprocessors(x.device)
        // shares.chunks,
    )
    dw_partial, db_partial = (operands.make_partials(groups, x, total) for total in (dw, db))
    chunks_2 = tables.next_power_of_2(shares.chunks)
    # Word 0 is the ticket counter, word 1 is unused. Each row has a power of two of words, so they
    # need no mask.
    words, dependent = make_zeroed_words(2 + M * chunks_2, x.device)
    strides = *operands.strides(dy), *operands.strides(x)
    launcher = _prepare(
        shares, mean is not None, w is not None, dtotal is not None, dw is not None,
        db is not None, dependent, operands.find_vector(x, strides[0], strides[2]), w_offset,
    )  # fmt: skip
    launcher(
        (groups * shares.chunks,), dy, x, operands.first_given(w, x),
        operands.first_given(mean, rstd), rstd, operands.first_given(dtotal, dy), dx,
        operands.first_given(dw_partial, rstd), operands.first_given(db_partial, rstd), words[2:],
        words,
        *strides, dx.stride(0), M, N, groups,
    )  # fmt: skip
    column_sums(dw_partial, db_partial, dw, db)


@functools.cache
def _prepare(
    shares: tables.SplitLaunch, centred: bool, has_w: bool, has_dtotal: bool, has_dw: bool,
    has_db: bool, dependent: bool, vector: int, w_offset: float,
) -> Launcher:  # fmt: skip
    chunks_2 = tables.next_power_of_2(shares.chunks)
    return Launcher(
        split_row_backward_kernel, CENTRED=centred, HAS_W=has_w, CHUNKS=shares.chunks,
        CHUNKS_2=chunks_2,
        COPIES=tables.copies(chunks_2, shares.num_warps), BLOCK=shares.block, DEPENDENT=dependent,
        HAS_DTOTAL=has_dtotal, HAS_DW=has_dw, HAS_DB=has_db, VECTOR=vector, W_OFFSET=w_offset,
        num_warps=shares.num_warps,
        **device.dependent_launch_options(dependent),
    )  # fmt: skip
