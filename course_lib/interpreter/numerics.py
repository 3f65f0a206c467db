"""Rounding as a GPU rounds. The stock interpreter cuts fp32 off to bf16: half of all values are one ulp low."""

from __future__ import annotations

import ml_dtypes
import numpy as np


def bf16_bits(values: np.ndarray) -> np.ndarray:
    """fp32 ``values`` rounded to bf16, to nearest even, as uint16 bit patterns of the same shape. NaN stays NaN."""
    with np.errstate(invalid="ignore", over="ignore"):  # a GPU does not warn of a NaN or an overflow either
        return np.asarray(values, dtype=np.float32).astype(ml_dtypes.bfloat16).view(np.uint16)


def round_bf16_to_nearest() -> None:
    """Make the interpreter's fp32 to bf16 casts round to nearest even.

    Raises: AttributeError if this Triton's interpreter has no such hooks.
    """
    import triton.language as tl
    from triton.runtime.interpreter import InterpreterBuilder, TensorHandle

    stock_cast = InterpreterBuilder.cast_impl
    stock_fp_to_fp = InterpreterBuilder.create_fp_to_fp

    def is_narrowing(src, dst_type) -> bool:
        return src.dtype.scalar == tl.float32 and dst_type.scalar == tl.bfloat16

    def cast_impl(self, src, dst_type):
        if is_narrowing(src, dst_type):
            return TensorHandle(bf16_bits(src.data), tl.bfloat16)
        return stock_cast(self, src, dst_type)

    def create_fp_to_fp(self, src, dst_type, rounding_mode):
        # an explicit "toward zero" is the one request that truncation answers rightly
        toward_zero = rounding_mode is not None and "RTZ" in str(rounding_mode)
        if is_narrowing(src, dst_type) and not toward_zero:
            return TensorHandle(bf16_bits(src.data), tl.bfloat16)
        return stock_fp_to_fp(self, src, dst_type, rounding_mode)

    InterpreterBuilder.cast_impl = cast_impl
    InterpreterBuilder.create_fp_to_fp = create_fp_to_fp
