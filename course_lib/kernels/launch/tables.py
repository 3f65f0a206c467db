"""The launch of each algorithm, by row length: what the lines of a class of devices say, and
numbers that are the same for all devices."""

from __future__ import annotations

import functools
from typing import NamedTuple

import torch

from course_lib.kernels.launch.device_classes import (
    H100,
    PERSISTENT_LIMIT,
    RESIDENT_LIMIT,
    TWO_TILES_LIMIT,
    DeviceClass,
    Line,
    find_line,
    has_whole_vectors,
)


def next_power_of_2(n: int) -> int:
    """Return the smallest power of two >= n, for n >= 1. The lanes of a block are always a power of
    two."""
    return 1 << (n - 1).bit_length()


class TileLaunch(NamedTuple):
    """The launch of a program that takes ROWS rows, in tiles of BLOCK columns (a power of two),
    with num_warps warps."""

    rows: int
    block: int
    num_warps: int


@functools.cache
def resident(
    N: int,
    dtype: torch.dtype | None = None,
    *,
    tuned: DeviceClass = H100,
    centred: bool = False,
    add: bool = False,
) -> TileLaunch:
    """Return the launch for rows of N columns that stay in registers.

    ``dtype`` is x's, ``tuned`` the class of the device, here and below
    (:func:`choice.find_device_class`). ``centred`` is for LayerNorm, ``add`` for a norm with a
    residual.

    Raises: ValueError if N is below 1 or above RESIDENT_LIMIT.
    """
    if not 1 <= N <= RESIDENT_LIMIT:
        raise ValueError(
            f"a resident row has 1 to {RESIDENT_LIMIT} columns, not {N}; use the blocked kernel for"
            " longer rows"
        )
    line = find_line(tuned.resident, N, dtype, centred, add)
    return TileLaunch(line.rows, next_power_of_2(N), line.num_warps)


@functools.cache
def two_tiles(
    N: int, dtype: torch.dtype | None = None, *, tuned: DeviceClass = H100
) -> tuple[int, int, int]:
    """Return BLOCK, TAIL and num_warps for a row in two tiles: the largest power of two below N,
    and one that holds the rest.

    Raises: ValueError if N is below 1 or above RESIDENT_LIMIT.
    """
    if not 1 <= N <= RESIDENT_LIMIT:
        raise ValueError(
            f"a row in two tiles has 1 to {RESIDENT_LIMIT} columns, not {N}; use 'blocked'"
        )
    block = 1 << max((N - 1).bit_length() - 1, 0)
    return (
        block,
        max(16, next_power_of_2(max(N - block, 1))),
        find_line(tuned.two_tiles, N, dtype).num_warps,
    )


def blocked(N: int) -> TileLaunch:
    """Return the launch for rows of any length that are read block by block."""
    block = min(max(next_power_of_2(N), 16), 8192)
    return TileLaunch(1, block, min(max(block // 512, 1), 16))


class PersistentLaunch(NamedTuple):
    """The launch of programs that loop over tiles of ROWS rows and BLOCK columns, with STAGES tiles
    in flight."""

    rows: int
    block: int
    num_warps: int
    programs_per_multiprocessor: int
    stages: int


@functools.cache
def persistent(
    N: int, dtype: torch.dtype | None = None, *, tuned: DeviceClass = H100, centred: bool = True
) -> PersistentLaunch:
    """Return the launch of a backward pass that reads each row once, of LayerNorm if ``centred``.

    Raises: ValueError if N is below 1 or above PERSISTENT_LIMIT.
    """
    if not 1 <= N <= PERSISTENT_LIMIT:
        raise ValueError(
            f"the persistent backward pass takes rows of 1 to {PERSISTENT_LIMIT} columns, not {N};"
            " use algorithm 'columns'"
        )
    line = find_line(tuned.persistent, N, dtype, centred)
    return PersistentLaunch(
        line.rows, next_power_of_2(N), line.num_warps, line.programs, line.stages
    )


def fit_stages(stages: int, stage_bytes: int, shared_bytes: int) -> int:
    """Return how many tiles can be in flight: at most ``stages``, and as many as fit the shared
    memory of a program.

    All of them but the one at work lie there, ``stage_bytes`` each, beside the scratch memory of
    the reductions.
    """
    return min(stages, 1 + (shared_bytes - 4096) // stage_bytes)


class TwoTilesLaunch(NamedTuple):
    """The launch of programs that loop over rows, each a tile of BLOCK and a tile of TAIL columns,
    with STAGES rows in flight."""

    block: int
    tail: int
    num_warps: int
    programs_per_multiprocessor: int
    stages: int


@functools.cache
def two_tiles_backward(
    N: int, dtype: torch.dtype | None = None, *, tuned: DeviceClass = H100
) -> TwoTilesLaunch:
    """Return the launch of a backward pass over rows in two tiles.

    Raises: ValueError if N is below 1 or above TWO_TILES_LIMIT.
    """
    if not 1 <= N <= TWO_TILES_LIMIT:
        raise ValueError(
            f"a row in two tiles has 1 to {TWO_TILES_LIMIT} columns backward, not {N}; use"
            " 'columns'"
        )
    line = find_line(tuned.two_tiles_backward, N, dtype)
    return TwoTilesLaunch(*two_tiles(N)[:2], line.num_warps, line.programs, line.stages)


@functools.cache
def row_sums(N: int) -> tuple[int, int, int, int]:
    """Return how many programs share a row's sums, the columns of each, the columns per step, and
    the warps.

    They depend only on N, so that the bits of dx do too. There are at most 256 programs, because
    the next kernel adds up their parts for each of its rows.
    """
    block = min(next_power_of_2(max(N, 16)), 4096)
    length = block * -(-N // (256 * block))
    return -(-N // length), length, block, max(1, block // 512)


def columns_backward(N: int) -> tuple[int, int]:
    """Return the columns of a program of the backward pass by columns, and its warps."""
    block = min(1024, next_power_of_2(max(N, 16)))
    return block, min(4, max(1, block // 32))


def eviction_policy(N: int, dtype: torch.dtype | None = None, *, add: bool = False) -> str:
    """Return the eviction policy of x and y: ``evict_first``, because they are read or written
    once, so that w and b stay in L2.

    There is no policy ("") if rows begin at any address, because a cache line with the end of one
    row and the start of the next is needed twice. There is none with a residual (``add``) either,
    because it costs more than it gains. docs/kernel-trials.md, "Forward", has the measurements.
    """
    return "evict_first" if has_whole_vectors(N, dtype) and not add else ""


def loads_w_first(N: int, dtype: torch.dtype | None = None) -> bool:
    """Return whether a resident RMSNorm loads w before its reduction, so that a program does not
    wait for w after it.

    Above 8192 columns x needs the registers. Short rows, and those that begin at any address, lose
    (docs/kernel-trials.md, "Forward").
    """
    return has_whole_vectors(N, dtype) and 128 < N <= 8192


def computes_unneeded_sums(N: int, *, centred: bool) -> bool:
    """Return whether the persistent backward kernel computes dw and db also where nobody needs
    them.

    Without the sums the compiler arranges the loop of these rows in another way: on an H200
    RMSNorm took 1.34 times as long at 8192 columns and LayerNorm 1.04 times at 4096
    (docs/kernel-trials.md, "Backward"). All other rows gain 2 to 20 %.
    """
    return 2048 < N <= 4096 if centred else N > 4096


def row_chunks(M: int, programs: int = 0, *, centred: bool = True) -> tuple[int, int]:
    """Return the number of row chunks for column sums, and the rows per chunk. They depend only on
    M and N, so that the bits do too.

    From 16 rows on, chunks are short enough for 512 programs in all, or 2048 for RMSNorm, and have
    at least 4 rows: each chunk adds a partial sum to write and read.

    Args:
        programs: number of programs that share the columns of a chunk. Each loops over the chunk's
            rows and waits for memory at each row. 0 if a program takes a tile of rows at once.
        centred: for LayerNorm, whose programs need more registers, so that fewer run at once.
    """
    rows = min(M, max(32, -(-M // 128)))
    if programs and M >= 16:
        rows = min(rows, max(4, -(-M * programs // (512 if centred else 2048))))
    return -(-M // rows), rows


def column_sums(N: int) -> tuple[int, int, int]:
    """Return rows and columns of a tile of partial sums, and its warps.

    Few steps matter more than full tiles, because each step waits for its loads. Up to
    TWO_TILES_LIMIT columns there are as many partial rows as programs. Longer rows are shared by
    programs, and the more programs share a row, the fewer partial rows there are.
    """
    if N > TWO_TILES_LIMIT:
        rows = 64 if N <= 32768 else max(4, (1 << 20) // next_power_of_2(N))
        return rows, 4096 // rows, 4
    return 256, 4 if N <= 512 else 8 if N <= 1024 else 16, 8


def lock_group(N: int) -> int:
    """Return the number of shared buffers for dw and db, by row length: the Triton tutorial's
    table."""
    return 256 if N <= 1024 else 128 if N <= 4096 else 96 if N <= 8192 else 64


class SplitLaunch(NamedTuple):
    """The launch of programs that share rows: each takes one of CHUNKS chunks of BLOCK columns,
    with num_warps warps.

    All programs of the grid have to run at once, or the last ones would start when the others have
    ended. So a multiprocessor has to have room for ``programs_per_multiprocessor``.

    ``full``: every chunk has exactly BLOCK columns, and the kernel is compiled without a column
    mask.
    """

    chunks: int
    block: int
    num_warps: int
    programs_per_multiprocessor: int
    full: bool = False


@functools.cache
def split(
    N: int, dtype: torch.dtype, *, centred: bool, add: bool, tuned: DeviceClass = H100
) -> SplitLaunch:
    """Return the launch for rows that are shared by programs. It does not depend on M, so that a
    row's bits do not either."""
    line = find_line(tuned.split, N, dtype, centred, add)
    launch = _divide(N, line)
    return launch._replace(full=N % launch.block == 0 and (line.unmasked or not centred))


@functools.cache
def split_backward(N: int, dtype: torch.dtype, *, tuned: DeviceClass = H100) -> SplitLaunch:
    """Return the launch of a backward pass whose rows are shared by a group of programs."""
    return _divide(N, find_line(tuned.split_backward, N, dtype))


def _divide(N: int, line: Line) -> SplitLaunch:
    block = line.block or max(16, next_power_of_2(max(N // 2, 1)))
    return SplitLaunch(-(-N // block), block, line.num_warps, line.programs)


def copies(chunks_2: int, num_warps: int) -> int:
    """Return COPIES: the number of rows of CHUNKS_2 lanes that gives every thread at least one
    lane."""
    return max(1, 32 * num_warps // chunks_2)


def even_groups(M: int, most: int) -> int:
    """Return the number of groups of programs for M rows: at most ``most``, and as few as finish in
    the same number of rows."""
    groups = max(1, min(M, most))
    return -(-M // -(-M // groups))


def few_rows(M: int, N: int) -> tuple[int, int, int]:
    """Return the rows and columns of y that a program writes, and its warps.

    A program takes four rows, for which it loads w and b once, if that leaves at least 512
    programs.
    """
    block, num_warps = (2048, 4) if N > 2048 else (max(16, next_power_of_2(N)), 1)
    return 4 if M * -(-N // block) >= 4 * 512 else 1, block, num_warps
