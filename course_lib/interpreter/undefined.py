"""Fill the lanes that Triton leaves undefined with values that cannot be mistaken for results.

A masked load without ``other``, and the old values that an atomic returns in masked lanes, are
undefined: a GPU gives whatever its registers held. The stock interpreter gives 0, so that a kernel
which relies on a 0 passes. Here such floats are, in turn, NaN and large numbers of either sign,
because a maximum ignores NaN; integers are a large odd number.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

_INTEGER = 0x5BADF00D5BADF00D
_FLOATS = {"fp64": 1e300, "fp32": 3e38, "fp16": 6e4}
# The bits of NaN, a large number, a large negative number.
_BITS = {"bf16": (0x7FC0, 0x7F61, 0xFF61), "fp8": (0x7F, 0x7B, 0xFB)}


def leave_undefined() -> None:
    """Make masked lanes undefined where they are undefined in Triton.

    Raises: AttributeError if this Triton's interpreter has no such hooks.
    """
    from triton.runtime.interpreter import InterpreterBuilder, TensorHandle, _get_np_dtype

    stock_load = InterpreterBuilder.create_masked_load
    stock_atomic = InterpreterBuilder.create_atomic_rmw

    def create_masked_load(self, ptrs, mask, other, *rest, **named):
        if other is None and not np.all(getattr(mask, "data", mask)):
            element = ptrs.get_element_ty()
            other = TensorHandle(
                undefined(element.name, _get_np_dtype(element), ptrs.data.shape), element
            )
        return stock_load(self, ptrs, mask, other, *rest, **named)

    def create_atomic_rmw(self, operation, ptr, val, mask, *rest):
        old: Any = stock_atomic(self, operation, ptr, val, mask, *rest)
        live = np.broadcast_to(mask.data, old.data.shape)
        if not live.all():
            old.data = np.where(
                live, old.data, undefined(old.dtype.scalar.name, old.data.dtype, old.data.shape)
            )
        return old

    for hook in (create_masked_load, create_atomic_rmw):
        setattr(InterpreterBuilder, hook.__name__, hook)


def undefined(name: str, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    """Make a block of undefined values of Triton's dtype ``name``, stored as ``dtype``."""
    values = _turns(name, dtype)
    return np.resize(values, shape) if shape else values[0]


@lru_cache
def _turns(name: str, dtype: np.dtype) -> np.ndarray:
    if name in _FLOATS:
        return np.array([np.nan, _FLOATS[name], -_FLOATS[name]], dtype)
    if name in _BITS or name[:3] in _BITS:
        return np.array(_BITS.get(name) or _BITS[name[:3]], dtype)
    if dtype == np.bool_:
        return np.array([True], dtype)
    return np.array([_INTEGER & (2 ** (8 * dtype.itemsize) - 1)], np.uint64).astype(dtype)
