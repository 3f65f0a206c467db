"""How many rows a program takes and how many warps work on it, by row length.

The table is fixed on purpose. A tuner that looks at M would compile again whenever the batch changes, and two
configurations round differently: the same row would get different bits in different batches.
"""

from __future__ import annotations

from typing import NamedTuple

RESIDENT_LIMIT = 32768  # columns; above it one program's registers cannot hold a row


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
