"""Cast between all of Triton's dtypes as a GPU does.

The stock interpreter keeps bf16 and fp8 as raw bit patterns, and casts them from and to fp32 and
fp16 only: an int32 or an fp64 that is cast to bf16 is taken for a bit pattern. Here floats round to
nearest even, or toward zero where the kernel asks for it. fp8 has no infinity, so that large values
become its largest number. A float that is too large for an integer becomes the largest integer.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np

from course_lib.interpreter.numerics import bf16_bits, bf16_values

_FP8 = {"fp8e4nv": ml_dtypes.float8_e4m3fn, "fp8e5": ml_dtypes.float8_e5m2}


def cast_as_a_gpu() -> None:
    """Replace the interpreter's casts.

    Raises: AttributeError if this Triton's interpreter has no such hooks.
    """
    from triton.runtime.interpreter import InterpreterBuilder, TensorHandle, _get_np_dtype

    stock_fp_to_fp = InterpreterBuilder.create_fp_to_fp
    getattr(InterpreterBuilder, "cast_impl")  # noqa: B009 - raises AttributeError if this Triton has no such function

    def cast_impl(self, src, dst_type):
        target = dst_type.scalar
        return TensorHandle(
            _cast(src.data, src.dtype.scalar.name, target.name, _get_np_dtype(target), False),
            target,
        )

    def create_fp_to_fp(self, src, dst_type, rounding_mode):
        source, target = src.dtype.scalar.name, dst_type.scalar.name
        if any(name.startswith("fp8") and name not in _FP8 for name in (source, target)):
            return stock_fp_to_fp(self, src, dst_type, rounding_mode)
        toward_zero = rounding_mode is not None and "RTZ" in str(rounding_mode)
        data = _cast(src.data, source, target, _get_np_dtype(dst_type.scalar), toward_zero)
        return TensorHandle(data, dst_type.scalar)

    InterpreterBuilder.cast_impl = cast_impl
    InterpreterBuilder.create_fp_to_fp = create_fp_to_fp


def _cast(
    data: np.ndarray, source: str, target: str, stored: np.dtype, toward_zero: bool
) -> np.ndarray:
    """Cast ``data`` of Triton's dtype ``source`` to the interpreter's representation of ``target``,
    whose NumPy dtype is ``stored``."""
    if source == "bf16":
        data = bf16_values(data)
    elif source in _FP8:
        data = data.view(_FP8[source]).astype(np.float32)
    if target == "bf16":
        return to_bf16(data, toward_zero)
    if target in _FP8:
        return _to_fp8(data, _FP8[target], toward_zero)
    if data.dtype.kind == "f" and stored.kind in "iu":
        return _to_integer(data, stored)
    return _cut(data, stored) if toward_zero else data.astype(stored)


def to_bf16(data: np.ndarray, toward_zero: bool = False) -> np.ndarray:
    """Round numbers of any dtype to bf16, once. Returns uint16 bit patterns."""
    if data.dtype != np.float32:
        wide = data if data.dtype.kind == "f" else data.astype(np.longdouble)
        data = _cut(wide, np.dtype(np.float32), sticky=True)
    if toward_zero:
        return (np.ascontiguousarray(data).view(np.uint32) >> 16).astype(np.uint16)
    return bf16_bits(data)


def _to_fp8(data: np.ndarray, kind: type, toward_zero: bool) -> np.ndarray:
    largest = float(ml_dtypes.finfo(kind).max)
    data = np.clip(data.astype(np.float32), -largest, largest)
    rounded = data.astype(kind)
    if toward_zero:
        away = np.abs(rounded.astype(np.float32)) > np.abs(data)
        return np.where(away, rounded.view(np.uint8) - 1, rounded.view(np.uint8)).astype(np.uint8)
    return rounded.view(np.uint8)


def _to_integer(data: np.ndarray, stored: np.dtype) -> np.ndarray:
    """Cut toward zero. NaN becomes 0.

    A number that is too large becomes the largest integer. For 8 bits, it becomes the largest
    integer of 16 bits, whose low bits are kept.
    """
    limits = np.iinfo(np.dtype(f"{stored.kind}{max(2, stored.itemsize)}"))
    whole = np.trunc(data.astype(np.float64))
    inside = (whole >= float(limits.min)) & (whole < float(limits.max) + (limits.bits < 64))
    cut = np.where(inside, whole, 0.0).astype(limits.dtype)
    cut = np.where(whole < float(limits.min), limits.dtype.type(limits.min), cut)
    cut = np.where((whole > 0) & ~inside, limits.dtype.type(limits.max), cut)
    return cut.astype(stored)


def _cut(data: np.ndarray, stored: np.dtype, sticky: bool = False) -> np.ndarray:
    """Round ``data`` toward zero to the narrower float dtype ``stored``. ``sticky`` sets the last
    bit of each inexact result, so that a second rounding to fewer bits is right."""
    near = data.astype(stored)
    away = np.abs(near.astype(data.dtype)) > np.abs(data)
    cut = np.where(away, np.nextafter(near, stored.type(0)), near)
    if not sticky:
        return cut
    bits = cut.view(np.uint32)
    return (
        np.where(cut.astype(data.dtype) != data, bits | (np.isfinite(cut)), bits)
        .astype(np.uint32)
        .view(np.float32)
    )
