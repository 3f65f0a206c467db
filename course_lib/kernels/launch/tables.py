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


@functools.cache
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


@functools.cache
def two_tiles(N: int) -> tuple[int, int, int]:
    """BLOCK, TAIL and num_warps for a row in two tiles: the largest power of two below N, and one that holds the rest.

    About 32 elements a thread, and 40 at 5120 columns; up to 48 where rows begin at any address.

    Raises: ValueError if N is below 1 or above RESIDENT_LIMIT.
    """
    if not 1 <= N <= RESIDENT_LIMIT:
        raise ValueError(f"a row in two tiles has 1 to {RESIDENT_LIMIT} columns, not {N}; use 'blocked'")
    block = 1 << max((N - 1).bit_length() - 1, 0)
    tail = max(16, 1 << max(N - block - 1, 0).bit_length())
    if block >= 16384:
        return block, tail, 32
    if N % 16:
        return block, tail, max(2, 1 << (-(-(block + tail) // 1536) - 1).bit_length())
    return block, tail, max(4, block // 1024)


def forward(x: torch.Tensor, residual: torch.Tensor | None, *vectors: torch.Tensor | None, centred: bool) -> str:
    """The algorithm of a forward pass: a function of the row length, the dtypes and, for rows too long for one program, of the size of x.

    Up to 2048 columns there are several rows a program, and idle lanes cost little. At 32768 columns of fp16 a row alone fills
    a multiprocessor, and nothing overlaps; shared by programs it takes 1.11 and 1.05 of the floor (LayerNorm, RMSNorm) where one
    program takes 1.15 and 1.06. With a residual one program takes 1.00.

    Args:
        x, residual: shape (M, N); ``vectors``: w and b.
        centred: LayerNorm; else RMSNorm.
    """
    N = x.shape[1]
    if N > RESIDENT_LIMIT or (N == RESIDENT_LIMIT and x.dtype == torch.float16 and residual is None):
        algorithm = long_rows(x, residual, *vectors, centred=centred)
        return "resident" if algorithm == "blocked" and N <= RESIDENT_LIMIT else algorithm
    return "resident" if N <= 2048 or N & (N - 1) == 0 else "two tiles"


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


@functools.cache
def persistent(N: int) -> Persistent:
    """The launch of a backward pass that reads each row once.

    Raises: ValueError if N is below 1 or above PERSISTENT_LIMIT.
    """
    if not 1 <= N <= PERSISTENT_LIMIT:
        raise ValueError(f"the persistent backward pass takes rows of 1 to {PERSISTENT_LIMIT} columns, not {N}; use algorithm 'columns'")
    block = 1 << (N - 1).bit_length()
    if 4096 < N <= 6144 and N % 16 == 0:  # a block with idle lanes: fewer warps have less of them. 5120: 1.20 and 1.11, else 1.22 and 1.15
        return Persistent(1, block, 8, 1, 3)
    table = _PERSISTENT if N % 16 == 0 else _PERSISTENT_UNALIGNED
    for widest, (rows, num_warps, programs, stages) in table.items():
        if block <= widest:
            return Persistent(rows, block, num_warps, programs, stages)
    raise AssertionError("unreachable: the table ends at PERSISTENT_LIMIT")


def backward(x: torch.Tensor) -> str:
    """The algorithm of a backward pass: a function of the row length, and of whether the device has room for a long row's programs.

    Rows that begin at any address are read element by element, masked lanes and all. Where a block of a power of two has idle
    lanes for a quarter of a row or more, two tiles have fewer: 4097 columns take 1.33 and 1.27 of the floor (LayerNorm, RMSNorm)
    where one block takes 2.23 and 2.14.
    """
    N = x.shape[1]
    if N > PERSISTENT_LIMIT:
        return "split" if room_for(x, split_backward(N, x.element_size()).chunks) else "columns"
    block = 1 << (N - 1).bit_length()
    return "two tiles" if N > 2048 and N % 16 and 3 * block >= 4 * N else "persistent"


@functools.cache
def two_tiles_backward(N: int) -> tuple[int, int, int, int]:
    """BLOCK, TAIL, num_warps and programs a multiprocessor for a backward pass over rows in two tiles.

    Raises: ValueError if N is below 1 or above PERSISTENT_LIMIT.
    """
    if not 1 <= N <= PERSISTENT_LIMIT:
        raise ValueError(f"a row in two tiles has 1 to {PERSISTENT_LIMIT} columns backward, not {N}; use 'columns'")
    block, tail, _ = two_tiles(N)
    return block, tail, max(4, block // 512), 2


def once(N: int, *, add: bool = False) -> str:
    """The mark of x and y, which pass through the caches once: they are to leave them first, and w and b to stay.

    Not where rows begin at any address: a line with the end of one row and the start of the next is wanted twice. And not with a
    residual, where it costs more than it brings. Measured on an H100, fp16, RMSNorm at 4095 columns with a residual: 1.14 of the
    floor with the mark, 1.06 without.
    """
    return "" if add or N % 16 else "evict_first"


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


def column_sums(N: int) -> tuple[int, int, int]:
    """Rows and columns of a tile of partial sums, and its warps.

    Few steps count for more than full tiles: a step waits for its loads, and up to 8192 columns there are 132 to 528 rows to add
    on an H100. Measured there, backward passes as a whole, LayerNorm, against steps of 64 rows: 1.13 of the floor and 1.15 at 256
    columns, 1.075 and 1.085 at 1024, 1.12 and 1.14 at 2048, 1.14 and 1.17 at 8192. Longer rows are shared by programs, and the
    more of them share one, the fewer partial rows there are: 66 at 16384 columns, 4 at 262144.
    """
    if N > PERSISTENT_LIMIT:
        rows = 64 if N <= 32768 else max(4, (1 << 20) >> (N - 1).bit_length())
        return rows, 4096 // rows, 4
    return 256, 4 if N <= 512 else 8 if N <= 1024 else 16, 8


def lock_group(N: int) -> int:
    """How many buffers share the rows' parts of dw and db, by row length: the Triton tutorial's table."""
    return 256 if N <= 1024 else 128 if N <= 4096 else 96 if N <= 8192 else 64


class Split(NamedTuple):
    """CHUNKS chunks of BLOCK columns a row, one a program of num_warps warps; some programs on each multiprocessor.

    ``full``: every chunk has BLOCK columns, and the kernel is compiled without a column mask.
    """

    chunks: int
    block: int
    num_warps: int
    programs_a_processor: int
    full: bool = False


_MOST_CHUNKS = 64  # of a row, before a chunk takes a multiprocessor for itself: a GPU may have no more multiprocessors than that


@functools.cache
def split(N: int, dtype: torch.dtype, *, centred: bool, add: bool) -> Split:
    """The launch for rows that are split over programs: a function of N, x's dtype, LayerNorm or RMSNorm, and the addition, and not
    of M, so that a row's bits do not depend on the batch.

    Three rows of a chunk are in registers at once, in x's own dtype, and one in fp32: 16384 columns a multiprocessor in half
    precision, 12288 with a residual, 8192 in fp32 or where rows do not begin at multiples of 16 elements (those are read element
    by element, and the addresses take registers). Measured on an H100, fp16, 2048 to 16384 columns, 2 to 32 warps, 1 to 6 programs a
    multiprocessor: four programs of 4096 columns are the best, and three with a residual.

    All programs of the grid have to be on the device at once: the last of four where three fit starts when the others have ended.
    LayerNorm in bf16, whose conversions take registers, at 65536 columns: 1.16 of the floor with three programs, 1.62 with four.

    A chunk's mask costs an instruction an element: LayerNorm at 262144 columns of fp16 1.54 with it, 1.17 without. In bf16 the
    compiler orders the instructions worse without it: 1.25, and 1.16 with it, at 65536 columns.
    """
    if N <= 4096:
        block = max(16, 1 << (max(N // 2, 1) - 1).bit_length())
        return Split(-(-N // block), block, min(max(block // 1024, 1), 4), 4, not centred and N % block == 0)
    unaligned = N % 16 != 0
    half = dtype.itemsize == 2 and not unaligned
    block, num_warps, programs = 4096 if half else 2048, 4, 4
    last = 4 * block  # the chunk of a row with more than _MOST_CHUNKS of the others; one program a multiprocessor
    if half and add:
        programs, last = 3, 8192
    elif half and dtype == torch.bfloat16:
        programs, last = 3 if centred or N % block else 4, 8192
        if 131072 < N <= 262144:  # LayerNorm and RMSNorm at 262144 columns 1.38 and 1.22; longer chunks spill, and take 1.57 and 1.22
            return Split(-(-N // 2048), 2048, 4, 5, not centred and N % 2048 == 0)
    elif unaligned:
        programs = 2 if add else 3
    elif half and N > 131072 and N % block:
        programs = 3
    if _MOST_CHUNKS * block < N:
        block, num_warps, programs = last, 16, 1
    without_mask = not centred or (half and block == 4096 and (add or dtype == torch.float16))
    return Split(-(-N // block), block, num_warps, programs, without_mask and N % block == 0)


def room_for(x: torch.Tensor, chunks: int) -> bool:
    """True if the device has room for ``chunks`` programs at once, and a word holds what they tell one another: it is fp32."""
    return x.dtype != torch.float64 and (x.device.type != "cuda" or chunks <= processors(x.device))


def copies(chunks_2: int, num_warps: int) -> int:
    """Rows of CHUNKS_2 lanes that make at least one lane a thread."""
    return max(1, 32 * num_warps // chunks_2)


def even_groups(M: int, most: int) -> int:
    """Groups of programs that share M rows: ``most`` at most, and no more than finish together."""
    groups = max(1, min(M, most))
    return -(-M // -(-M // groups))


GRID_LIMIT = 65535  # programs along the second and third axis of a grid
# of x: up to this, two launches that read x twice, once from the L2 cache, beat the exchange. Measured on an H100, fp16: they do up to
# 4 MB at 65536 columns; at 8 MB and 262144 columns they take 2.02 and 1.75 of the floor, and the exchange 1.92 and 1.73
FEW_ROWS_BYTES = 4 << 20


def few_rows(N: int) -> tuple[int, int]:
    """Columns of y a program writes, and its warps. Measured on an H100 at 1 and 16 rows: 1024 and 4096 columns are 5 % slower at 16."""
    return (2048, 4) if N > 2048 else (max(16, 1 << (N - 1).bit_length()), 1)


def long_rows(x: torch.Tensor, residual: torch.Tensor | None, *vectors: torch.Tensor | None, centred: bool) -> str:
    """The algorithm for long rows: "few rows", "split" if there is room for a row's chunks, or "blocked"."""
    M, N = x.shape
    small = M <= GRID_LIMIT and M * N * x.element_size() <= FEW_ROWS_BYTES
    # the two give a row the same bits where both lay x out alike over their threads, and so only where all loads are whole vectors
    if small and x.dtype != torch.float64 and all(_whole_vectors(tensor) for tensor in (x, residual, *vectors) if tensor is not None):
        return "few rows"
    return "split" if room_for(x, split(N, x.dtype, centred=centred, add=residual is not None).chunks) else "blocked"


def _whole_vectors(tensor: torch.Tensor) -> bool:
    rows = tensor.shape[-1] if tensor.ndim == 1 else row_stride(tensor)
    return tensor.shape[-1] % 16 == 0 and rows % 16 == 0 and tensor.stride(-1) == 1 and tensor.data_ptr() % 16 == 0


def row_stride(x: torch.Tensor) -> int:
    """Elements from one row to the next. A single row's stride can be any number, and Triton compiles anew for a 1 or a multiple of 16."""
    return x.stride(0) if x.shape[0] > 1 else x.shape[1]


def refuse_unlike(x: torch.Tensor, residual: torch.Tensor) -> None:
    """Raises: ValueError if the two have not the same shape and dtype."""
    if x.shape != residual.shape or x.dtype != residual.dtype:
        raise ValueError(
            f"x has shape {tuple(x.shape)} and {x.dtype}, residual {tuple(residual.shape)} and {residual.dtype}; they must be the same"
        )


@functools.cache
def has_dependent_launch(device: torch.device) -> bool:
    """True if a kernel can start before the one ahead of it has ended: NVIDIA GPUs of compute capability 9 and more."""
    return device.type == "cuda" and torch.version.hip is None and torch.cuda.get_device_capability(device) >= (9, 0)


def launched_early(dependent: bool) -> dict[str, bool]:
    """The option that starts a kernel before the one ahead of it has ended; the interpreter does not know it."""
    return {"launch_pdl": True} if dependent else {}


def split_backward(N: int, itemsize: int) -> Split:
    """The launch of a backward pass whose rows are shared by a group of programs; ``itemsize`` bytes an element of x.

    Three rows of x and dy are in registers at once, beside dw and db. Measured on an H100, fp16, 2048 to 8192 columns a
    program, 4 to 16 warps, 1 to 4 programs a multiprocessor: two programs of 4096 columns are the best, or within 2 % of it.
    """
    if N <= 4096:
        block = max(16, 1 << (max(N // 2, 1) - 1).bit_length())
        return Split(-(-N // block), block, min(max(block // 1024, 1), 4), 2)
    if N % 16:  # read element by element, and the addresses take registers
        return Split(-(-N // 2048), 2048, 8, 2)
    block = 4096 if itemsize == 2 else 2048
    return Split(-(-N // block), block, 4, 2)
