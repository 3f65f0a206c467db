"""PyTorch for a browser tab: the names that the lessons' cells and the course's modules need, on NumPy's arrays.

The set of names is closed. What is here gives PyTorch's results; everything else says that it needs PyTorch.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _definitions, _random
from ._dtypes import (
    bfloat16,
    bool_,
    dtype,
    finfo,
    float16,
    float32,
    float64,
    int32,
    int64,
    narrow,
    of_number,
    of_numpy,
    promote,
    promote_operands,
    uint8,
    widen,
)
from ._random import Generator
from ._refusal import NeedsPyTorch, Submodule, refuse
from ._tensor import OPERATIONS, Size, Tensor, UntypedStorage, _new, _unpack, check_device, device, from_values, share

globals().update(OPERATIONS)
globals()["bool"] = bool_
half, double, long = float16, float64, int64
nan, inf, pi = math.nan, math.inf, math.pi
contiguous_format = "contiguous"


def __getattr__(name: str) -> Any:
    raise NeedsPyTorch(f"torch.{name}")


# ---- tensors out of numbers


def tensor(data: Any, *, dtype: dtype | None = None, device: Any = None, requires_grad: Any = False) -> Tensor:
    _check(device, requires_grad)
    kind = dtype or _infer(data)
    values = np.asarray(_as_numpy(data, ()))
    return from_values(values, kind)


def _infer(data: Any) -> dtype:
    if isinstance(data, Tensor):
        return data.dtype
    if isinstance(data, np.ndarray) or (isinstance(data, np.generic) and not isinstance(data, float)):
        return of_numpy(data.dtype)
    if not isinstance(data, Sequence):
        return of_number(data)
    found = None
    for part in data:
        found = _infer(part) if found is None else promote(found, _infer(part))
    return found or float32


def _as_numpy(data: Any, shape: tuple[int, ...]) -> Any:
    """Nested sequences with the tensors in them as NumPy's arrays."""
    if isinstance(data, Tensor):
        return data._values
    if not isinstance(data, Sequence):
        return data
    parts = [_as_numpy(part, ()) for part in data]
    sizes = {np.shape(part) for part in parts}
    if len(sizes) > 1:
        first = np.shape(parts[0])
        other = next(np.shape(part) for part in parts if np.shape(part) != first)
        raise ValueError(
            f"expected sequence of length {first[0] if first else 0} at dim 1 (got {other[0] if other else 0})"
        )
    return np.array(parts)


def from_numpy(array: np.ndarray) -> Tensor:
    return share(array)


def empty(*size: Any, dtype: dtype | None = None, device: Any = None, requires_grad: Any = False) -> Tensor:
    _check(device, requires_grad)
    return _new(_unpack(size), dtype or float32)


def zeros(*size: Any, **options: Any) -> Tensor:
    return empty(*size, **options).fill_(0)


def ones(*size: Any, **options: Any) -> Tensor:
    return empty(*size, **options).fill_(1)


def full(size: Sequence[int], fill_value: Any, *, dtype: dtype | None = None, **options: Any) -> Tensor:
    return empty(size, dtype=dtype or of_number(fill_value), **options).fill_(fill_value)


def empty_like(input: Tensor, *, dtype: Any = None, device: Any = None, memory_format: Any = None) -> Tensor:
    check_device(device)
    return _new(input.shape, dtype or input.dtype, [] if memory_format else [input])


def zeros_like(input: Tensor, **options: Any) -> Tensor:
    return empty_like(input, **options).fill_(0)


def ones_like(input: Tensor, **options: Any) -> Tensor:
    return empty_like(input, **options).fill_(1)


def full_like(input: Tensor, fill_value: Any, **options: Any) -> Tensor:
    return empty_like(input, **options).fill_(fill_value)


def arange(start: Any, end: Any = None, step: Any = 1, *, dtype: dtype | None = None, device: Any = None) -> Tensor:
    check_device(device)
    start, end = (0, start) if end is None else (start, end)
    kind = dtype or promote_operands([part for part in (start, end, step)])
    count = math.ceil((end - start) / step)
    return from_values(start + np.arange(count) * step, int64 if kind is bool_ else kind)


def rand(*size: Any, generator: Generator | None = None, dtype: dtype | None = None, device: Any = None) -> Tensor:
    return _draw("uniform", size, generator, dtype, device)


def randn(*size: Any, generator: Generator | None = None, dtype: dtype | None = None, device: Any = None) -> Tensor:
    return _draw("normal", size, generator, dtype, device)


def _draw(how: str, size: tuple, generator: Generator | None, dtype: dtype | None, device: Any) -> Tensor:
    check_device(device)
    shape, kind = tuple(_unpack(size)), dtype or float32
    if kind not in (float32, float64):
        refuse(f"a random tensor of {kind}")
    drawn = getattr(generator or _random.default, how)(math.prod(shape), kind.stored)
    return from_values(drawn.reshape(shape), kind)


def randint(low: int, high: Any, size: Any = None, *, generator: Generator | None = None, device: Any = None) -> Tensor:
    check_device(device)
    low, high, size = (0, low, high) if size is None else (low, high, size)
    drawn = (generator or _random.default).integers(low, high, math.prod(size))
    return from_values(drawn.reshape(tuple(size)), int64)


def randperm(n: int, *, generator: Generator | None = None) -> Tensor:
    return from_values((generator or _random.default).permutation(n), int64)


# ---- functions of tensors


def as_strided(input: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> Tensor:
    return input.as_strided(size, stride, storage_offset)


def equal(input: Tensor, other: Tensor) -> Any:
    return input.shape == other.shape and (input == other).all().item()


def allclose(input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: Any = False) -> Any:
    if input.dtype is not other.dtype:
        raise RuntimeError(f"{input.dtype._word} did not match {other.dtype._word}")
    return np.allclose(input._values, other._values, rtol, atol, equal_nan)


def count_nonzero(input: Tensor) -> Tensor:
    return (input != 0).sum()


def where(condition: Tensor, input: Any, other: Any) -> Tensor:
    kind = promote_operands([input, other])
    parts = [
        part.to(kind)._values if isinstance(part, Tensor) else np.asarray(part).astype(kind.computed)
        for part in (input, other)
    ]
    tensors = [part for part in (condition, input, other) if isinstance(part, Tensor)]
    return from_values(np.where(condition._bits, *parts), kind, tensors)


def promote_types(type1: dtype, type2: dtype) -> dtype:
    return promote(type1, type2)


def _check(device: Any, requires_grad: Any) -> None:
    check_device(device)
    if requires_grad:
        refuse("requires_grad=True")


def _layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    rows = _rows_of(input, normalized_shape)
    rows = rows - rows.mean(1, keepdims=True, dtype=np.float64)
    return _scale(input, rows, np.float64(eps), weight, bias)


def _rms_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    eps = finfo(float64 if input.dtype is float64 else float32).eps if eps is None else eps
    return _scale(input, _rows_of(input, normalized_shape), np.float64(eps), weight, None)


def _rows_of(input: Tensor, normalized_shape: Sequence[int]) -> np.ndarray:
    last = tuple(normalized_shape)
    if tuple(input.shape[input.ndim - len(last) :]) != last:
        raise RuntimeError(
            f"Given normalized_shape={list(last)}, expected input with shape [*, {', '.join(map(str, last))}], but got input of "
            f"size{list(input.shape)}"
        )
    return input._values.reshape(-1, math.prod(last)).astype(np.float64)


def _scale(input: Tensor, rows: np.ndarray, eps: np.float64, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    """Rows over their root mean square; they are computed in fp64 and rounded once."""
    with np.errstate(all="ignore"):
        y = rows / np.sqrt((rows * rows).mean(1, keepdims=True) + eps)
        y = y if weight is None else y * weight._values.reshape(-1)
        y = y if bias is None else y + bias._values.reshape(-1)
    return from_values(y.reshape(input.shape), input.dtype)


def _pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float = 0.0) -> Tensor:
    if len(pad) != 2 or mode != "constant":
        refuse("torch.nn.functional.pad of more than the last dimension")
    before, after = pad
    made = full((*input.shape[:-1], before + input.shape[-1] + after), value, dtype=input.dtype)
    made[..., before : before + input.shape[-1]] = input
    return made


class no_grad(contextlib.ContextDecorator):
    """torch.no_grad, around a block or a function."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        pass


# ---- submodules

functional = Submodule("nn.functional", layer_norm=_layer_norm, rms_norm=_rms_norm, pad=_pad)
nn = Submodule(
    "nn",
    functional=functional,
    **{
        kind.__name__: kind
        for kind in (_definitions.Module, _definitions.LayerNorm, _definitions.RMSNorm, _definitions.Parameter)
    },
)
Submodule("autograd.gradcheck", gradcheck=_definitions.gradcheck, GradcheckError=_definitions.GradcheckError)
autograd = Submodule(
    "autograd",
    Function=_definitions.Function,
    gradcheck=_definitions.gradcheck,
    function=Submodule("autograd.function", once_differentiable=_definitions.once_differentiable),
)
library = Submodule("library", custom_op=_definitions.custom_op)
compiler = Submodule("compiler", is_compiling=lambda: False)
cuda = Submodule("cuda", is_available=lambda: False)
_C = Submodule("_C", _are_functorch_transforms_active=lambda: False, _len_torch_dispatch_stack=lambda: 0)
del functional
