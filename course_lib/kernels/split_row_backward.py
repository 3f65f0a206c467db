"""LayerNorm and RMSNorm backward for long rows: a group of programs shares the rows, each program owns some of the columns.

The persistent kernels of layer_norm_backward.py keep x, dy and their part of dw and db in registers, which ends at 8192
columns. Here a row's columns are dealt out to CHUNKS programs. Each keeps its own columns of dw and db, and for every row
the programs of a group tell one another two numbers: their parts of the sums under c1 and c2. x and dy are read once and
dx is written once, 3 M N elements, as for short rows; a design that computes c1 and c2 in a kernel of their own needs 5.

The next row's x and dy are loaded before the wait for the other programs, so that the memory is busy meanwhile.

**Why nobody waits forever**: as in split_row.py. Tickets put the programs of one group next to one another, so if the device
has room for CHUNKS programs, the oldest unfinished group is running as a whole.

**Why the bits are fixed.** Which rows a group takes, and the order in which the parts are added, depend on the grid and on N.
Timing decides nothing.

Source: the persistent design of flash-attention's and quack's backward kernels; the exchange is that of split_row.py.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from course_lib.interpreter import schedule
from course_lib.kernels import launch_table

_MAX_STEPS = 100_000  # of an interleaved program in CPU mode


@triton.jit
def split_row_backward_kernel(
    dy_ptr, x_ptr, w_ptr, mean_ptr, rstd_ptr, dx_ptr, dw_partial_ptr, db_partial_ptr, sums_ptr, counter_ptr,
    stride_dy_row, stride_dy_col, stride_x_row, stride_x_col, stride_dx_row,   # in elements; dx has unit column stride
    M, N, groups,
    CENTRED: tl.constexpr,    # LayerNorm; else RMSNorm, which has no mean, no c2 and no db
    HAS_W: tl.constexpr,
    CHUNKS: tl.constexpr,     # programs that share a row
    CHUNKS_2: tl.constexpr,   # the power of two >= CHUNKS
    BLOCK: tl.constexpr,      # columns a program owns
):  # fmt: skip
    """Rows g, g + groups, g + 2 groups, ... for one chunk of the columns.

    ``sums_ptr`` takes two numbers a row and chunk; ``counter_ptr`` the ticket counter, then one count a row, all 0 at the start.
    """
    ACC: tl.constexpr = dw_partial_ptr.dtype.element_ty
    ticket = tl.atomic_add(counter_ptr, 1)
    group = ticket // CHUNKS
    chunk = ticket % CHUNKS
    cols = chunk * BLOCK + tl.arange(0, BLOCK)
    mask = cols < N
    wide = cols.to(tl.int64)
    others = tl.arange(0, CHUNKS_2)
    there = others < CHUNKS
    # kept for RMSNorm only: beside db its registers would spill. Measured: 1.29 of the floor with w kept, 1.60 without
    KEEP_W: tl.constexpr = HAS_W and not CENTRED
    if KEEP_W:
        w = tl.load(w_ptr + cols, mask=mask, other=0.0, eviction_policy="evict_last").to(ACC)
    dw = tl.zeros([BLOCK], dtype=ACC)
    db = tl.zeros([BLOCK], dtype=ACC)
    first = group.to(tl.int64)
    x_next = tl.load(x_ptr + first * stride_x_row + wide * stride_x_col, mask=mask & (first < M), other=0.0, eviction_policy="evict_first")
    dy_next = tl.load(
        dy_ptr + first * stride_dy_row + wide * stride_dy_col, mask=mask & (first < M), other=0.0, eviction_policy="evict_first"
    )
    for number in range(group, M, groups):
        row = first + (number - group)
        after = row + groups
        x = x_next.to(ACC)
        dy = dy_next.to(ACC)
        more = mask & (after < M)
        x_next = tl.load(x_ptr + after * stride_x_row + wide * stride_x_col, mask=more, other=0.0, eviction_policy="evict_first")
        dy_next = tl.load(dy_ptr + after * stride_dy_row + wide * stride_dy_col, mask=more, other=0.0, eviction_policy="evict_first")
        rstd = tl.load(rstd_ptr + row)
        if CENTRED:
            x -= tl.load(mean_ptr + row)
        xhat = x * rstd
        wdy = dy
        if KEEP_W:
            wdy = dy * w
        elif HAS_W:
            wdy = dy * tl.load(w_ptr + cols, mask=mask, other=0.0, eviction_policy="evict_last").to(ACC)
        mine = sums_ptr + (row * CHUNKS + chunk) * 2
        tl.store(mine, tl.sum(xhat * wdy, axis=0))
        if CENTRED:
            tl.store(mine + 1, tl.sum(wdy, axis=0))
        tl.debug_barrier()  # the thread that counts must not overtake the one that stored
        tl.atomic_add(counter_ptr + 1 + row, 1, sem="release")
        while tl.atomic_add(counter_ptr + 1 + row, 0, sem="acquire") < CHUNKS:
            pass
        tl.debug_barrier()
        theirs = sums_ptr + (row * CHUNKS + others) * 2
        c1 = tl.sum(tl.load(theirs, mask=there, other=0.0, cache_modifier=".cg"), axis=0) / N
        if CENTRED:
            c2 = tl.sum(tl.load(theirs + 1, mask=there, other=0.0, cache_modifier=".cg"), axis=0) / N
            dx = (wdy - (xhat * c1 + c2)) * rstd
            db += dy
        else:
            dx = (wdy - xhat * c1) * rstd
        tl.store(dx_ptr + row * stride_dx_row + wide, dx.to(dx_ptr.dtype.element_ty), mask=mask, eviction_policy="evict_first")
        dw += dy * xhat
    tl.store(dw_partial_ptr + first * N + wide, dw, mask=mask)
    if CENTRED:
        tl.store(db_partial_ptr + first * N + wide, db, mask=mask)


def fits(x: Tensor) -> bool:
    """True if the device has room for a whole group of programs at once."""
    return x.device.type != "cuda" or launch_table.split_backward(x.shape[1], True, x.element_size()).chunks <= launch_table.processors(
        x.device
    )


def split_backward(dy: Tensor, x: Tensor, w: Tensor | None, mean: Tensor | None, rstd: Tensor, dx: Tensor) -> tuple[Tensor, Tensor | None]:
    """Fill ``dx``, and return the partial sums of dw and, for LayerNorm (``mean`` given), of db, one row a group.

    Args:
        dy, x: shape (M, N), M >= 1, fp32, fp16, bf16 or fp64, any strides.
        w: shape (N,), contiguous, or None.
        mean, rstd: shape (M,), as the forward pass saved them; mean None for RMSNorm.
        dx: shape (M, N), unit column stride.

    Raises: ValueError if a row has more chunks than the device has multiprocessors.
    """
    M, N = x.shape
    centred = mean is not None
    launch = launch_table.split_backward(N, centred, x.element_size())
    if not fits(x):
        raise ValueError(f"a row of {N} columns has {launch.chunks} chunks, more than this device has multiprocessors; use 'columns'")
    places = launch.programs_a_processor * launch_table.processors(x.device)
    groups = max(1, min(M, places // launch.chunks))
    dtype = launch_table.statistics_dtype(x.dtype)
    partial = torch.empty((1 + centred, groups, N), dtype=dtype, device=x.device)
    sums = torch.empty((M, launch.chunks, 2), dtype=dtype, device=x.device)
    counter = torch.zeros(M + 1, dtype=torch.int32, device=x.device)
    arguments = (
        dy, x, x if w is None else w, mean if centred else rstd, rstd, dx, partial[0], partial[-1], sums, counter,
        dy.stride(0), dy.stride(1), x.stride(0), x.stride(1), dx.stride(0), M, N, groups,
    )  # fmt: skip
    constexprs = {
        "CENTRED": centred, "HAS_W": w is not None,
        "CHUNKS": launch.chunks, "CHUNKS_2": triton.next_power_of_2(launch.chunks), "BLOCK": launch.block,
    }  # fmt: skip
    grid = (groups * launch.chunks,)
    if x.device.type == "cuda":
        split_row_backward_kernel[grid](*arguments, **constexprs, num_warps=launch.num_warps)
    else:  # the stock interpreter would let the first program wait forever for the second
        schedule.run(split_row_backward_kernel, grid, *arguments, resident=launch.chunks, max_steps=_MAX_STEPS * grid[0], **constexprs)
    return partial[0], partial[1] if centred else None
