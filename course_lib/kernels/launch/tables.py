"""The launch tables: rows per program, blocks and warps by row length, with the measurements behind them.

The tables are fixed on purpose. A tuner that looks at M would compile again for a new batch size, and two
configurations round differently, so the same row would get different bits in different batches.

Numbers such as 1.04 in this file are times over the floor, LayerNorm first and RMSNorm second if there are two;
docs/kernels.md explains the floor.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import torch

RESIDENT_LIMIT = 32768  # columns; the registers of one program cannot hold a longer row
PERSISTENT_LIMIT = 8192  # columns; for longer rows a program cannot hold x, dy and its part of dw and db at once
TWO_TILES_LIMIT = 12288  # columns backward; longer rows would need two tiles of 8192, no better than a block of 16384


def next_power_of_2(n: int) -> int:
    """Return the smallest power of two >= n, for n >= 1. The lanes of a block are always a power of two."""
    return 1 << (n - 1).bit_length()


def _find_line(table: dict[int, tuple[int, ...]], block: int) -> tuple[int, ...]:
    """Return the first line of ``table`` for blocks of at least ``block`` columns."""
    return next(line for widest, line in table.items() if block <= widest)


class TileLaunch(NamedTuple):
    """The launch of a program that takes ROWS rows, in tiles of BLOCK columns (a power of two), with num_warps warps."""

    rows: int
    block: int
    num_warps: int


# widest BLOCK of a line -> (ROWS, num_warps): about 32 fp32 elements per thread, and at least 4 KB in flight per program
_RESIDENT: dict[int, tuple[int, ...]] = {
    128: (32, 4),
    256: (16, 4),
    512: (8, 4),
    1024: (4, 4),
    2048: (2, 4),
    4096: (1, 8),
    8192: (1, 16),
    16384: (1, 16),
    32768: (1, 32),
}
# The same for fast memory, chosen on an H200, fp16 and bf16, M N = 2^25, among 8 to 64 elements per thread and 1 to 32 warps.
# Programs are half as large, so more of them run at once. docs/kernels.md, "Faster memory, and few rows", has the measurements.
_RESIDENT_FAST: dict[int, tuple[int, ...]] = _RESIDENT | {128: (16, 2), 256: (8, 2), 512: (4, 2), 1024: (2, 1), 2048: (1, 2), 4096: (2, 8)}


@functools.cache
def resident(N: int, *, fast: bool = False, centred: bool = False, add: bool = False) -> TileLaunch:
    """Return the launch for rows of N columns that stay in registers.

    Args:
        fast: for a device with fast memory (:func:`device.has_fast_memory`).
        centred: for LayerNorm, whose warps wait at two reductions. On fast memory, at 8192 columns, it takes 1.04 with 8 warps
            and 1.14 with 16; RMSNorm takes 1.07 and 1.05. At 144 to 256 columns a program of one warp does not wait for
            others: 1.18 to 1.04, with two warps 1.36 to 1.06.
        add: for a norm with a residual, for which two warps are 1 to 3 % faster at 144 to 256 columns.

    Raises: ValueError if N is below 1 or above RESIDENT_LIMIT.
    """
    if not 1 <= N <= RESIDENT_LIMIT:
        raise ValueError(f"a resident row has 1 to {RESIDENT_LIMIT} columns, not {N}; use the blocked kernel for longer rows")
    block = next_power_of_2(N)
    fast &= N % 16 == 0  # a row that begins at any address is loaded element by element, which needs more warps
    rows, num_warps = _find_line(_RESIDENT_FAST if fast else _RESIDENT, block)
    if fast and centred and block == 8192:
        num_warps = 8
    if fast and centred and block == 256 and not add:
        rows, num_warps = 4, 1
    return TileLaunch(rows, block, num_warps)


@functools.cache
def two_tiles(N: int, *, fast: bool = False) -> tuple[int, int, int]:
    """Return BLOCK, TAIL and num_warps for a row in two tiles: the largest power of two below N, and one that holds the rest.

    There are about 32 elements per thread, 40 at 5120 columns, and up to 48 if rows begin at any address. On fast memory at
    20480 columns RMSNorm takes 1.10 with 16 warps and 1.43 with 32.

    Raises: ValueError if N is below 1 or above RESIDENT_LIMIT.
    """
    if not 1 <= N <= RESIDENT_LIMIT:
        raise ValueError(f"a row in two tiles has 1 to {RESIDENT_LIMIT} columns, not {N}; use 'blocked'")
    block = 1 << max((N - 1).bit_length() - 1, 0)
    tail = max(16, 1 << max(N - block - 1, 0).bit_length())
    if block >= 16384:
        return block, tail, 16 if fast else 32
    if N % 16:
        return block, tail, max(2, next_power_of_2(-(-(block + tail) // 1536)))
    return block, tail, max(4, block // 1024)


def blocked(N: int) -> TileLaunch:
    """Return the launch for rows of any length that are read block by block."""
    block = min(max(next_power_of_2(N), 16), 8192)
    return TileLaunch(1, block, min(max(block // 512, 1), 16))


class PersistentLaunch(NamedTuple):
    """The launch of programs that loop over tiles of ROWS rows and BLOCK columns, with STAGES tiles in flight."""

    rows: int
    block: int
    num_warps: int
    programs_per_multiprocessor: int
    stages: int


# widest BLOCK of a line -> (ROWS, num_warps, programs per multiprocessor, stages). Chosen on an H100, fp16, M N = 2^25,
# among all combinations with 4 to 32 fp32 elements of x per thread. Three tiles in flight need loads of 16 bytes, and
# so rows of a multiple of 16 elements. Other rows are loaded element by element, and other launches are faster.
_PERSISTENT: dict[int, tuple[int, ...]] = {
    128: (8, 2, 4, 3),
    256: (4, 2, 4, 3),
    512: (4, 4, 3, 3),
    1024: (2, 4, 3, 3),
    2048: (1, 8, 3, 3),
    4096: (2, 8, 1, 3),
    8192: (1, 16, 1, 3),
}
_PERSISTENT_UNALIGNED: dict[int, tuple[int, ...]] = {
    128: (8, 4, 6, 1),
    256: (4, 4, 6, 1),
    512: (2, 4, 6, 1),
    1024: (2, 4, 4, 1),
    2048: (1, 8, 3, 1),
    4096: (1, 8, 2, 1),
    8192: (1, 8, 1, 1),
}


# The same for fast memory, for rows of a multiple of 16 elements of two bytes. Chosen on an H200, fp16, M N = 2^25.
# docs/kernels.md, "Faster memory, and few rows", has the measurements.
_PERSISTENT_FAST: dict[int, tuple[int, ...]] = (
    {64: (16, 2, 6, 3)} | _PERSISTENT | {128: (16, 2, 4, 3), 256: (8, 2, 4, 3), 512: (2, 2, 6, 3), 1024: (2, 2, 4, 3), 2048: (1, 4, 3, 3)}
)


@functools.cache
def persistent(N: int, *, fast: bool = False) -> PersistentLaunch:
    """Return the launch of a backward pass that reads each row once; ``fast`` for fast memory and elements of two bytes.

    Raises: ValueError if N is below 1 or above PERSISTENT_LIMIT.
    """
    if not 1 <= N <= PERSISTENT_LIMIT:
        raise ValueError(f"the persistent backward pass takes rows of 1 to {PERSISTENT_LIMIT} columns, not {N}; use algorithm 'columns'")
    block = next_power_of_2(N)
    # A block with idle lanes is faster with fewer warps: docs/kernels.md, "Backward", has the measurement at 5120 columns.
    if 4096 < N <= 6144 and N % 16 == 0:
        return PersistentLaunch(1, block, 8, 1, 3)
    aligned = _PERSISTENT_FAST if fast else _PERSISTENT
    rows, num_warps, programs, stages = _find_line(aligned if N % 16 == 0 else _PERSISTENT_UNALIGNED, block)
    return PersistentLaunch(rows, block, num_warps, programs, stages)


class TwoTilesLaunch(NamedTuple):
    """The launch of programs that loop over rows, each a tile of BLOCK and a tile of TAIL columns, with STAGES rows in flight."""

    block: int
    tail: int
    num_warps: int
    programs_per_multiprocessor: int
    stages: int


@functools.cache
def two_tiles_backward(N: int) -> TwoTilesLaunch:
    """Return the launch of a backward pass over rows in two tiles.

    The launches for rows of a multiple of 16 elements were chosen on an H200, fp16, M N = 2^25, among 4 to 32 warps and 1 to 3
    programs and stages.

    Raises: ValueError if N is below 1 or above TWO_TILES_LIMIT.
    """
    if not 1 <= N <= TWO_TILES_LIMIT:
        raise ValueError(f"a row in two tiles has 1 to {TWO_TILES_LIMIT} columns backward, not {N}; use 'columns'")
    block, tail, _ = two_tiles(N)
    if N % 16:
        return TwoTilesLaunch(block, tail, max(4, block // 512), 2, 1)
    if block <= 4096:
        return TwoTilesLaunch(block, tail, 4, 3 if block <= 2048 else 2, 3)
    return TwoTilesLaunch(block, tail, 8 if tail <= 2048 else 16, 1, 3)


@functools.cache
def row_sums(N: int) -> tuple[int, int, int, int]:
    """Return how many programs share a row's sums, the columns of each, the columns per step, and the warps.

    They depend only on N, so that the bits of dx do too. There are at most 256 programs, because the next kernel adds up their parts
    for each of its rows.
    """
    block = min(next_power_of_2(max(N, 16)), 4096)
    length = block * -(-N // (256 * block))
    return -(-N // length), length, block, max(1, block // 512)


def columns_backward(N: int) -> tuple[int, int]:
    """Return the columns of a program of the backward pass by columns, and its warps.

    Chosen on an H200, fp16, for 1 to 64 rows of 65536 to 2^20 columns, among 512 to 4096 columns, 2 to 8 warps and 1 to 3 rows in
    flight.
    """
    block = min(1024, next_power_of_2(max(N, 16)))
    return block, min(4, max(1, block // 32))


def eviction_policy(N: int, *, add: bool = False) -> str:
    """Return the eviction policy of x and y: ``evict_first``, because they are read or written once, so that w and b stay in L2.

    There is no policy ("") if rows begin at any address, because a cache line with the end of one row and the start of
    the next is needed twice. There is none with a residual either, because it costs more than it gains.
    docs/kernels.md, "Forward", has the measurements.

    Args:
        add: the kernel adds a residual.
    """
    return "" if add or N % 16 else "evict_first"


def row_chunks(M: int, programs: int = 0, *, centred: bool = True) -> tuple[int, int]:
    """Return the number of row chunks for column sums, and the rows per chunk. They depend only on M and N, so that the bits do too.

    Args:
        programs: number of programs that share the columns of a chunk. Each loops over the chunk's rows and waits for memory at
            each row. 0 if a program takes a tile of rows at once.
        centred: for LayerNorm, whose programs need more registers, so that fewer run at once.

    Chunks have at least 4 rows, and are no shorter than needed for 512 programs in all, or 2048 for RMSNorm. Microseconds on an
    H200, LayerNorm and RMSNorm, with chunks of 32 rows against these: 128 x 8200: 45 and 57 against 14 and 15; 16 x 100003: 19 and
    28 against 15 and 15; 64 x 262147: 95 and 91 against 95 and 73. Below 16 rows the sums of the chunks cost more than the loop:
    8 x 131072 takes 8.0 in one chunk, 10.7 in two.
    """
    rows = min(M, max(32, -(-M // 128)))
    if programs and M >= 16:
        rows = min(rows, max(4, -(-M * programs // (512 if centred else 2048))))
    return -(-M // rows), rows


def column_sums(N: int) -> tuple[int, int, int]:
    """Return rows and columns of a tile of partial sums, and its warps.

    Few steps matter more than full tiles, because each step waits for its loads. Up to 8192 columns there are 132 to 528
    rows to add on an H100. There the whole backward pass of LayerNorm takes, with these tiles against steps of 64 rows:
    1.13 against 1.15 at 256 columns, 1.075 against 1.085 at 1024, 1.12 against 1.14 at 2048, 1.14 against 1.17 at 8192.
    Longer rows are shared by programs, and the more programs share a row, the fewer partial rows there are: 66 at 16384
    columns, 4 at 262144.
    """
    if N > TWO_TILES_LIMIT:
        rows = 64 if N <= 32768 else max(4, (1 << 20) // next_power_of_2(N))
        return rows, 4096 // rows, 4
    return 256, 4 if N <= 512 else 8 if N <= 1024 else 16, 8


def lock_group(N: int) -> int:
    """Return the number of shared buffers for dw and db, by row length: the Triton tutorial's table."""
    return 256 if N <= 1024 else 128 if N <= 4096 else 96 if N <= 8192 else 64


class SplitLaunch(NamedTuple):
    """The launch of programs that share rows: each takes one of CHUNKS chunks of BLOCK columns, with num_warps warps.

    ``full``: every chunk has exactly BLOCK columns, and the kernel is compiled without a column mask.
    """

    chunks: int
    block: int
    num_warps: int
    programs_per_multiprocessor: int
    full: bool = False


# Limit on the chunks of a row, for GPUs with few multiprocessors. A longer row gets longer chunks, one per multiprocessor.
_MOST_CHUNKS = 64


@functools.cache
def split(N: int, dtype: torch.dtype, *, centred: bool, add: bool, fast: bool = False) -> SplitLaunch:
    """Return the launch for rows that are shared by programs. It does not depend on M, so that a row's bits do not either.

    A program holds three rows of its chunk in registers in x's own dtype, and one in fp32. A multiprocessor has room for
    16384 columns in half precision, 12288 with a residual, and 8192 in fp32 or if rows do not begin at multiples of 16
    elements (those are loaded element by element, and the addresses take registers). On an H100 in fp16, among 2048 to
    16384 columns, 2 to 32 warps and 1 to 6 programs per multiprocessor, four programs of 4096 columns are the best, and
    three with a residual.

    All programs of the grid have to run at once. If only three of four programs fit on a multiprocessor, the fourth
    starts when the others have ended. This happens to LayerNorm in bf16, whose conversions take registers: at 65536
    columns it takes 1.16 with three programs, 1.62 with four.

    A column mask costs an instruction per element: LayerNorm at 262144 columns of fp16 takes 1.54 with a mask, 1.17
    without. In bf16 the compiler's order of instructions is worse without a mask: 1.25 without, 1.16 with, at 65536
    columns.

    ``fast`` memory needs more programs, of half the size; docs/kernels.md, "Faster memory, and few rows", has the
    measurements.
    """
    if N <= 4096:
        block = max(16, next_power_of_2(max(N // 2, 1)))
        return SplitLaunch(-(-N // block), block, min(max(block // 1024, 1), 4), 4, not centred and N % block == 0)
    unaligned = N % 16 != 0
    half = dtype.itemsize == 2 and not unaligned
    block, num_warps, programs = 4096 if half else 2048, 4, 4
    # chunk length of rows with more than _MOST_CHUNKS chunks of `block`; one program per multiprocessor
    last = 4 * block
    if half and add:
        programs, last = 3, 8192
    elif half and dtype == torch.bfloat16:
        # if the number of chunks is not a power of two, a program needs more registers, and a fourth would not fit
        chunks = -(-N // block)
        programs, last = 3 if centred or N % block or chunks & (chunks - 1) else 4, 8192
        if 131072 < N <= 262144 and not (
            fast and not add and N % (4096 if centred else 2048) == 0
        ):  # at 262144 columns 1.38 and 1.22; longer chunks spill and take 1.57 and 1.22
            return SplitLaunch(-(-N // 2048), 2048, 4, 5, not centred and N % 2048 == 0)
    elif unaligned:
        programs = 2 if add else 3
    elif half and N > 131072 and N % block:
        programs = 3
    if _MOST_CHUNKS * block < N:
        block, num_warps, programs = last, 16, 1
    if fast and half and not add and N <= 262144:
        # Two warps merge up to 64 chunks, one per lane. With more chunks, the warps of few_rows.py would add them in
        # another order, and the bits would differ.
        if dtype == torch.float16 and N <= 131072:
            return SplitLaunch(-(-N // 2048), 2048, 2, 8, N % 2048 == 0)
        if dtype == torch.bfloat16 and N > 131072:
            return SplitLaunch(N // 4096, 4096, 4, 3, True) if centred else SplitLaunch(N // 2048, 2048, 4, 6, True)
    without_mask = not centred or (half and block == 4096 and (add or dtype == torch.float16))
    return SplitLaunch(-(-N // block), block, num_warps, programs, without_mask and N % block == 0)


def copies(chunks_2: int, num_warps: int) -> int:
    """Return COPIES: the number of rows of CHUNKS_2 lanes that gives every thread at least one lane."""
    return max(1, 32 * num_warps // chunks_2)


def even_groups(M: int, most: int) -> int:
    """Return the number of groups of programs for M rows: at most ``most``, and as few as finish in the same number of rows."""
    groups = max(1, min(M, most))
    return -(-M // -(-M // groups))


def few_rows(M: int, N: int) -> tuple[int, int, int]:
    """Return the rows and columns of y that a program writes, and its warps.

    2048 columns: on an H100, 1024 and 4096 are 5 % slower with 16 rows. A program takes four rows if that leaves at least 512
    programs. H200, fp16, rows that begin at any address, one row per program against four: 2047 x 32771: 3.09 and 2.37 against
    2.78 and 2.13; 67 x 1000003: 3.19 and 2.25 against 2.97 and 2.03; 16 x 100003: 2.54 and 2.13 against 3.05 and 2.54.
    """
    block, num_warps = (2048, 4) if N > 2048 else (max(16, next_power_of_2(N)), 1)
    return 4 if M * -(-N // block) >= 4 * 512 else 1, block, num_warps


@functools.cache
def split_backward(N: int, itemsize: int) -> SplitLaunch:
    """Return the launch of a backward pass whose rows are shared by a group of programs; x has ``itemsize`` bytes per element.

    A program holds three rows of x and dy in registers, besides dw and db. On an H100 in fp16, among 2048 to 8192 columns
    per program, 4 to 16 warps and 1 to 4 programs per multiprocessor, two programs of 4096 columns are the best, or
    within 2 % of the best.
    """
    if N <= 4096:
        block = max(16, next_power_of_2(max(N // 2, 1)))
        return SplitLaunch(-(-N // block), block, min(max(block // 1024, 1), 4), 2)
    if N % 16:  # loaded element by element, and the addresses take registers
        return SplitLaunch(-(-N // 2048), 2048, 8, 2)
    block = 4096 if itemsize == 2 else 2048
    return SplitLaunch(-(-N // block), block, 4, 2)
