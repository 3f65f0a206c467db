"""Lesson 14: LayerNorms with a mistake in the backward pass, to be trained beside the right one.
Their forward pass is right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

Dx = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]


def right_dx(wdy: Tensor, xhat: Tensor, c1: Tensor, c2: Tensor, rstd: Tensor) -> Tensor:
    """Return dx by the formula of lesson 10; c1, c2 and rstd have one number per row."""
    return (wdy - xhat * c1 - c2) * rstd


def norm_with(dx: Dx = right_dx, *, w_in_dx: bool = True) -> type[nn.LayerNorm]:
    """Return a module class like torch.nn.LayerNorm, made of PyTorch operations, with this backward
    pass.

    Args:
        dx: computes the gradient of x from wdy, xhat, c1, c2 and rstd.
        w_in_dx: False forgets the weight: dx gets dy for wdy.
    """

    class _HandWrittenBackward(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor, w: Tensor, b: Tensor, eps: float) -> Tensor:
            y, mean, rstd = torch.native_layer_norm(x, x.shape[-1:], w, b, eps)
            ctx.save_for_backward(x, w, mean, rstd)
            return y

        @staticmethod
        def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
            x, w, mean, rstd = ctx.saved_tensors
            xhat, wdy = (x - mean) * rstd, w * dy if w_in_dx else dy
            c1, c2 = (xhat * wdy).mean(-1, keepdim=True), wdy.mean(-1, keepdim=True)
            rows = tuple(range(dy.ndim - 1))
            return dx(wdy, xhat, c1, c2, rstd), (dy * xhat).sum(rows), dy.sum(rows), None

    class Norm(nn.LayerNorm):
        def forward(self, input: Tensor) -> Tensor:
            return _HandWrittenBackward.apply(input, self.weight, self.bias, self.eps)  # pyright: ignore[reportReturnType]

    return Norm
