"""The course's forward and backward kernels as two functions on matrices: what exercise 14a wires into autograd.

They are as narrow as launchers mostly are. A matrix may have any distance between its rows, but the elements of a row
are taken to follow each other, whatever the tensor's last stride says. No gradient flows through them by itself.
"""

from __future__ import annotations

import torch
from torch import Tensor

from course_lib.kernels.launch.operands import statistics_dtype
from course_lib.kernels.layer_norm import layer_norm_forward
from course_lib.kernels.layer_norm_backward import layer_norm_backward


def launch_forward(x: Tensor, w: Tensor | None, b: Tensor | None, eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """LayerNorm of every row of a matrix.

    Args:
        x: shape (M, N). Row r is the N elements from r * x.stride(0) on.
        w, b: shape (N,), of any floating dtype; None for all ones and all zeros.

    Returns: y, of x's shape and dtype; mean and rstd, shape (M,), fp32.

    Raises: ValueError if x is not a matrix.
    """
    return layer_norm_forward(_read_as_kernel(x.detach(), "x"), _pack(w), _pack(b), eps)


def launch_backward(dy: Tensor, x: Tensor, w: Tensor | None, mean: Tensor, rstd: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of :func:`launch_forward`.

    Args:
        dy, x: shape (M, N), rows as in launch_forward.
        w: shape (N,), or None for all ones.
        mean, rstd: shape (M,), as launch_forward returned them for this x.

    Returns: dx, of x's shape and dtype; dw and db, shape (N,), both fp32 whatever the dtype of w is.

    Raises: ValueError if dy or x is not a matrix.
    """
    sums = statistics_dtype(x.dtype)
    packed = _pack(w)
    ones_or_w = torch.ones(x.shape[-1], dtype=sums, device=x.device) if packed is None else packed.to(sums)
    dy, x = _read_as_kernel(dy, "dy"), _read_as_kernel(x, "x")
    return layer_norm_backward(dy, x, ones_or_w, mean, rstd, bias_dtype=sums)


def _pack(vector: Tensor | None) -> Tensor | None:
    return None if vector is None else vector.detach().contiguous()


def _read_as_kernel(matrix: Tensor, name: str) -> Tensor:
    """The elements at row * stride(0) + column: those of ``matrix`` only if its last stride is 1.

    A compiled kernel would read past the end of some tensors; here such elements are NaN.
    """
    if matrix.ndim != 2:
        raise ValueError(f"{name} has shape {tuple(matrix.shape)}; the kernels take matrices (M, N). Flatten the leading dimensions first.")
    M, N = matrix.shape
    if N <= 1 or matrix.stride(1) == 1:
        return matrix
    itemsize, start = matrix.element_size(), matrix.storage_offset()
    flat = torch.as_strided(matrix, (matrix.untyped_storage().nbytes() // itemsize - start,), (1,), start)
    at = torch.arange(M, device=matrix.device)[:, None] * matrix.stride(0) + torch.arange(N, device=matrix.device)
    return torch.where(at < len(flat), flat[at.clamp(max=len(flat) - 1)], torch.nan)
