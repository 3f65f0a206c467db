"""The call of a LayerNorm by a test. It is the same for every kernel, so that a test can tell two
kernels apart only by their results.

It is separate from ``specimens``, because the process that runs a learner's tests must not hold the
kernels that are tested.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


def make_checked(run: Callable[..., Any], *, backward: bool) -> Callable[..., Any]:
    """Return a function that checks its arguments and then calls ``run``.

    It is called as ``(x, w, b, eps)`` and returns y, or with ``backward`` as ``(dy, x, w, eps)``
    and returns dx, dw and db. x has shape (..., N), w and b (N,), in any floating dtypes; y and dx
    have x's shape and dtype, dw and db those of w. For arguments that no kernel accepts it raises
    ValueError or TypeError, with the reason. Autograd does not record it.
    """

    def layer_norm(x: Tensor, w: Tensor, b: Tensor, eps: float) -> Tensor:
        _check_arguments("layer_norm(x, w, b, eps)", {"x": x}, {"w": w, "b": b}, eps)
        with torch.no_grad():
            return run(x.detach(), w.detach(), b.detach(), eps)

    def layer_norm_backward(
        dy: Tensor, x: Tensor, w: Tensor, eps: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        _check_arguments("layer_norm_backward(dy, x, w, eps)", {"x": x, "dy": dy}, {"w": w}, eps)
        with torch.no_grad():
            return run(dy.detach(), x.detach(), w.detach(), eps)

    return layer_norm_backward if backward else layer_norm


def _check_arguments(
    call: str, matrices: dict[str, Tensor], vectors: dict[str, Tensor], eps: float
) -> None:
    for name, value in {**matrices, **vectors}.items():
        if not isinstance(value, Tensor) or not value.is_floating_point():
            actual = (
                f"a tensor of {value.dtype}"
                if isinstance(value, Tensor)
                else f"`{type(value).__name__}`"
            )
            raise TypeError(
                f"{call}: {name} has to be a tensor of a floating dtype, and is {actual}"
            )
    x = matrices["x"]
    if x.ndim == 0 or x.numel() == 0:
        raise ValueError(
            f"{call}: x has shape {tuple(x.shape)}; it needs at least one row and one column"
        )
    for name, value in matrices.items():
        if value.shape != x.shape:
            raise ValueError(
                f"{call}: {name} has shape {tuple(value.shape)}, and x {tuple(x.shape)}; they have"
                " to be the same"
            )
    for name, value in vectors.items():
        if value.shape != x.shape[-1:]:
            raise ValueError(
                f"{call}: {name} has shape {tuple(value.shape)}, and x has N = {x.shape[-1]}; it"
                f" has to be ({x.shape[-1]},)"
            )
    if isinstance(eps, bool) or not isinstance(eps, int | float):
        raise TypeError(f"{call}: eps has to be a number, and is `{type(eps).__name__}`")
