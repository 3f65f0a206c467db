"""What a launch passes to a kernel for its tensors: strides, stand-ins for absent ones, the dtype of the statistics."""

from __future__ import annotations

import torch
from torch import Tensor


def row_stride(x: Tensor) -> int:
    """Elements from one row to the next.

    A single row's stride can be any number, and Triton compiles anew for a 1 or a multiple of 16: it counts as packed.
    """
    return x.stride(0) if x.shape[0] > 1 else x.shape[1]


def strides(x: Tensor) -> tuple[int, int]:
    """Elements from one row of a matrix to the next, and from one column to the next."""
    return row_stride(x), x.stride(1)


def first_given(tensor: Tensor | None, stand_in: Tensor) -> Tensor:
    """``tensor``, or ``stand_in`` where it is None: what a kernel does not read needs a pointer, too."""
    return stand_in if tensor is None else tensor


def statistics_dtype(dtype: torch.dtype) -> torch.dtype:
    """The dtype of mean and rstd for an x of ``dtype``: fp32, never less, and fp64 for fp64."""
    return torch.float64 if dtype == torch.float64 else torch.float32


def check_alike(x: Tensor, residual: Tensor) -> None:
    """Raises: ValueError if the two have not the same shape and dtype."""
    if x.shape != residual.shape or x.dtype != residual.dtype:
        raise ValueError(
            f"x has shape {tuple(x.shape)} and {x.dtype}, residual {tuple(residual.shape)} and {residual.dtype}; "
            "they must be the same"
        )
