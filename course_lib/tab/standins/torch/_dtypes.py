"""PyTorch's dtypes, its rules of promotion, and the representation of each dtype's numbers in
NumPy's arrays.

A bf16 number lies in memory as a uint16, the upper half of an fp32 number. As PyTorch does,
operations compute with fp16 and bf16 in fp32.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

import numpy as np

from ._refusal import refuse


class dtype:
    """torch.dtype."""

    __module__ = "torch"  # Triton recognises a dtype by its module

    def __init__(self, name: str, stored: Any, kind: str, word: str) -> None:
        self._name, self.word = name, word  # ``word`` is the name in PyTorch's error messages
        self.stored = np.dtype(stored)  # the dtype in memory
        self.computed = (
            np.dtype(np.float32) if kind == "f" and self.stored.itemsize == 2 else self.stored
        )
        self.kind = kind
        self.itemsize = self.stored.itemsize
        self.is_floating_point = kind == "f"

    def __repr__(self) -> str:
        return f"torch.{self._name}"

    def __reduce__(self) -> str:
        return self._name  # a copy of a dtype is the dtype itself

    def __getattr__(self, name: str) -> Any:
        refuse(f"torch.dtype.{name}")


bool_ = dtype("bool", np.bool_, "b", "Bool")
uint8 = dtype("uint8", np.uint8, "i", "Byte")
int32 = dtype("int32", np.int32, "i", "Int")
int64 = dtype("int64", np.int64, "i", "Long")
float16 = dtype("float16", np.float16, "f", "Half")
bfloat16 = dtype("bfloat16", np.uint16, "f", "BFloat16")
float32 = dtype("float32", np.float32, "f", "Float")
float64 = dtype("float64", np.float64, "f", "Double")
DTYPES = {
    kind._name: kind for kind in (bool_, uint8, int32, int64, float16, bfloat16, float32, float64)
}
_RANKS = list(DTYPES.values())
_OF_NUMPY = {kind.stored: kind for kind in _RANKS if kind is not bfloat16}


def of_numpy(kind: np.dtype) -> dtype:
    """Return the dtype of a tensor made of an array of this NumPy dtype."""
    return _OF_NUMPY.get(kind) or refuse(f"a tensor of NumPy's {kind}")


def of_number(number: Any) -> dtype:
    """Return the dtype that a Python number stands for."""
    if isinstance(number, (bool, np.bool_)):
        return bool_
    return int64 if isinstance(number, (int, np.integer)) else float32


def promote(first: dtype, second: dtype) -> dtype:
    """Return the dtype that holds numbers of both."""
    if {first, second} == {float16, bfloat16}:
        return float32
    return max(first, second, key=_RANKS.index)


def promote_operands(operands: Iterable[Any]) -> dtype:
    """Return the dtype in which an operation computes.

    Tensors with dimensions decide. A tensor without dimensions counts only if its kind (bool,
    integer, floating point) is a higher one, and a Python number only if its kind is higher than
    that of every tensor.
    """
    ranked: list[list[dtype]] = [[], [], []]
    for operand in operands:
        kind = getattr(operand, "dtype", None)
        if not isinstance(kind, dtype):
            ranked[2].append(of_number(operand))
        else:
            ranked[0 if operand.ndim else 1].append(kind)
    result, *lower = [functools.reduce(promote, kinds) for kinds in ranked if kinds]
    for kind in lower:
        if "bif".index(kind.kind) > "bif".index(result.kind):
            result = kind
    return result


def widen(bits: np.ndarray, kind: dtype) -> np.ndarray:
    """Return the numbers in ``bits`` in the dtype in which operations compute with them."""
    if kind is bfloat16:
        return (bits.astype(np.uint32) << 16).view(np.float32)
    return bits.astype(kind.computed, copy=False)


def narrow(values: np.ndarray, kind: dtype) -> np.ndarray:
    """Return numbers of any dtype as the bits that memory keeps.

    fp16 and bf16 are rounded to nearest even, from fp32: PyTorch rounds a float64 twice, too.
    """
    with np.errstate(all="ignore"):
        if kind.itemsize == 2:
            values = values.astype(np.float32, copy=False)
        if kind is not bfloat16:
            return values.astype(kind.stored, copy=False)
        bits = np.ascontiguousarray(values).view(np.uint32).reshape(values.shape)
        rounded = ((bits + np.uint32(0x7FFF) + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
        return np.where(np.isnan(values), np.uint16(0x7FC0), rounded)


class finfo:
    """torch.finfo."""

    def __init__(self, kind: dtype = float32) -> None:
        if kind.kind != "f":
            raise TypeError(
                "torch.finfo() requires a floating point input type. Use torch.iinfo to handle"
                " 'torch.finfo'"
            )
        self.dtype, self.bits = kind._name, 8 * kind.itemsize
        limits = np.finfo(np.float32 if kind is bfloat16 else kind.stored)
        self.eps = 2.0**-7 if kind is bfloat16 else float(limits.eps)
        self.max = (
            float(widen(np.array(0x7F7F, np.uint16), bfloat16))
            if kind is bfloat16
            else float(limits.max)
        )
        self.min, self.tiny = -self.max, float(limits.tiny)

    def __getattr__(self, name: str) -> Any:
        refuse(f"torch.finfo.{name}")
