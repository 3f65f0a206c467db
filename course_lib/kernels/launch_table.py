"""How many rows a program takes and how many warps work on it, by row length.

The table is fixed on purpose. A tuner that looks at M would compile again whenever the batch changes, and two
configurations round differently: the same row would get different bits in different batches.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import torch

RESIDENT_LIMIT = 32768  # columns; above it one program's registers cannot hold a row
PERSISTENT_LIMIT = 8192  # columns; above it a program cannot hold x, dy and its part of dw and db at once
_CPU_PROCESSORS = 4  # in the interpreter programs run one after another: few, and more than one


class Launch(NamedTuple):
    """ROWS rows a program, BLOCK columns a tile (a power of two), num_warps warps."""

    rows: int
    block: int
    num_warps: int


# widest BLOCK a line serves -> (ROWS, num_warps): about 32 fp32 elements a thread, and 4 KB or more in flight a program
_RESIDENT = {
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


def resident(N: int) -> Launch:
    """The launch for rows of N columns that stay in registers.

    Raises: ValueError if N is below 1 or above RESIDENT_LIMIT.
    """
    if not 1 <= N <= RESIDENT_LIMIT:
        raise ValueError(f"a resident row has 1 to {RESIDENT_LIMIT} columns, not {N}; use the blocked kernel for longer rows")
    block = 1 << (N - 1).bit_length()
    for widest, (rows, num_warps) in _RESIDENT.items():
        if block <= widest:
            return Launch(rows, block, num_warps)
    raise AssertionError("unreachable: the table ends at RESIDENT_LIMIT")


def blocked(N: int) -> Launch:
    """The launch for rows of any length that are read block by block."""
    block = min(max(1 << (N - 1).bit_length(), 16), 8192)
    return Launch(1, block, min(max(block // 512, 1), 16))


class Persistent(NamedTuple):
    """A loop over tiles of ROWS rows and BLOCK columns, by some programs on each multiprocessor, STAGES tiles in flight."""

    rows: int
    block: int
    num_warps: int
    programs_a_processor: int
    stages: int


# widest BLOCK a line serves -> (ROWS, num_warps, programs a multiprocessor, stages). Measured on an H100, fp16, M N = 2^25,
# over all combinations that hold 4 to 32 fp32 elements of x a thread. Three tiles in flight want loads of 16 bytes, which
# need rows of a multiple of 16 elements; without, the loads are single elements and other launches win.
_PERSISTENT = {
    128: (8, 2, 4, 3),
    256: (4, 2, 4, 3),
    512: (4, 4, 3, 3),
    1024: (2, 4, 3, 3),
    2048: (1, 8, 3, 3),
    4096: (2, 8, 1, 3),
    8192: (1, 16, 1, 3),
}
_PERSISTENT_UNALIGNED = {
    128: (8, 4, 6, 1),
    256: (4, 4, 6, 1),
    512: (2, 4, 6, 1),
    1024: (2, 4, 4, 1),
    2048: (1, 8, 3, 1),
    4096: (1, 8, 2, 1),
    8192: (1, 8, 1, 1),
}


def persistent(N: int) -> Persistent:
    """The launch of a backward pass that reads each row once.

    Raises: ValueError if N is below 1 or above PERSISTENT_LIMIT.
    """
    if not 1 <= N <= PERSISTENT_LIMIT:
        raise ValueError(f"the persistent backward pass takes rows of 1 to {PERSISTENT_LIMIT} columns, not {N}; use algorithm 'columns'")
    block = 1 << (N - 1).bit_length()
    table = _PERSISTENT if N % 16 == 0 else _PERSISTENT_UNALIGNED
    for widest, (rows, num_warps, programs, stages) in table.items():
        if block <= widest:
            return Persistent(rows, block, num_warps, programs, stages)
    raise AssertionError("unreachable: the table ends at PERSISTENT_LIMIT")


def statistics_dtype(dtype: torch.dtype) -> torch.dtype:
    """The dtype of mean and rstd for an x of ``dtype``: fp32, never less, and fp64 for fp64."""
    return torch.float64 if dtype == torch.float64 else torch.float32


@functools.cache
def processors(device: torch.device) -> int:
    """Multiprocessors of the device; for the CPU a small number."""
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else _CPU_PROCESSORS


def chunks(M: int) -> tuple[int, int]:
    """How many chunks of rows column sums are taken over, and the rows of one: a function of M alone, so the bits are, too."""
    rows = max(32, -(-M // 128))
    return -(-M // rows), rows


def lock_group(N: int) -> int:
    """How many buffers share the rows' parts of dw and db, by row length: the Triton tutorial's table."""
    return 256 if N <= 1024 else 128 if N <= 4096 else 96 if N <= 8192 else 64


class Split(NamedTuple):
    """CHUNKS chunks of BLOCK columns a row, one a program of num_warps warps."""

    chunks: int
    block: int
    num_warps: int


def split(N: int) -> Split:
    """The launch for rows that are split over programs: a function of N alone, so that a row's bits do not depend on M.

    Measured on an H100, fp16, chunks of 2048 to 16384 columns and 4 to 16 warps: 8192 with 8 warps is the best or within 5 % of it
    from 65536 to 262144 columns and from 1 to 1024 rows.
    """
    block = 8192 if N > 2048 else max(16, 1 << (max(N // 2, 1) - 1).bit_length())
    return Split(-(-N // block), block, min(max(block // 1024, 1), 8))


class SplitBackward(NamedTuple):
    """CHUNKS programs of num_warps warps share a row, each owns BLOCK columns; some programs on each multiprocessor."""

    chunks: int
    block: int
    num_warps: int
    programs_a_processor: int


def split_backward(N: int, centred: bool, itemsize: int) -> SplitBackward:
    """The launch of a backward pass whose rows are shared by a group of programs.

    ``centred`` for LayerNorm, which keeps db as well; ``itemsize`` bytes an element of x. Measured on an H100, fp16, 2048 to 8192
    columns a program, 4 to 16 warps, 1 to 4 programs a multiprocessor. 8192 columns fit the registers where x and dy
    are prefetched in half precision by 16-byte loads; other rows spill there, and take 4096.
    """
    if N <= 2048:
        block = max(16, 1 << (max(N // 2, 1) - 1).bit_length())
        return SplitBackward(-(-N // block), block, min(max(block // 512, 1), 8), 1)
    if N % 16 == 0 and itemsize == 2:
        return SplitBackward(-(-N // 8192), 8192, 16 if centred else 8, 1)
    return SplitBackward(-(-N // 4096), 4096, 8, 1)
