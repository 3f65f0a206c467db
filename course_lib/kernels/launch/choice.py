"""Choose the algorithm for a tensor, by row length, dtype and, for rows too long for one program, the size of x.

Numbers in this file are times over the floor, in fp16, for LayerNorm and RMSNorm in this order; docs/kernels.md explains the floor.
"""

from __future__ import annotations

import torch
from torch import Tensor

from course_lib.kernels.launch import device, operands, tables

# Size of x up to which two launches (few_rows.py), which read x twice, once from the L2 cache, beat the exchange. H100: they
# win up to 4 MB at 65536 columns; at 8 MB and 262144 columns they take 2.02 and 1.75, and the exchange 1.92 and 1.73.
FEW_ROWS_BYTES = 4 << 20
# Size of x up to which the "columns" backward pass, which reads x and dy twice, beats the exchange. H200, columns against exchange:
# 1 x 65536: 2.2 and 2.0 against 4.8 and 3.3; 16 x 65536: 3.5 and 3.3 against 4.0 and 3.3; 16 x 262144: 3.1 and 2.4 against
# 2.6 and 2.0.
FEW_ROWS_BACKWARD_BYTES = 2 << 20


def is_fast(x: Tensor) -> bool:
    """Return whether x gets the launch tables' lines for fast memory. They were measured with elements of two bytes."""
    return x.element_size() == 2 and device.has_fast_memory(x.device)


def choose_forward(x: Tensor, residual: Tensor | None, *vectors: Tensor | None, centred: bool) -> str:
    """Choose the algorithm of a forward pass.

    One tile against two: up to 2048 columns a program has several rows, and idle lanes cost little if they are parts of vector loads.
    Rows that begin at any address are loaded element by element, including idle lanes, and two tiles have fewer of these:

        columns      H200, one tile    two tiles        H100, one tile    two tiles
        513          2.35 and 1.88     1.67 and 1.30    1.72 and 1.42     1.22 and 1.13
        1025         2.64 and 1.89     1.35 and 1.27    1.95 and 1.42     1.11 and 1.09
        2047         1.67 and 1.33     1.39 and 1.20    1.28 and 1.09     1.14 and 1.05

    For RMSNorm one tile is ahead at 257 columns, and in fp32.

    One program per row against several: at 32768 columns of fp16 one row fills a multiprocessor, and nothing overlaps. Shared by
    programs the row takes 1.11 and 1.05, with one program 1.15 and 1.06. With a residual one program takes 1.00.

    Args:
        x, residual: shape (M, N).
        vectors: w and b.
        centred: True for LayerNorm, False for RMSNorm.
    """
    N = x.shape[1]
    if N > tables.RESIDENT_LIMIT or (x.dtype == torch.float16 and residual is None and _least_to_split(x, centred) <= N):
        algorithm = choose_for_long_rows(x, residual, *vectors, centred=centred)
        return "resident" if algorithm == "blocked" and N <= tables.RESIDENT_LIMIT else algorithm
    least = 513 if N % 16 and (centred or x.element_size() == 2) else 2049
    return "resident" if least > N or N & (N - 1) == 0 else "two tiles"


def _least_to_split(x: Tensor, centred: bool) -> int:
    """Return the shortest row of fp16 that several programs share although one program could hold it.

    On fast memory these include rows that one program holds in two tiles. H200, shared against two tiles: LayerNorm at 12288
    columns 1.19 against 1.25, at 20480 1.19 against 1.78; RMSNorm at 20480 1.13 against 1.10, at 24576 1.13 against 1.36. Rows
    that begin at any address are excluded: 2048 x 12289 takes 3.9 shared (LayerNorm), and 2.2 in two tiles (RMSNorm).
    """
    N = x.shape[1]
    if not is_fast(x) or N & (N - 1) == 0 or N % 16:
        return tables.RESIDENT_LIMIT
    return 12288 if centred else 20481


def split(x: Tensor, *, centred: bool, add: bool) -> tables.SplitLaunch:
    """Return the launch for the rows of x if several programs share a row."""
    return tables.split(x.shape[1], x.dtype, centred=centred, add=add, fast=is_fast(x))


def choose_for_long_rows(x: Tensor, residual: Tensor | None, *vectors: Tensor | None, centred: bool) -> str:
    """Choose the algorithm of a forward pass over long rows: "few rows", "split" if there is room, else "blocked"."""
    N = x.shape[1]
    if _takes_two_launches(x, centred=centred, add=residual is not None):
        return "few rows"
    # "few rows" and "split" give a row the same bits only if both distribute x over their threads in the same way, which
    # needs loads of whole vectors. The choice between them depends on M, so it is made only for such tensors.
    present = [tensor for tensor in (x, residual, *vectors) if tensor is not None]
    small = x.shape[0] * N * x.element_size() <= FEW_ROWS_BYTES
    if small and x.dtype != torch.float64 and all(map(_loads_whole_vectors, present)):
        return "few rows"
    return "split" if has_room_for(x, split(x, centred=centred, add=residual is not None).chunks) else "blocked"


def _takes_two_launches(x: Tensor, *, centred: bool, add: bool) -> bool:
    """Return whether long rows always take two launches: rows of two-byte elements that begin at any address.

    RMSNorm without a residual takes them only above 131072 columns. The answer does not depend on M, so that a row's bits do not either.

                                shared by programs    two launches
        H200, 2047 x 32771      3.66 and 2.15         2.78 and 2.13
        H200, 255 x 262147      4.45 and 2.60         3.11 and 2.07
        H100, 1024 x 32771      2.65 and 1.66         2.15 and 1.79
        H100, 128 x 262147      3.20 and 1.95         2.32 and 1.78
        H100, fp32, 300 x 100003    1.47 and 1.22     1.62 and 1.57
    """
    N = x.shape[1]
    return N % 16 != 0 and x.element_size() == 2 and (centred or add or N > 131072)


def choose_backward(x: Tensor, *, centred: bool) -> str:
    """Choose the algorithm of a backward pass, by row length, by the size of x, and by the device's room for a long row's programs.

    Rows that begin at any address are loaded element by element, including masked lanes. If a quarter of a block's lanes or more would
    be idle, two tiles have fewer idle lanes: 4097 columns take 1.33 and 1.27 in two tiles, 2.23 and 2.14 in one block.
    """
    N = x.shape[1]
    if is_fast(x) and _fits_two_tiles(N, centred):
        return "two tiles"
    if N > tables.PERSISTENT_LIMIT:
        small = x.shape[0] <= 32 and x.numel() * x.element_size() <= FEW_ROWS_BACKWARD_BYTES
        # Rows that begin at any address are loaded element by element, and such loads do not hide the wait of the exchange.
        # docs/kernels.md, "Faster memory, and few rows", has the measurements.
        vectors = N % 16 == 0
        shared = vectors and not small and has_room_for(x, tables.split_backward(N, x.element_size()).chunks)
        return "split" if shared else "columns"
    return "two tiles" if N > 2048 and N % 16 and _leaves_lanes_idle(N) else "persistent"


def _leaves_lanes_idle(N: int) -> bool:
    return 3 * tables.next_power_of_2(N) >= 4 * N


def _fits_two_tiles(N: int, centred: bool) -> bool:
    """Return whether rows take two tiles backward on fast memory: a multiple of 16 elements, with a short second tile.

    H200; the other design is one block, or above 8192 columns programs that share a row.

        columns    two tiles                      the other
        3072       1.20 and 1.15                  1.31 and 1.25
        5120       1.22 and 1.16                  1.41 and 1.31
        6144       1.35 and 1.20                  1.32 and 1.24
        9216       1.25 and 1.15                  1.89 and 1.79
        12288      1.55 (with spills) and 1.20    1.60 and 1.53
    """
    most = 10240 if centred else tables.TWO_TILES_LIMIT
    return N % 16 == 0 and (2048 < N <= 3072 or 4096 < N <= 5120 or 8192 < N <= most)


def has_room_for(x: Tensor, chunks: int) -> bool:
    """Return whether ``chunks`` programs that share a row of x can run at once, and their fp32 numbers fit a word (x is not fp64)."""
    return x.dtype != torch.float64 and (x.device.type != "cuda" or chunks <= device.count_multiprocessors(x.device))


def _loads_whole_vectors(tensor: Tensor) -> bool:
    rows = tensor.shape[-1] if tensor.ndim == 1 else operands.row_stride(tensor)
    return tensor.shape[-1] % 16 == 0 and rows % 16 == 0 and tensor.stride(-1) == 1 and tensor.data_ptr() % 16 == 0
