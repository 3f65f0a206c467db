"""The common part of LayerNorm's and RMSNorm's forward passes: allocate the outputs, choose a
design and call it.

A design is a function that fills the outputs. The designs of layer_norm.py and rms_norm.py
("resident", "blocked") have a kernel per norm, which the lessons read; the shared designs here have
one kernel for both norms.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import torch
from torch import Tensor

from course_lib.kernels.few_rows import few_rows_forward
from course_lib.kernels.launch import choice, operands
from course_lib.kernels.launch.device_classes import DeviceClass
from course_lib.kernels.split_row import split_forward
from course_lib.kernels.two_tiles import two_tiles_forward

# A design takes the class of the device, x, residual, w, b, y, total, mean, rstd, eps and w_offset,
# and fills y, total (None without a residual), mean (None for RMSNorm) and rstd.
Design = Callable[
    [
        DeviceClass,
        Tensor,
        Tensor | None,
        Tensor | None,
        Tensor | None,
        Tensor,
        Tensor | None,
        Tensor | None,
        Tensor,
        float,
        float,
    ],
    None,
]
SHARED_DESIGNS: dict[str, Design] = {
    "two tiles": two_tiles_forward,
    "split": split_forward,
    "few rows": few_rows_forward,
}


def norm_forward(
    x: Tensor, residual: Tensor | None, w: Tensor | None, b: Tensor | None, eps: float, *,
    centred: bool, algorithm: str, designs: dict[str, Design], dtype: torch.dtype | None = None,
    w_offset: float = 0.0, save: bool = True,
) -> tuple[Tensor, Tensor, Tensor | None, Tensor]:  # fmt: skip
    """Compute a norm of the rows of x, or with ``residual`` of those of ``total = x + residual``,
    by one of ``designs``.

    Args:
        x, residual: shape (..., N), N >= 1, of one dtype, fp32, fp16, bf16 or fp64, any strides;
            residual may be None. A matrix has M rows here and in what this module calls.
        w, b: shape (N,), any of those dtypes, or None.
        eps: added inside the root.
        centred: True for LayerNorm, False for RMSNorm, whose b is None.
        algorithm: a key of ``designs``, or "auto", which takes that of
            :func:`choice.choose_forward`.
        dtype: of y; None takes x's.
        w_offset: added to w, if there is a w.
        save: False if there is no backward pass. mean and rstd are then the same tensor, whose
            values are meaningless.

    Returns: total, of x's dtype (y without a residual), and y, both of x's shape, contiguous; mean
    (None for RMSNorm) and rstd, shape (M,), fp32, or fp64 for an fp64 x.

    Raises: ValueError if the algorithm is unknown or cannot take this x, x has more than
    MOST_COLUMNS columns, or the shapes or dtypes of
    x and residual differ.
    """
    if algorithm != "auto" and algorithm not in designs:
        raise ValueError(
            f"algorithm is {algorithm!r}; it can be {', '.join(map(repr, ('auto', *designs)))}"
        )
    operands.check_columns(x)
    if residual is not None:
        operands.check_alike(x, residual)
    shape, N = x.shape, x.shape[-1]
    alone = residual is None and algorithm in ("auto", "resident")
    x = operands.view_rows(x, scattered=alone)
    residual = None if residual is None else operands.view_rows(residual, scattered=False)
    y = torch.empty((prod(shape[:-1]), N), dtype=dtype or x.dtype, device=x.device)
    total = None if residual is None else torch.empty_like(y, dtype=x.dtype)
    rstd = torch.empty(y.shape[0], dtype=operands.statistics_dtype(x.dtype), device=x.device)
    # reusing rstd saves the host an allocation
    mean = None if not centred else torch.empty_like(rstd) if save else rstd
    if y.shape[0]:
        w = None if w is None else w.contiguous()
        b = None if b is None else b.contiguous()
        tuned = choice.find_device_class(x)
        if algorithm == "auto":
            algorithm = choice.choose_forward(x, residual, w, b, centred=centred, tuned=tuned)
        eps = operands.encode_eps(eps, x.dtype)
        designs[algorithm](tuned, x, residual, w, b, y, total, mean, rstd, eps, w_offset)
    if len(shape) != 2:
        y = y.view(shape)
        total = None if total is None else total.view(shape)
    return operands.first_given(total, y), y, mean, rstd
