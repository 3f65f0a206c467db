"""The specification: LayerNorm, RMSNorm and the cross entropy of lesson 18 in float64, plain and
slow on purpose.

Everything else in the course is judged against these functions, so they are written to be read, not
to be fast: one line per formula, NumPy only, and no import from the course. Arrays may be NumPy
arrays, nested lists or PyTorch tensors on any device. Every element is converted exactly (fp16 and
bf16 values are float64 values), and results are float64.

Symbols: M rows, N columns, ``var`` biased (divided by N), ``rstd = 1 / sqrt(var + eps)``, ``xhat =
(x - mean) * rstd``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class LayerNormResult(NamedTuple):
    """The result of LayerNorm: ``y`` (M, N); ``mean`` and ``rstd`` (M,); all float64."""

    y: np.ndarray
    mean: np.ndarray
    rstd: np.ndarray


class RMSNormResult(NamedTuple):
    """The result of RMSNorm: ``y`` (M, N); ``rstd`` (M,), the reciprocal of the root mean square;
    both float64."""

    y: np.ndarray
    rstd: np.ndarray


class LayerNormVJP(NamedTuple):
    """The gradients of LayerNorm: ``dx`` (M, N); ``dw`` and ``db`` (N,), summed over the rows; all
    float64."""

    dx: np.ndarray
    dw: np.ndarray
    db: np.ndarray


class RMSNormVJP(NamedTuple):
    """The gradients of RMSNorm: ``dx`` (M, N); ``dw`` (N,), summed over the rows; both float64."""

    dx: np.ndarray
    dw: np.ndarray


class CrossEntropyResult(NamedTuple):
    """The result of the cross entropy: ``loss`` and ``lse``, the logarithm of the row's sum of
    exponentials; both (M,), float64."""

    loss: np.ndarray
    lse: np.ndarray


def float64(array) -> np.ndarray:
    """Return ``array`` as float64, exactly. A PyTorch tensor is recognised by its ``detach``
    method, so PyTorch is not imported."""
    if hasattr(array, "detach"):
        array = array.detach().cpu().double().numpy()
    return np.asarray(array, dtype=np.float64)


def layer_norm(x, w=None, b=None, eps: float = 1e-5) -> LayerNormResult:
    """Compute LayerNorm of every row: ``y = (x - mean) * rstd * w + b``.

    Args:
        x: shape (M, N), N >= 1.
        w, b: shape (N,), or None for all ones and all zeros.
        eps: added to the variance inside the root.

    Raises: ValueError if x is not two-dimensional or w or b does not have N elements.

    Source: Ba, Kiros and Hinton 2016, "Layer Normalization".
    """
    x, w, b = _check_inputs(x, w, b)
    mean = x.mean(axis=1)
    deviation = x - mean[:, None]
    var = (deviation**2).mean(axis=1)
    rstd = 1.0 / np.sqrt(var + eps)
    return LayerNormResult(deviation * rstd[:, None] * w + b, mean, rstd)


def rms_norm(x, w=None, eps: float = 1e-5) -> RMSNormResult:
    """Compute RMSNorm of every row: ``y = x * rstd * w`` with ``rstd = 1 / sqrt(mean(x^2) + eps)``.

    Args:
        x: shape (M, N), N >= 1.
        w: shape (N,), or None for all ones.
        eps: added to the mean square inside the root, as PyTorch does it.

    Raises: ValueError as :func:`layer_norm`.

    Source: Zhang and Sennrich 2019, "Root Mean Square Layer Normalization".
    """
    x, w, _ = _check_inputs(x, w, None)
    rstd = 1.0 / np.sqrt((x**2).mean(axis=1) + eps)
    return RMSNormResult(x * rstd[:, None] * w, rstd)


def layer_norm_vjp(dy, x, w=None, eps: float = 1e-5) -> LayerNormVJP:
    """Compute the gradients of LayerNorm: ``dx = (wdy - xhat * c1 - c2) * rstd``, ``dw = sum of dy
    * xhat``, ``db = sum of dy``.

    ``wdy = w * dy``; ``c1 = mean(xhat * wdy)`` and ``c2 = mean(wdy)`` are means over the columns of
    a row. The sums run over the rows. The statistics are computed anew from x, so the result
    depends on nothing that a forward pass has saved.

    Args:
        dy: shape (M, N), the gradient of some loss with respect to y.
        x: shape (M, N), N >= 1, the forward pass's input.
        w: shape (N,), or None for all ones.
        eps: added to the variance inside the root.

    Raises: ValueError as :func:`layer_norm`, and if dy does not have the shape of x.

    Source: Ba, Kiros and Hinton 2016, "Layer Normalization"; lesson 10 derives the formula and
    sympy proves it.
    """
    x, w, _ = _check_inputs(x, w, None)
    dy = _cotangent(dy, x)
    mean = x.mean(axis=1, keepdims=True)
    rstd = 1.0 / np.sqrt(((x - mean) ** 2).mean(axis=1, keepdims=True) + eps)
    xhat = (x - mean) * rstd
    wdy = w * dy
    c1 = (xhat * wdy).mean(axis=1, keepdims=True)
    c2 = wdy.mean(axis=1, keepdims=True)
    return LayerNormVJP((wdy - xhat * c1 - c2) * rstd, (dy * xhat).sum(axis=0), dy.sum(axis=0))


def rms_norm_vjp(dy, x, w=None, eps: float = 1e-5) -> RMSNormVJP:
    """Compute the gradients of RMSNorm: ``dx = (wdy - xhat * c1) * rstd`` and ``dw = sum over rows
    of dy * xhat``.

    ``xhat = x * rstd``, ``wdy = w * dy`` and ``c1 = mean(xhat * wdy)``. No mean was subtracted, so
    there is no c2.

    Args:
        dy: shape (M, N), the gradient of some loss with respect to y.
        x: shape (M, N), N >= 1, the forward pass's input.
        w: shape (N,), or None for all ones.
        eps: added to the mean square inside the root.

    Raises: ValueError as :func:`layer_norm_vjp`.

    Source: Zhang and Sennrich 2019, "Root Mean Square Layer Normalization"; lesson 10 derives the
    formula.
    """
    x, w, _ = _check_inputs(x, w, None)
    dy = _cotangent(dy, x)
    rstd = 1.0 / np.sqrt((x**2).mean(axis=1, keepdims=True) + eps)
    xhat = x * rstd
    wdy = w * dy
    c1 = (xhat * wdy).mean(axis=1, keepdims=True)
    return RMSNormVJP((wdy - xhat * c1) * rstd, (dy * xhat).sum(axis=0))


def cross_entropy(x, target) -> CrossEntropyResult:
    """Compute ``lse = log(sum(exp(x)))`` of every row and ``loss = lse - x[row, target[row]]``.

    Args:
        x: shape (M, N), N >= 1, the logits. A logit of -Inf has the probability 0; no row has these
            alone.
        target: shape (M,), whole numbers from 0 to N - 1, the right column of each row.

    Source: the logarithm of a softmax (Bridle 1990); the maximum is subtracted before the
    exponential and added back after the logarithm.
    """
    x, target = float64(x), _columns(target)
    largest = x.max(axis=1, keepdims=True)
    lse = largest[:, 0] + np.log(np.exp(x - largest).sum(axis=1))
    return CrossEntropyResult(lse - x[np.arange(len(x)), target], lse)


def cross_entropy_vjp(dloss, x, target) -> np.ndarray:
    """Compute ``dx = dloss * (softmax(x) - onehot(target))``, (M, N) float64. ``dloss``: shape
    (M,), the gradient of some loss of the losses.

    ``x`` and ``target`` are those of :func:`cross_entropy`; the sum of each row of dx is 0.
    """
    x, target = float64(x), _columns(target)
    softmax = np.exp(x - cross_entropy(x, target).lse[:, None])
    softmax[np.arange(len(x)), target] -= 1
    return float64(dloss)[:, None] * softmax


def _columns(target) -> np.ndarray:
    return float64(target).astype(np.int64)


def _cotangent(dy, x: np.ndarray) -> np.ndarray:
    dy = float64(dy)
    if dy.shape != x.shape:
        raise ValueError(
            f"dy has shape {dy.shape}; it is the gradient of y, so it must have the shape of x,"
            f" {x.shape}."
        )
    return dy


def _check_inputs(x, w, b) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    x = float64(x)
    if x.ndim != 2 or x.shape[1] == 0:
        raise ValueError(
            f"x has shape {x.shape}; it must be (M, N) with N >= 1. Flatten the leading dimensions"
            " first."
        )
    columns = x.shape[1]
    w = np.ones(columns) if w is None else float64(w)
    b = np.zeros(columns) if b is None else float64(b)
    for name, vector in (("w", w), ("b", b)):
        if vector.shape != (columns,):
            raise ValueError(
                f"{name} has shape {vector.shape}; x has {columns} columns, so it must be"
                f" ({columns},)."
            )
    return x, w, b
