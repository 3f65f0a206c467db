"""Compute as the compiled kernel does, where the NumPy of the stock interpreter gives other
results.

Integer division by zero is undefined, and a comparison gives int1. ``tl.fma`` rounds once,
``tl.clamp`` turns a NaN into its lower bound, ``tl.umulhi`` is unsigned for signed integers, too.
``tl.dot`` of fp32 rounds its operands to tf32 unless told not to. An atomic addition of fp16 or
bf16 rounds every sum.
"""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np

from course_lib.interpreter.casts import to_bf16
from course_lib.interpreter.numerics import bf16_values
from course_lib.interpreter.undefined import undefined


def compute_as_compiled() -> None:
    """Replace the operations of the interpreter whose results differ.

    Raises: AttributeError if this Triton's interpreter has no such hooks.
    """
    import triton.language as tl
    from triton._C.libtriton import interpreter as memory
    from triton.runtime import interpreter
    from triton.runtime.interpreter import InterpreterBuilder, TensorHandle, _get_np_dtype

    stock = {
        name: getattr(InterpreterBuilder, name)
        for name in (
            "create_idiv", "create_srem", "create_urem", "create_fma", "create_clampf",
            "create_umulhi", "create_dot",
            "create_histogram", "create_ashr", "create_atomic_rmw",
        )
    }  # fmt: skip

    # The text of a device_assert is needed only if kernels are compiled for debugging. Finding it
    # would make an addition much slower.
    builder = interpreter.interpreter_builder
    builder.options = dataclasses.replace(builder.options, sanitize_overflow=False)

    def by_value(handle: Any) -> np.ndarray:
        return bf16_values(handle.data) if handle.dtype.scalar == tl.bfloat16 else handle.data

    def as_stored(values: np.ndarray, kind: Any) -> Any:
        data = (
            to_bf16(values)
            if kind == tl.bfloat16
            else values.astype(_get_np_dtype(kind), copy=False)
        )
        return TensorHandle(data, kind)

    def divide(lhs: Any, rhs: Any, quotient: bool) -> Any:
        kind, by = lhs.dtype.scalar, rhs.data
        zero = by == 0
        if zero.any():
            by = np.where(zero, by.dtype.type(1), by)
        remainder = np.fmod(lhs.data, by)
        data = (lhs.data - remainder) // by if quotient else remainder
        if zero.any():
            data = np.where(zero, undefined(kind.name, data.dtype, data.shape), data)
        return TensorHandle(data, kind)

    def create_idiv(self, lhs, rhs):
        return divide(lhs, rhs, True)

    def create_srem(self, lhs, rhs):
        return divide(lhs, rhs, False)

    def create_ashr(self, lhs, rhs):
        # Copy the operands: the stock function changes them to signed ones.
        signed = [TensorHandle(h.data.copy(), h.dtype) for h in (lhs, rhs)]
        return stock["create_ashr"](self, *signed)

    def create_fma(self, x, y, z):
        return as_stored(fuse(by_value(x), by_value(y), by_value(z)), z.dtype.scalar)

    def create_clampf(self, arg, lo, hi, propagate_nans):
        x, low, high = map(by_value, (arg, lo, hi))
        passes_nan = "ALL" in str(propagate_nans)
        larger, smaller = (np.maximum, np.minimum) if passes_nan else (np.fmax, np.fmin)
        return as_stored(smaller(larger(x, low), high), arg.dtype.scalar)

    def create_umulhi(self, lhs, rhs):
        width = lhs.data.dtype.itemsize
        a, b = (handle.data.view(f"u{width}") for handle in (lhs, rhs))
        if width == 4:
            data = (a.astype(np.uint64) * b.astype(np.uint64) >> np.uint64(32)).astype(np.uint32)
        else:
            data = np.array(
                [int(p) * int(q) >> 64 for p, q in np.broadcast(a, b)], np.uint64
            ).reshape(np.broadcast(a, b).shape)
        return TensorHandle(data.view(lhs.data.dtype), lhs.dtype.scalar)

    def create_dot(self, a, b, d, input_precision, *rest):
        if a.dtype.scalar.is_fp8() or b.dtype.scalar.is_fp8():
            return stock["create_dot"](self, a, b, d, input_precision, *rest)
        operands, kind = [by_value(a), by_value(b)], d.dtype.scalar
        if a.dtype.scalar == tl.float32 and "IEEE" not in str(input_precision):
            operands = [_to_tf32(data, "X3" in str(input_precision).upper()) for data in operands]
        wide = (
            np.dtype(np.float32)
            if kind.is_floating() and kind.primitive_bitwidth < 32
            else _get_np_dtype(kind)
        )
        product = np.matmul(operands[0].astype(wide), operands[1].astype(wide))
        return as_stored(product + by_value(d), kind)

    def create_histogram(self, data, bins, mask):
        live = (
            np.ones(data.data.shape, bool)
            if mask is None
            else np.broadcast_to(mask.data, data.data.shape)
        )
        counted = data.data[live].astype(np.int64)
        counted = counted[(counted >= 0) & (counted < bins)]
        return TensorHandle(np.bincount(counted, minlength=bins).astype(np.int32), tl.int32)

    def create_atomic_rmw(self, operation, ptr, val, mask, *rest):
        kind = val.dtype.scalar
        if kind not in (tl.float16, tl.bfloat16) or not str(operation).endswith("ADD"):
            return stock["create_atomic_rmw"](self, operation, ptr, val, mask, *rest)
        stored = _get_np_dtype(kind)
        number = ml_dtypes.bfloat16 if kind == tl.bfloat16 else np.float16
        addresses = ptr.data.ravel()
        added = np.broadcast_to(val.data, ptr.data.shape).ravel().view(number)
        live = np.broadcast_to(mask.data, ptr.data.shape).ravel()
        old = np.zeros(addresses.size, stored)
        for lane in np.flatnonzero(live):  # one by one, because two lanes may have the same address
            at, unmasked = addresses[lane : lane + 1], np.ones(1, bool)
            old[lane] = memory.load(at, unmasked, np.zeros(1, stored), stored)[0]
            total: Any = np.add(old[lane : lane + 1].view(number), added[lane : lane + 1])
            memory.store(at, total.astype(number).view(stored), unmasked)
        return TensorHandle(old.reshape(ptr.data.shape), kind)

    hooks = (
        create_idiv, create_srem, create_ashr, create_fma, create_clampf, create_umulhi, create_dot,
        create_histogram,
        create_atomic_rmw,
    )  # fmt: skip
    for hook in hooks:
        setattr(InterpreterBuilder, hook.__name__, hook)
    setattr(InterpreterBuilder, "create_urem", create_srem)  # noqa: B010 - its type is another


def fuse(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Compute x * y + z as fp64. The caller rounds it to the dtype of the result, which is then as
    if rounded only once."""
    if z.dtype == np.float64:
        return np.vectorize(_fuse_doubles, otypes=[np.float64])(x, y, z)
    # the product is exact
    p, z64 = x.astype(np.float64) * y.astype(np.float64), z.astype(np.float64)
    total = p + z64
    part = total - p
    error = (p - (total - part)) + (z64 - part)
    # The last bit is set if the sum is not exact. The rounding of the caller then gives the right
    # result.
    odd = total.view(np.int64) & 1
    nudged = np.nextafter(total, np.where(error > 0, np.inf, -np.inf))
    exact = (error == 0) | (odd == 1) | ~np.isfinite(total)
    return np.where(exact, total, nudged)


def _fuse_doubles(x: float, y: float, z: float) -> float:
    if not np.isfinite([x, y, z]).all():
        return x * y + z
    exact = Fraction(x) * Fraction(y) + Fraction(z)
    try:
        return float(exact) if exact else x * y + z
    except OverflowError:
        return float("inf") if exact > 0 else float("-inf")


def _to_tf32(data: np.ndarray, thrice: bool) -> np.ndarray:
    """Cut fp32 to the 10 mantissa bits that a tensor core reads. With ``thrice`` (tf32x3), which
    adds the lost bits again, cut nothing."""
    return (
        data
        if thrice
        else (np.ascontiguousarray(data).view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
    )
