"""The functions of torch and of torch.nn.functional."""

from __future__ import annotations

import contextlib
import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _random
from ._dtypes import (
    dtype,
    finfo,
    float32,
    float64,
    int64,
    of_number,
    of_numpy,
    promote,
    promote_operands,
)
from ._layout import unpack_sizes
from ._random import Generator
from ._refusal import refuse
from ._tensor import Tensor, check_device, compute_operand, from_values, make_new, share

# ---- tensors from numbers


def tensor(
    data: Any, *, dtype: dtype | None = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    _check(device, requires_grad)
    return from_values(_collect(data, 0), dtype or _infer(data))


def _infer(data: Any) -> dtype:
    if isinstance(data, Tensor):
        return data.dtype
    if isinstance(data, (np.ndarray, np.generic)):
        return of_numpy(data.dtype)
    if not isinstance(data, Sequence):
        return of_number(data)
    common = None
    for part in data:
        common = _infer(part) if common is None else promote(common, _infer(part))
    return common or float32


def _collect(data: Any, depth: int) -> np.ndarray:
    """Return nested sequences, and the tensors in them, as one array."""
    if isinstance(data, Tensor):
        return data._values
    if not isinstance(data, Sequence):
        return np.asarray(data)
    parts = [_collect(part, depth + 1) for part in data]
    for part in parts:
        if part.shape != parts[0].shape:
            lengths = [array.shape[0] if array.ndim else 0 for array in (parts[0], part)]
            raise ValueError(
                f"expected sequence of length {lengths[0]} at dim {depth + 1} (got {lengths[1]})"
            )
    return np.stack(parts) if parts else np.empty(0, np.float32)


def from_numpy(ndarray: np.ndarray) -> Tensor:
    return share(ndarray)


def empty(
    *size: Any, dtype: dtype | None = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    _check(device, requires_grad)
    return make_new(unpack_sizes(size), dtype or float32)


def zeros(*size: Any, **options: Any) -> Tensor:
    return empty(*size, **options).fill_(0)


def ones(*size: Any, **options: Any) -> Tensor:
    return empty(*size, **options).fill_(1)


def full(
    size: Sequence[int], fill_value: Any, *, dtype: dtype | None = None, **options: Any
) -> Tensor:
    return empty(size, dtype=dtype or of_number(fill_value), **options).fill_(fill_value)


def empty_like(
    input: Tensor, *, dtype: dtype | None = None, device: Any = None, memory_format: Any = None
) -> Tensor:
    check_device(device)
    return make_new(input.shape, dtype or input.dtype, [] if memory_format else [input])


def zeros_like(input: Tensor, **options: Any) -> Tensor:
    return empty_like(input, **options).fill_(0)


def full_like(input: Tensor, fill_value: Any, **options: Any) -> Tensor:
    return empty_like(input, **options).fill_(fill_value)


def arange(*bounds: Any, dtype: dtype | None = None, device: Any = None) -> Tensor:
    """Return the numbers of ``arange(end)`` or ``arange(start, end, step)``."""
    check_device(device)
    start, end, step = (0, *bounds, 1) if len(bounds) == 1 else (*bounds, 1)[:3]
    count = max(math.ceil((end - start) / step), 0)
    return from_values(
        start + np.arange(count, dtype=np.int64) * step, dtype or promote_operands(bounds)
    )


def rand(*size: Any, **options: Any) -> Tensor:
    return _draw(Generator.uniform, size, **options)


def randn(*size: Any, **options: Any) -> Tensor:
    return _draw(Generator.normal, size, **options)


def _draw(
    draw: Any,
    size: tuple,
    *,
    generator: Generator | None = None,
    dtype: dtype | None = None,
    device: Any = None,
) -> Tensor:
    check_device(device)
    shape, kind = tuple(unpack_sizes(size)), dtype or float32
    if kind not in (float32, float64):
        refuse(f"a random tensor of {kind}")
    return from_values(
        draw(generator or _random.default, math.prod(shape), kind.stored).reshape(shape), kind
    )


def randint(*bounds: Any, generator: Generator | None = None, device: Any = None) -> Tensor:
    """Return the random integers of ``randint(high, size)`` or ``randint(low, high, size)``."""
    check_device(device)
    low, high, size = (0, *bounds) if len(bounds) == 2 else bounds
    return from_values(
        (generator or _random.default).integers(low, high, math.prod(size)).reshape(size), int64
    )


def randperm(n: int, *, generator: Generator | None = None) -> Tensor:
    return from_values((generator or _random.default).permutation(n), int64)


def _check(device: Any, requires_grad: bool) -> None:
    check_device(device)
    if requires_grad:
        refuse("requires_grad=True")


# ---- functions of tensors


def as_strided(
    input: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Tensor:
    return input.as_strided(size, stride, storage_offset)


def equal(input: Tensor, other: Tensor) -> bool:
    return input.shape == other.shape and input.eq(other).all().item()


def allclose(
    input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> bool:
    if input.dtype is not other.dtype:
        raise RuntimeError(f"{input.dtype.word} did not match {other.dtype.word}")
    return np.allclose(input._values, other._values, rtol, atol, equal_nan)


def count_nonzero(input: Tensor) -> Tensor:
    return input.ne(0).sum()


def where(condition: Tensor, input: Any, other: Any) -> Tensor:
    kind = promote_operands([input, other])
    values = np.where(condition._values, compute_operand(input, kind), compute_operand(other, kind))
    return from_values(values, kind, [condition, input, other])


class no_grad(contextlib.ContextDecorator):
    """torch.no_grad, around a block or a function. No gradient flows in a tab anyway."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        pass


# ---- torch.nn.functional


def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    rows = _take_rows(input, normalized_shape)
    return _scale(input, rows - rows.mean(1, keepdims=True), weight, bias, eps)


def rms_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    eps: float | None = None,
) -> Tensor:
    if eps is None:
        eps = finfo(float64 if input.dtype is float64 else float32).eps
    return _scale(input, _take_rows(input, normalized_shape), weight, None, eps)


def _take_rows(input: Tensor, normalized_shape: Sequence[int]) -> np.ndarray:
    """Return the rows to normalise, in fp64."""
    last_sizes = list(normalized_shape)
    if list(input.shape[max(input.ndim - len(last_sizes), 0) :]) != last_sizes:
        raise RuntimeError(
            f"Given normalized_shape={last_sizes}, expected input with shape [*,"
            f" {', '.join(map(str, last_sizes))}], but got input of size{list(input.shape)}"
        )
    return input._values.reshape(-1, math.prod(last_sizes)).astype(np.float64)


def _scale(
    input: Tensor, rows: np.ndarray, weight: Tensor | None, bias: Tensor | None, eps: float
) -> Tensor:
    """Divide rows by their root mean square, apply weight and bias, and round once to the dtype of
    ``input``."""
    with np.errstate(all="ignore"):
        y = rows / np.sqrt((rows * rows).mean(1, keepdims=True) + eps)
        y = y if weight is None else y * weight._values.reshape(-1)
        y = y if bias is None else y + bias._values.reshape(-1)
    return from_values(y.reshape(input.shape), input.dtype)


def pad(input: Tensor, pad: Sequence[int]) -> Tensor:
    """Add zeros in the last dimension. ``pad``: the number of zeros before and behind."""
    before, behind = (operator.index(count) for count in pad)
    padded = zeros(*input.shape[:-1], before + input.shape[-1] + behind, dtype=input.dtype)
    padded[..., before : before + input.shape[-1]] = input
    return padded
