"""The course's forward and backward kernels as two functions on matrices, which exercise 14a wires
into autograd.

Like most launchers, they support only some strides: the rows of a matrix may lie at any distance,
but the elements of a row are read as adjacent, whatever the tensor's last stride is. Autograd does
not record them.
"""

from __future__ import annotations

import torch
from torch import Tensor

from course_lib.kernels.launch.operands import statistics_dtype
from course_lib.kernels.layer_norm import layer_norm_forward
from course_lib.kernels.layer_norm_backward import layer_norm_backward


def launch_forward(
    x: Tensor, w: Tensor | None, b: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Compute LayerNorm of every row of a matrix.

    Args:
        x: shape (M, N). Row r is the N elements from r * x.stride(0) on.
        w, b: shape (N,), of any floating dtype; None for all ones and all zeros.

    Returns: y, of x's shape and dtype; mean and rstd, shape (M,), fp32.

    Raises: ValueError if x is not a matrix.
    """
    return layer_norm_forward(_read_as_kernel(x.detach(), "x"), _pack(w), _pack(b), eps)


def launch_backward(
    dy: Tensor, x: Tensor, w: Tensor | None, mean: Tensor, rstd: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Compute the gradients of :func:`launch_forward`.

    Args:
        dy, x: shape (M, N), rows as in launch_forward.
        w: shape (N,), or None for all ones.
        mean, rstd: shape (M,), as launch_forward returned them for this x.

    Returns: dx, of x's shape and dtype; dw and db, shape (N,), both fp32 whatever the dtype of w
    is.

    Raises: ValueError if dy or x is not a matrix.
    """
    sums = statistics_dtype(x.dtype)
    packed = _pack(w)
    ones_or_w = (
        torch.ones(x.shape[-1], dtype=sums, device=x.device) if packed is None else packed.to(sums)
    )
    dy, x = _read_as_kernel(dy, "dy"), _read_as_kernel(x, "x")
    dx, dw, db = layer_norm_backward(dy, x, ones_or_w, mean, rstd, bias_dtype=sums)
    assert dw is not None and db is not None  # both are needed
    return dx, dw, db


def _pack(vector: Tensor | None) -> Tensor | None:
    return None if vector is None else vector.detach().contiguous()


def _read_as_kernel(matrix: Tensor, name: str) -> Tensor:
    """Return the elements at row * stride(0) + column, as the kernel reads them. They equal
    ``matrix`` only if its last stride is 1.

    For some tensors a compiled kernel would read past the end of memory; such elements are NaN
    here.
    """
    if matrix.ndim != 2:
        raise ValueError(
            f"{name} has shape {tuple(matrix.shape)}; the kernels take matrices (M, N). Flatten the"
            " leading dimensions first."
        )
    M, N = matrix.shape
    if N <= 1 or matrix.stride(1) == 1:
        return matrix
    itemsize, start = matrix.element_size(), matrix.storage_offset()
    flat = torch.as_strided(
        matrix, (matrix.untyped_storage().nbytes() // itemsize - start,), (1,), start
    )
    at = torch.arange(M, device=matrix.device)[:, None] * matrix.stride(0) + torch.arange(
        N, device=matrix.device
    )
    return torch.where(at < len(flat), flat[at.clamp(max=len(flat) - 1)], torch.nan)
