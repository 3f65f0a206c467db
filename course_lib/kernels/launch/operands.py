"""Turn tensors into a kernel's arguments: strides, stand-ins for absent tensors, the dtype of the
statistics."""

from __future__ import annotations

import functools
import struct
from operator import or_

import torch
from torch import Tensor

from course_lib.kernels.launch.device_classes import MOST_COLUMNS, count_vector_columns


def row_stride(x: Tensor) -> int:
    """Return the elements from one row to the next.

    The stride of a single row can be any number, and Triton would compile again if it is 1 or a
    multiple of 16. So a single row gets the stride of a packed matrix.
    """
    return x.stride(0) if x.shape[0] > 1 else x.shape[1]


def strides(x: Tensor) -> tuple[int, ...]:
    """Return the elements from one row of a matrix to the next, and from one column to the next."""
    return x.stride() if x.shape[0] > 1 else (x.shape[1], x.stride(1))


def find_vector(x: Tensor, *row_strides: int) -> int:
    """Return VECTOR: how many elements have 16 bytes, if rows of this length are loaded in vectors
    and as many divide the length of x's rows and all row strides. Otherwise, and where 16 divides
    them all, which Triton sees by itself, 1.

    A kernel writes ``N // VECTOR * VECTOR`` for N, and the same for each row stride. Without it the
    compiler would load rows of 1000 columns element by element.
    """
    numbers = functools.reduce(or_, row_strides, x.shape[-1])  # 2^k divides all if it divides this
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
    return torch.empty((P, x.shape[1]), dtype=statistics_dtype(x.dtype), device=x.device)


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
    if x.shape[1] > MOST_COLUMNS:
        raise ValueError(
            f"x has {x.shape[1]} columns; the kernels count them in 32 bits and take at most"
            f" {MOST_COLUMNS}"
        )


def check_alike(x: Tensor, residual: Tensor) -> None:
    """Raise ValueError if the two differ in shape or dtype."""
    if x.shape != residual.shape or x.dtype != residual.dtype:
        raise ValueError(
            f"x has shape {tuple(x.shape)} and {x.dtype}, residual {tuple(residual.shape)} and"
            f" {residual.dtype}; they must be the same"
        )
