"""Which algorithm a tensor gets: by row length, dtype and, for rows too long for one program, the size of x."""

from __future__ import annotations

import torch
from torch import Tensor

from course_lib.kernels.launch import device, operands, tables

# of x: up to this, two launches that read x twice, once from the L2 cache, beat the exchange. Measured on an H100,
# fp16: they do up to 4 MB at 65536 columns; at 8 MB and 262144 columns they take 2.02 and 1.75 of the floor, and the
# exchange 1.92 and 1.73
FEW_ROWS_BYTES = 4 << 20


def choose_forward(x: Tensor, residual: Tensor | None, *vectors: Tensor | None, centred: bool) -> str:
    """The algorithm of a forward pass.

    Up to 2048 columns there are several rows a program, and idle lanes cost little. At 32768 columns of fp16 a row
    alone fills a multiprocessor, and nothing overlaps; shared by programs it takes 1.11 and 1.05 of the floor
    (LayerNorm, RMSNorm) where one program takes 1.15 and 1.06. With a residual one program takes 1.00.

    Args:
        x, residual: shape (M, N); ``vectors``: w and b.
        centred: LayerNorm; else RMSNorm.
    """
    N = x.shape[1]
    if N > tables.RESIDENT_LIMIT or (N == tables.RESIDENT_LIMIT and x.dtype == torch.float16 and residual is None):
        algorithm = choose_for_long_rows(x, residual, *vectors, centred=centred)
        return "resident" if algorithm == "blocked" and N <= tables.RESIDENT_LIMIT else algorithm
    return "resident" if N <= 2048 or N & (N - 1) == 0 else "two tiles"


def choose_for_long_rows(x: Tensor, residual: Tensor | None, *vectors: Tensor | None, centred: bool) -> str:
    """The algorithm of a forward pass over long rows: "few rows", "split" where there is room, or "blocked"."""
    M, N = x.shape
    small = M <= device.GRID_LIMIT and M * N * x.element_size() <= FEW_ROWS_BYTES
    # the two give a row the same bits where both lay x out alike over their threads, and so only where all loads are
    # whole vectors
    present = [tensor for tensor in (x, residual, *vectors) if tensor is not None]
    if small and x.dtype != torch.float64 and all(map(_loads_whole_vectors, present)):
        return "few rows"
    return (
        "split"
        if has_room_for(x, tables.split(N, x.dtype, centred=centred, add=residual is not None).chunks)
        else "blocked"
    )


def choose_backward(x: Tensor) -> str:
    """The algorithm of a backward pass: by row length, and by whether the device has room for a long row's programs.

    Rows that begin at any address are read element by element, masked lanes and all. Where a block of a power of two
    has idle lanes for a quarter of a row or more, two tiles have fewer: 4097 columns take 1.33 and 1.27 of the floor
    (LayerNorm, RMSNorm) where one block takes 2.23 and 2.14.
    """
    N = x.shape[1]
    if N > tables.PERSISTENT_LIMIT:
        return "split" if has_room_for(x, tables.split_backward(N, x.element_size()).chunks) else "columns"
    block = 1 << (N - 1).bit_length()
    return "two tiles" if N > 2048 and N % 16 and 3 * block >= 4 * N else "persistent"


def has_room_for(x: Tensor, chunks: int) -> bool:
    """True if ``chunks`` programs that share a row of x run at once, and tell one another fp32, which fits a word."""
    return x.dtype != torch.float64 and (x.device.type != "cuda" or chunks <= device.count_multiprocessors(x.device))


def _loads_whole_vectors(tensor: Tensor) -> bool:
    rows = tensor.shape[-1] if tensor.ndim == 1 else operands.row_stride(tensor)
    return tensor.shape[-1] % 16 == 0 and rows % 16 == 0 and tensor.stride(-1) == 1 and tensor.data_ptr() % 16 == 0
