"""Turn tensors into a kernel's arguments: strides, stand-ins for absent tensors, the dtype of the
statistics."""

from __future__ import annotations

import functools
import struct
from operator import or_
from typing import Any

import torch
from torch import Tensor

from course_lib.kernels.launch.device_classes import MOST_COLUMNS, count_vector_columns

# Columns. Heads are shorter; longer rows have designs that take matrices only.
_LONGEST_SCATTERED = 512


def row_stride(x: Tensor) -> int:
    """Return the elements from one row to the next.

    The stride of a single row can be any number, and Triton would compile again if it is 1 or a
    multiple of 16. So a single row gets the stride of a packed matrix.
    """
    return x.stride(0) if x.shape[0] > 1 else x.shape[1]


def strides(x: Tensor) -> tuple[Any, ...]:
    """Return the elements from one row of a matrix to the next, and from one column to the next.

    For the four dimensions of ``view_rows`` the first is a tuple, as ``arguments.find_rows`` takes
    it.
    """
    if x.ndim == 4:
        _, middle, inner, _ = x.shape
        return (inner, middle, *x.stride()[2::-1]), x.stride(3)
    return x.stride() if x.shape[0] > 1 else (x.shape[1], x.stride(1))


def view_rows(x: Tensor, *, scattered: bool) -> Tensor:
    """Return x, whose last dimension is a row, as a matrix (M, N).

    If x is not a matrix in memory, such as the heads of q in a tensor that has k and v as well, or
    a transpose of heads and tokens, return a copy; with ``scattered`` a view of the shape (outer,
    middle, inner, N), where two or three dimensions are enough and rows are short.
    """
    N = x.shape[-1]
    if x.ndim == 2:
        return x
    short = N <= _LONGEST_SCATTERED and x.numel() < N << 31
    if x.is_contiguous() or not (scattered and short):
        return x.reshape(-1, N)
    levels: list[list[int]] = []  # from the outermost: size and stride
    for size, stride in zip(x.shape[:-1], x.stride()[:-1], strict=True):
        if size == 1:
            continue
        if levels and levels[-1][1] == size * stride:
            levels[-1] = [levels[-1][0] * size, stride]
        else:
            levels.append([size, stride])
    if not 2 <= len(levels) <= 3:
        return x.reshape(-1, N)
    levels[1:-1] = levels[1:-1] or [[1, 0]]
    sizes, row_strides = zip(*levels, strict=True)
    return x.as_strided((*sizes, N), (*row_strides, x.stride(-1)))


def find_vector(x: Tensor, *row_strides: Any) -> int:
    """Return VECTOR: how many elements have 16 bytes, if rows of this length are loaded in vectors
    and as many divide the length of x's rows and all row strides. Otherwise, and where 16 divides
    them all, which Triton sees by itself, 1.

    A kernel writes ``N // VECTOR * VECTOR`` for N, and the same for each row stride. Without it the
    compiler would load rows of 1000 columns element by element.
    """
    numbers = x.shape[-1]  # 2^k divides all if it divides this
    for stride in row_strides:
        levels = stride[2:] if type(stride) is tuple else (stride,)
        numbers = functools.reduce(or_, levels, numbers)
    vector = count_vector_columns(x.shape[-1], x.element_size())
    return 1 if numbers % 16 == 0 or numbers % vector else vector


def first_given(tensor: Tensor | None, stand_in: Tensor) -> Tensor:
    """Return ``tensor``, or ``stand_in`` if it is None, because a kernel needs a pointer even for a
    tensor that it does not read."""
    return stand_in if tensor is None else tensor


def make_partials(P: int, x: Tensor, total: Tensor | None) -> Tensor | None:
    """Allocate P partial rows of the column sums ``total``: shape (P, N), in the dtype of x's
    statistics; None if there is no total.

    Each sum has a tensor of its own, because the alignment of the second half of a shared one
    would depend on P.
    """
    if total is None:
        return None
    return torch.empty((P, x.shape[-1]), dtype=statistics_dtype(x.dtype), device=x.device)


def statistics_dtype(dtype: torch.dtype) -> torch.dtype:
    """Return the dtype of mean and rstd for an x of ``dtype``: fp64 for fp64, else fp32."""
    return torch.float64 if dtype == torch.float64 else torch.float32


def encode_eps(eps: float, dtype: torch.dtype) -> float:
    """Return eps as a forward kernel takes it, for an x of ``dtype``.

    Triton passes a float in fp32, which is enough for all x but fp64. For fp64, return an integer
    with the bits of eps. Its sign bit is inverted: without that eps = 0 would be passed in 32 bits.
    """
    if dtype != torch.float64:
        return eps
    return struct.unpack("<q", struct.pack("<d", eps + 0.0))[0] ^ -(1 << 63)


def check_columns(x: Tensor) -> None:
    """Raise ValueError if a row is so long that 32 bits cannot count its columns."""
    if x.shape[-1] > MOST_COLUMNS:
        raise ValueError(
            f"x has {x.shape[-1]} columns; the kernels count them in 32 bits and take at most"
            f" {MOST_COLUMNS}"
        )


def check_alike(x: Tensor, residual: Tensor) -> None:
    """Raise ValueError if the two differ in shape or dtype."""
    if x.shape != residual.shape or x.dtype != residual.dtype:
        raise ValueError(
            f"x has shape {tuple(x.shape)} and {x.dtype}, residual {tuple(residual.shape)} and"
            f" {residual.dtype}; they must be the same"
        )
