"""Tests of gradients for lesson 10: symbolic differentiation, PyTorch's gradcheck, and a few wrong
formulas of dx."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import sympy
import torch
from torch import Tensor
from torch.autograd.gradcheck import GradcheckError, gradcheck

import course_lib
from course_lib.lessons.pictures.block_stepper.model import EXAMPLE
from course_lib.norms import reference

EPS = 1e-5
_X = np.array(EXAMPLE)


def find_remainders(N: int, kind: str = "layer_norm", *, with_c2: bool = True) -> set[sympy.Expr]:
    """Return derivative minus formula, simplified, for each element of dx of a row of N symbols.
    The result {0} proves the formula.

    Args:
        kind: "layer_norm" or "rms_norm".
        with_c2: False leaves c2 out of LayerNorm's formula; RMSNorm's has no c2.
    """
    x, w, dy = (sympy.symbols(f"{name}:{N}", real=True) for name in ("x", "w", "dy"))
    eps = sympy.Symbol("eps", positive=True)
    layer = kind == "layer_norm"
    mean = sum(x) / N if layer else sympy.Integer(0)
    rstd = 1 / sympy.sqrt(sum((value - mean) ** 2 for value in x) / N + eps)
    xhat = [(value - mean) * rstd for value in x]
    wdy = [w[a] * dy[a] for a in range(N)]
    loss = sum(wdy[a] * xhat[a] for a in range(N))
    c1 = sum(xhat[a] * wdy[a] for a in range(N)) / N
    c2 = sum(wdy) / N if layer and with_c2 else 0
    return {
        sympy.simplify(sympy.diff(loss, x[i]) - (wdy[i] - xhat[i] * c1 - c2) * rstd)
        for i in range(N)
    }


def make_layer_norm(dw_of: Callable[[Tensor, Tensor, Tensor], Tensor]) -> Callable[..., Any]:
    """Return a LayerNorm of (x, w, b) with a backward written by hand: dx and db are right, dw is
    ``dw_of(dy, x, xhat)``."""

    class _HandWrittenLayerNorm(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor, w: Tensor, b: Tensor) -> Tensor:
            mean = x.mean(dim=1, keepdim=True)
            rstd = torch.rsqrt(x.var(dim=1, correction=0, keepdim=True) + EPS)
            ctx.save_for_backward(x, w, mean, rstd)
            return (x - mean) * rstd * w + b

        @staticmethod
        def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            (dy,), (x, w, mean, rstd) = gradients, ctx.saved_tensors
            xhat, wdy = (x - mean) * rstd, w * dy
            c1, c2 = (xhat * wdy).mean(dim=1, keepdim=True), wdy.mean(dim=1, keepdim=True)
            return (wdy - xhat * c1 - c2) * rstd, dw_of(dy, x, xhat), dy.sum(dim=0)

    return _HandWrittenLayerNorm.apply


def make_inputs(dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    """Return inputs for gradcheck: x of shape (4, 6) with mean 3, w and b of shape (6,)."""
    generator = torch.Generator().manual_seed(0)
    x = 3 + torch.randn(4, 6, generator=generator, dtype=torch.float64)
    w, b = (0.5 + torch.rand(6, generator=generator, dtype=torch.float64) for _ in range(2))
    x, w, b = (values.to(course_lib.DEVICE, dtype).requires_grad_() for values in (x, w, b))
    return x, w, b


def run_gradcheck(
    dw_of: Callable[[Tensor, Tensor, Tensor], Tensor], dtype: torch.dtype = torch.float64
) -> str:
    """Return the error that gradcheck reports for a LayerNorm with this dw; "" if it passes."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # gradcheck warns about every dtype except float64
            gradcheck(make_layer_norm(dw_of), make_inputs(dtype))
    except GradcheckError as error:
        return str(error).strip()
    return ""


# the right formula of dx and wrong ones, each a function of wdy, xhat, c1, c2, rstd and N
MISTAKES: dict[str, Callable[..., np.ndarray]] = {
    "right": lambda wdy, xhat, c1, c2, rstd, N: (wdy - xhat * c1 - c2) * rstd,
    "c1 forgotten": lambda wdy, xhat, c1, c2, rstd, N: (wdy - c2) * rstd,
    "c2 forgotten": lambda wdy, xhat, c1, c2, rstd, N: (wdy - xhat * c1) * rstd,
    "rstd forgotten": lambda wdy, xhat, c1, c2, rstd, N: wdy - xhat * c1 - c2,
    "c1 not divided by N": lambda wdy, xhat, c1, c2, rstd, N: (wdy - xhat * N * c1 - c2) * rstd,
    "always zero": lambda wdy, xhat, c1, c2, rstd, N: 0 * wdy,
}


def measure_mistake(name: str, *, ones: bool) -> float:
    """Return the largest error of a formula of MISTAKES on the worked example of 3 x 8.

    Args:
        ones: set dy and w to 1, as in ``y.sum().backward()`` on a fresh layer; else dy is random
            and w rises from 0.5 to 1.5.
    """
    rows, N = _X.shape
    w = np.ones(N) if ones else np.linspace(0.5, 1.5, N)
    dy = np.ones((rows, N)) if ones else np.random.default_rng(1).standard_normal((rows, N))
    forward = reference.layer_norm(_X, eps=EPS)
    xhat, wdy = forward.y, w * dy
    c1, c2 = (xhat * wdy).mean(axis=1, keepdims=True), wdy.mean(axis=1, keepdims=True)
    dx = MISTAKES[name](wdy, xhat, c1, c2, forward.rstd[:, None], N)
    return float(np.abs(dx - reference.layer_norm_vjp(dy, _X, w, EPS).dx).max())


def list_seen(test: str) -> list[str]:
    """List which of five mistakes in LayerNorm's dx a test sees: those that cause an error above
    0.001 on the worked example.

    Args:
        test: "y.sum(), w = 1", "y.sum(), random w" or "random dy and w".
    """
    rows, N = _X.shape
    ones = np.ones((rows, N))
    random_dy = np.random.default_rng(0).normal(0.5, size=(rows, N))
    random_w = np.linspace(0.5, 1.5, N)
    dy, w = {
        "y.sum(), w = 1": (ones, ones[0]),
        "y.sum(), random w": (ones, random_w),
        "random dy and w": (random_dy, random_w),
    }[test]
    forward = reference.layer_norm(_X, eps=EPS)
    xhat, rstd = forward.y, forward.rstd[:, None]

    def compute(wdy: np.ndarray, *, has_c1: bool = True, has_c2: bool = True) -> np.ndarray:
        c1, c2 = (xhat * wdy).mean(axis=1, keepdims=True), wdy.mean(axis=1, keepdims=True)
        return (wdy - has_c1 * xhat * c1 - has_c2 * c2) * rstd

    wrong = {
        "c1 forgotten": compute(w * dy, has_c1=False),
        "c2 forgotten": compute(w * dy, has_c2=False),
        "rstd forgotten": compute(w * dy) / rstd,
        "w forgotten": compute(dy),
        "dy never read": compute(w * ones),
    }
    right = reference.layer_norm_vjp(dy, _X, w, EPS).dx
    return [name for name, dx in wrong.items() if np.abs(dx - right).max() > 1e-3]
