"""Which algorithm a tensor gets: by row length, dtype and, for rows too long for one program, the size of x."""

from __future__ import annotations

import torch
from torch import Tensor

from course_lib.kernels.launch import device, operands, tables

# of x: up to this, two launches that read x twice, once from the L2 cache, beat the exchange. Measured on an H100,
# fp16: they do up to 4 MB at 65536 columns; at 8 MB and 262144 columns they take 2.02 and 1.75 of the floor, and the
# exchange 1.92 and 1.73
FEW_ROWS_BYTES = 4 << 20
# of x, backward: up to this the same holds, and a pass by columns reads x and dy twice. Measured on an H200, fp16, LayerNorm and
# RMSNorm: 1 x 65536 2.2 and 2.0 of the floor, where the exchange takes 4.8 and 3.3; 16 x 65536 3.5 and 3.3, 4.0 and 3.3;
# 16 x 262144 3.1 and 2.4, 2.6 and 2.0
FEW_ROWS_BACKWARD_BYTES = 2 << 20


def is_fast(x: Tensor) -> bool:
    """Whether x gets the launch tables' lines for fast memory: they were measured with elements of two bytes."""
    return x.element_size() == 2 and device.has_fast_memory(x.device)


def choose_forward(x: Tensor, residual: Tensor | None, *vectors: Tensor | None, centred: bool) -> str:
    """The algorithm of a forward pass.

    Up to 2048 columns there are several rows a program, and idle lanes cost little where they are parts of vectors. Rows that
    begin at any address are loaded element by element, idle lanes and all: above 512 columns two tiles have fewer. Measured on an
    H200, fp16, LayerNorm and RMSNorm, one tile and two: 513 2.35 and 1.88 of the floor, 1.67 and 1.30; 1025 2.64 and 1.89, 1.35 and
    1.27; 2047 1.67 and 1.33, 1.39 and 1.20; on an H100 1.72 and 1.42, 1.22 and 1.13; 1.95 and 1.42, 1.11 and 1.09; 1.28 and 1.09,
    1.14 and 1.05. At 257 one tile is ahead for RMSNorm, and so it is in fp32. At 32768 columns of fp16 a row
    alone fills a multiprocessor, and nothing overlaps; shared by programs it takes 1.11 and 1.05 of the floor
    (LayerNorm, RMSNorm) where one program takes 1.15 and 1.06. With a residual one program takes 1.00.

    Args:
        x, residual: shape (M, N); ``vectors``: w and b.
        centred: LayerNorm; else RMSNorm.
    """
    N = x.shape[1]
    if N > tables.RESIDENT_LIMIT or (
        x.dtype == torch.float16 and residual is None and _least_to_split(x, centred) <= N
    ):
        algorithm = choose_for_long_rows(x, residual, *vectors, centred=centred)
        return "resident" if algorithm == "blocked" and N <= tables.RESIDENT_LIMIT else algorithm
    least = 513 if N % 16 and (centred or x.element_size() == 2) else 2049
    return "resident" if least > N or N & (N - 1) == 0 else "two tiles"


def _least_to_split(x: Tensor, centred: bool) -> int:
    """The shortest row of fp16 that programs share where one could hold it.

    On fast memory also rows that one program holds in two tiles. Measured on an H200: LayerNorm 12288 1.19 and 1.25 of the floor,
    20480 1.19 and 1.78; RMSNorm 20480 1.13 and 1.10, 24576 1.13 and 1.36. Not rows that begin at any address: 2048 x 12289 takes
    2.2 of the floor in two tiles (RMSNorm), and 3.9 shared (LayerNorm).
    """
    N = x.shape[1]
    if not is_fast(x) or N & (N - 1) == 0 or N % 16:
        return tables.RESIDENT_LIMIT
    return 12288 if centred else 20481


def split(x: Tensor, *, centred: bool, add: bool) -> tables.SplitLaunch:
    """The launch for the rows of x when programs share them."""
    return tables.split(x.shape[1], x.dtype, centred=centred, add=add, fast=is_fast(x))


def choose_for_long_rows(x: Tensor, residual: Tensor | None, *vectors: Tensor | None, centred: bool) -> str:
    """The algorithm of a forward pass over long rows: "few rows", "split" where there is room, or "blocked"."""
    N = x.shape[1]
    if _takes_two_launches(x, centred=centred, add=residual is not None):
        return "few rows"
    # the two give a row the same bits where both lay x out alike over their threads, and so only where all loads are
    # whole vectors
    present = [tensor for tensor in (x, residual, *vectors) if tensor is not None]
    small = x.shape[0] * N * x.element_size() <= FEW_ROWS_BYTES
    if small and x.dtype != torch.float64 and all(map(_loads_whole_vectors, present)):
        return "few rows"
    return "split" if has_room_for(x, split(x, centred=centred, add=residual is not None).chunks) else "blocked"


def _takes_two_launches(x: Tensor, *, centred: bool, add: bool) -> bool:
    """Long rows of two bytes an element that begin at any address: however many there are, so that a row's bits do not depend on M.

    Measured, fp16, LayerNorm and RMSNorm, shared by programs and in two launches. On an H200: 2047 x 32771 3.66 and 2.15 of the
    floor, 2.78 and 2.13; 255 x 262147 4.45 and 2.60, 3.11 and 2.07. On an H100: 1024 x 32771 2.65 and 1.66, 2.15 and 1.79; 128 x
    262147 3.20 and 1.95, 2.32 and 1.78. In fp32 it is the other way round on an H100: 300 x 100003 1.47 and 1.22, 1.62 and 1.57.
    """
    N = x.shape[1]
    return N % 16 != 0 and x.element_size() == 2 and (centred or add or N > 131072)


def choose_backward(x: Tensor, *, centred: bool) -> str:
    """The algorithm of a backward pass: by row length, by the size of x, and by whether the device has room for a long row's
    programs.

    Rows that begin at any address are read element by element, masked lanes and all. Where a block of a power of two
    has idle lanes for a quarter of a row or more, two tiles have fewer: 4097 columns take 1.33 and 1.27 of the floor
    (LayerNorm, RMSNorm) where one block takes 2.23 and 2.14.
    """
    N = x.shape[1]
    if is_fast(x) and _fits_two_tiles(N, centred):
        return "two tiles"
    if N > tables.PERSISTENT_LIMIT:
        small = x.shape[0] <= 32 and x.numel() * x.element_size() <= FEW_ROWS_BACKWARD_BYTES
        # rows that begin at any address are loaded element by element, and those loads hide no wait. Measured on an H200, fp16,
        # LayerNorm: 10007 columns 3.2 of the floor, shared by programs 5.4; 33001 3.4 and 8.3; 131101 3.8 and 5.6
        vectors = N % 16 == 0
        shared = vectors and not small and has_room_for(x, tables.split_backward(N, x.element_size()).chunks)
        return "split" if shared else "columns"
    return "two tiles" if N > 2048 and N % 16 and _leaves_lanes_idle(N) else "persistent"


def _leaves_lanes_idle(N: int) -> bool:
    return 3 * tables.next_power_of_2(N) >= 4 * N


def _fits_two_tiles(N: int, centred: bool) -> bool:
    """Rows of a multiple of 16 elements whose second tile is short.

    Measured on an H200, LayerNorm and RMSNorm, two tiles and one block, or above 8192 columns programs that share a row: 3072
    1.20 and 1.15, 1.31 and 1.25; 5120 1.22 and 1.16, 1.41 and 1.31; 9216 1.25 and 1.15, 1.89 and 1.79; 6144 1.35 and 1.20,
    1.32 and 1.24; 12288 1.55, with spills, and 1.20, 1.60 and 1.53.
    """
    most = 10240 if centred else tables.TWO_TILES_LIMIT
    return N % 16 == 0 and (2048 < N <= 3072 or 4096 < N <= 5120 or 8192 < N <= most)


def has_room_for(x: Tensor, chunks: int) -> bool:
    """True if ``chunks`` programs that share a row of x run at once, and tell one another fp32, which fits a word."""
    return x.dtype != torch.float64 and (x.device.type != "cuda" or chunks <= device.count_multiprocessors(x.device))


def _loads_whole_vectors(tensor: Tensor) -> bool:
    rows = tensor.shape[-1] if tensor.ndim == 1 else operands.row_stride(tensor)
    return tensor.shape[-1] % 16 == 0 and rows % 16 == 0 and tensor.stride(-1) == 1 and tensor.data_ptr() % 16 == 0
