"""How many rows a program takes and how many warps work on it, by row length: the numbers, and how they were found.

The tables are fixed on purpose. A tuner that looks at M would compile again whenever the batch changes, and two
configurations round differently: the same row would get different bits in different batches.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import torch

RESIDENT_LIMIT = 32768  # columns; above it one program's registers cannot hold a row
PERSISTENT_LIMIT = 8192  # columns; above it a program cannot hold x, dy and its part of dw and db at once
TWO_TILES_LIMIT = 12288  # columns backward; above it two tiles are a block of 16384


def next_power_of_2(n: int) -> int:
    """The smallest power of two that is n or more, for n >= 1: the lanes of a block are as many as that."""
    return 1 << (n - 1).bit_length()


def _find_line(table: dict[int, tuple[int, ...]], block: int) -> tuple[int, ...]:
    """The first line of ``table``, from the narrowest block it serves to the widest, that serves ``block`` columns."""
    return next(line for widest, line in table.items() if block <= widest)


class TileLaunch(NamedTuple):
    """One program: ROWS rows, in tiles of BLOCK columns (a power of two), with num_warps warps."""

    rows: int
    block: int
    num_warps: int


# widest BLOCK a line serves -> (ROWS, num_warps): about 32 fp32 elements a thread, and 4 KB or more in flight a program
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
# The same for fast memory, measured on an H200, fp16 and bf16, M N = 2^25: 8 to 64 elements a thread, 1 to 32 warps. Programs half
# as large: more of them are under way at different places. Time over floor, LayerNorm and RMSNorm, with the lines above and with
# these: 256 columns 1.07 and 1.04, 1.04 and 1.02; 768 1.07 and 1.01, 1.04 and 1.00; 4096 in bf16 1.12 and 1.07, 1.04 and 1.06.
_RESIDENT_FAST: dict[int, tuple[int, ...]] = _RESIDENT | {
    128: (16, 2),
    256: (8, 2),
    512: (4, 2),
    1024: (2, 1),
    2048: (1, 2),
    4096: (2, 8),
}


@functools.cache
def resident(N: int, *, fast: bool = False, centred: bool = False, add: bool = False) -> TileLaunch:
    """The launch for rows of N columns that stay in registers.

    Args:
        fast: for a device with fast memory (:func:`device.has_fast_memory`).
        centred: LayerNorm, which waits at two reductions: on fast memory, at 8192 columns, 1.04 of the floor with 8 warps and
            1.14 with 16, where RMSNorm takes 1.07 and 1.05. At 144 to 256 columns a program of one warp waits for nobody: 1.18
            and 1.04 of the floor, with two warps 1.36 and 1.06.
        add: with a residual, where two warps are 1 to 3 % ahead at 144 to 256 columns.

    Raises: ValueError if N is below 1 or above RESIDENT_LIMIT.
    """
    if not 1 <= N <= RESIDENT_LIMIT:
        raise ValueError(
            f"a resident row has 1 to {RESIDENT_LIMIT} columns, not {N}; use the blocked kernel for longer rows"
        )
    block = next_power_of_2(N)
    fast &= N % 16 == 0  # a row that begins at any address is loaded element by element, and wants its warps
    rows, num_warps = _find_line(_RESIDENT_FAST if fast else _RESIDENT, block)
    if fast and centred and block == 8192:
        num_warps = 8
    if fast and centred and block == 256 and not add:
        rows, num_warps = 4, 1
    return TileLaunch(rows, block, num_warps)


@functools.cache
def two_tiles(N: int, *, fast: bool = False) -> tuple[int, int, int]:
    """BLOCK, TAIL and num_warps for a row in two tiles: the largest power of two below N, and one that holds the rest.

    About 32 elements a thread, and 40 at 5120 columns; up to 48 where rows begin at any address. On fast memory at 20480
    columns RMSNorm takes 1.10 of the floor with 16 warps and 1.43 with 32.

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
    """The launch for rows of any length that are read block by block."""
    block = min(max(next_power_of_2(N), 16), 8192)
    return TileLaunch(1, block, min(max(block // 512, 1), 16))


class PersistentLaunch(NamedTuple):
    """A loop over tiles of ROWS rows and BLOCK columns, some programs a multiprocessor, STAGES tiles in flight."""

    rows: int
    block: int
    num_warps: int
    programs_per_multiprocessor: int
    stages: int


# widest BLOCK a line serves -> (ROWS, num_warps, programs a multiprocessor, stages). Measured on an H100, fp16, M N =
# 2^25, over all combinations that hold 4 to 32 fp32 elements of x a thread. Three tiles in flight want loads of 16
# bytes, which need rows of a multiple of 16 elements; without, the loads are single elements and other launches win.
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


# The same for fast memory, rows of a multiple of 16 elements of two bytes. Measured on an H200, fp16, M N = 2^25. LayerNorm and
# RMSNorm, with the lines above and with these: 256 columns 1.32 and 1.22, 1.17 and 1.11; 768 1.28 and 1.19, 1.16 and 1.08;
# 2048 1.21 and 1.10, 1.15 and 1.08.
_PERSISTENT_FAST: dict[int, tuple[int, ...]] = (
    {64: (16, 2, 6, 3)}
    | _PERSISTENT
    | {
        128: (16, 2, 4, 3),
        256: (8, 2, 4, 3),
        512: (2, 2, 6, 3),
        1024: (2, 2, 4, 3),
        2048: (1, 4, 3, 3),
    }
)


@functools.cache
def persistent(N: int, *, fast: bool = False) -> PersistentLaunch:
    """The launch of a backward pass that reads each row once; ``fast`` for fast memory and elements of two bytes.

    Raises: ValueError if N is below 1 or above PERSISTENT_LIMIT.
    """
    if not 1 <= N <= PERSISTENT_LIMIT:
        raise ValueError(
            f"the persistent backward pass takes rows of 1 to {PERSISTENT_LIMIT} columns, not {N}; use algorithm 'columns'"
        )
    block = next_power_of_2(N)
    # a block with idle lanes: fewer warps have less of them. 5120 columns take 1.20 and 1.11 of the floor, else 1.22
    # and 1.15
    if 4096 < N <= 6144 and N % 16 == 0:
        return PersistentLaunch(1, block, 8, 1, 3)
    aligned = _PERSISTENT_FAST if fast else _PERSISTENT
    rows, num_warps, programs, stages = _find_line(aligned if N % 16 == 0 else _PERSISTENT_UNALIGNED, block)
    return PersistentLaunch(rows, block, num_warps, programs, stages)


class TwoTilesLaunch(NamedTuple):
    """A loop over rows in a tile of BLOCK and one of TAIL columns, some programs a multiprocessor, STAGES rows in flight."""

    block: int
    tail: int
    num_warps: int
    programs_per_multiprocessor: int
    stages: int


@functools.cache
def two_tiles_backward(N: int) -> TwoTilesLaunch:
    """The launch of a backward pass over rows in two tiles.

    Rows of a multiple of 16 elements: measured on an H200, fp16, M N = 2^25, 4 to 32 warps, 1 to 3 programs and stages.

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
    """How many programs share a row's sums, their columns, the columns of a step, and the warps: by N alone, so that the bits
    of dx are, too. At most 256 programs: the next kernel adds their parts up for each of its rows."""
    block = min(next_power_of_2(max(N, 16)), 4096)
    length = block * -(-N // (256 * block))
    return -(-N // length), length, block, max(1, block // 512)


def columns_backward(N: int) -> tuple[int, int]:
    """Columns of a program of the backward pass by columns, and its warps.

    Measured on an H200, fp16, 1 to 64 rows of 65536 to 2^20 columns: 512 to 4096 columns, 2 to 8 warps, 1 to 3 rows in flight.
    """
    block = min(1024, next_power_of_2(max(N, 16)))
    return block, min(4, max(1, block // 32))


def eviction_policy(N: int, *, add: bool = False) -> str:
    """The eviction policy of x and y: ``evict_first``, as they are read or written once, so that w and b stay in L2.

    None ("") where rows begin at any address: a line of the cache with the end of one row and the start of the next is
    wanted twice. And none with a residual, where it costs more than it brings. Measured on an H100, fp16, RMSNorm at
    4095 columns with a residual: 1.14 of the floor with the policy, 1.06 without.

    Args:
        add: the kernel adds a residual.
    """
    return "" if add or N % 16 else "evict_first"


def row_chunks(M: int, programs: int = 0, *, centred: bool = True) -> tuple[int, int]:
    """The chunks of rows that column sums are taken over, and the rows of one: by M and N alone, so that the bits are, too.

    Args:
        programs: those that share the columns of a chunk, and walk down its rows one after another, waiting for memory at each;
            0 where a program takes a tile of rows at once.
        centred: LayerNorm, whose programs have more registers, so that fewer run at once.

    Chunks are as short as 4 rows, until there are 512 programs in all, or 2048 of RMSNorm. Measured on an H200, LayerNorm and
    RMSNorm, chunks of 32 rows and these: 128 x 8200 45 and 57 us, 14 and 15; 16 x 100003 19 and 28, 15 and 15; 64 x 262147 95 and
    91, 95 and 73. Below 16 rows the sums of the chunks cost more than the walk: 8 x 131072 8.0 us, and 10.7 in two chunks.
    """
    rows = min(M, max(32, -(-M // 128)))
    if programs and M >= 16:
        rows = min(rows, max(4, -(-M * programs // (512 if centred else 2048))))
    return -(-M // rows), rows


def column_sums(N: int) -> tuple[int, int, int]:
    """Rows and columns of a tile of partial sums, and its warps.

    Few steps count for more than full tiles: a step waits for its loads, and up to 8192 columns there are 132 to 528
    rows to add on an H100. Measured there, backward passes as a whole, LayerNorm, against steps of 64 rows: 1.13 of the
    floor and 1.15 at 256 columns, 1.075 and 1.085 at 1024, 1.12 and 1.14 at 2048, 1.14 and 1.17 at 8192. Longer rows
    are shared by programs, and the more of them share one, the fewer partial rows there are: 66 at 16384 columns, 4 at
    262144.
    """
    if N > TWO_TILES_LIMIT:
        rows = 64 if N <= 32768 else max(4, (1 << 20) // next_power_of_2(N))
        return rows, 4096 // rows, 4
    return 256, 4 if N <= 512 else 8 if N <= 1024 else 16, 8


def lock_group(N: int) -> int:
    """How many buffers share the rows' parts of dw and db, by row length: the Triton tutorial's table."""
    return 256 if N <= 1024 else 128 if N <= 4096 else 96 if N <= 8192 else 64


class SplitLaunch(NamedTuple):
    """CHUNKS chunks of BLOCK columns a row, one a program of num_warps warps; some programs on each multiprocessor.

    ``full``: every chunk has BLOCK columns, and the kernel is compiled without a column mask.
    """

    chunks: int
    block: int
    num_warps: int
    programs_per_multiprocessor: int
    full: bool = False


_MOST_CHUNKS = (
    64  # of a row, before a chunk takes a multiprocessor for itself: a GPU may have no more multiprocessors than that
)


@functools.cache
def split(N: int, dtype: torch.dtype, *, centred: bool, add: bool, fast: bool = False) -> SplitLaunch:
    """The launch for rows that are split over programs. It does not depend on M, so that a row's bits do not, either.

    Three rows of a chunk are in registers at once, in x's own dtype, and one in fp32: 16384 columns a multiprocessor in
    half precision, 12288 with a residual, 8192 in fp32 or where rows do not begin at multiples of 16 elements (those
    are read element by element, and the addresses take registers). Measured on an H100, fp16, 2048 to 16384 columns, 2
    to 32 warps, 1 to 6 programs a multiprocessor: four programs of 4096 columns are the best, and three with a
    residual.

    All programs of the grid have to be on the device at once: the last of four where three fit starts when the others
    have ended.
    LayerNorm in bf16, whose conversions take registers, at 65536 columns: 1.16 of the floor with three programs, 1.62
    with four.

    A chunk's mask costs an instruction an element: LayerNorm at 262144 columns of fp16 1.54 with it, 1.17 without. In
    bf16 the compiler orders the instructions worse without it: 1.25, and 1.16 with it, at 65536 columns.

    ``fast`` memory wants more programs, of half the size. Measured on an H200, LayerNorm and RMSNorm: 65536 columns of fp16 1.24
    and 1.14 of the floor with four programs of 4096 columns, 1.21 and 1.12 with eight of 2048; 262144 of bf16 1.80 and 1.45
    with five, 1.66 with three of 4096 columns and 1.34 with six, without a mask.
    """
    if N <= 4096:
        block = max(16, next_power_of_2(max(N // 2, 1)))
        return SplitLaunch(-(-N // block), block, min(max(block // 1024, 1), 4), 4, not centred and N % block == 0)
    unaligned = N % 16 != 0
    half = dtype.itemsize == 2 and not unaligned
    block, num_warps, programs = 4096 if half else 2048, 4, 4
    last = 4 * block  # the chunk of a row with more than _MOST_CHUNKS of the others; one program a multiprocessor
    if half and add:
        programs, last = 3, 8192
    elif half and dtype == torch.bfloat16:
        # chunks that are no power of two cost a program more registers, and a fourth would not be resident
        chunks = -(-N // block)
        programs, last = 3 if centred or N % block or chunks & (chunks - 1) else 4, 8192
        if 131072 < N <= 262144 and not (
            fast and not add and N % 2048 == 0
        ):  # LayerNorm and RMSNorm at 262144 columns 1.38 and 1.22; longer chunks spill, and take 1.57 and 1.22
            return SplitLaunch(-(-N // 2048), 2048, 4, 5, not centred and N % 2048 == 0)
    elif unaligned:
        programs = 2 if add else 3
    elif half and N > 131072 and N % block:
        programs = 3
    if _MOST_CHUNKS * block < N:
        block, num_warps, programs = last, 16, 1
    if fast and half and not add and N <= 262144:
        # two warps merge 64 chunks, one a lane: with more, few_rows.py's warps would add them in another order
        if dtype == torch.float16 and N <= 131072:
            return SplitLaunch(-(-N // 2048), 2048, 2, 8, N % 2048 == 0)
        if dtype == torch.bfloat16 and N > 131072 and N % 2048 == 0:
            return SplitLaunch(N // 4096, 4096, 4, 3, True) if centred else SplitLaunch(N // 2048, 2048, 4, 6, True)
    without_mask = not centred or (half and block == 4096 and (add or dtype == torch.float16))
    return SplitLaunch(-(-N // block), block, num_warps, programs, without_mask and N % block == 0)


def copies(chunks_2: int, num_warps: int) -> int:
    """Rows of CHUNKS_2 lanes that make at least one lane a thread."""
    return max(1, 32 * num_warps // chunks_2)


def even_groups(M: int, most: int) -> int:
    """Groups of programs that share M rows: ``most`` at most, and no more than finish together."""
    groups = max(1, min(M, most))
    return -(-M // -(-M // groups))


def few_rows(M: int, N: int) -> tuple[int, int, int]:
    """Rows and columns of y a program writes, and its warps.

    Measured on an H100 at 1 and 16 rows: 1024 and 4096 columns are 5 % slower at 16. Four rows a program where that leaves 512
    programs. Measured on an H200, fp16, LayerNorm and RMSNorm, rows that begin at any address, with one row and with four: 2047 x
    32771 3.09 and 2.37 of the floor, 2.78 and 2.13; 67 x 1000003 3.19 and 2.25, 2.97 and 2.03; 16 x 100003 2.54 and 2.13, 3.05 and 2.54.
    """
    block, num_warps = (2048, 4) if N > 2048 else (max(16, next_power_of_2(N)), 1)
    return 4 if M * -(-N // block) >= 4 * 512 else 1, block, num_warps


@functools.cache
def split_backward(N: int, itemsize: int) -> SplitLaunch:
    """The launch of a backward pass whose rows are shared by a group of programs; ``itemsize`` bytes an element of x.

    Three rows of x and dy are in registers at once, beside dw and db. Measured on an H100, fp16, 2048 to 8192 columns a
    program, 4 to 16 warps, 1 to 4 programs a multiprocessor: two programs of 4096 columns are the best, or within 2 %
    of it.
    """
    if N <= 4096:
        block = max(16, next_power_of_2(max(N // 2, 1)))
        return SplitLaunch(-(-N // block), block, min(max(block // 1024, 1), 4), 2)
    if N % 16:  # read element by element, and the addresses take registers
        return SplitLaunch(-(-N // 2048), 2048, 8, 2)
    block = 4096 if itemsize == 2 else 2048
    return SplitLaunch(-(-N // block), block, 4, 2)
