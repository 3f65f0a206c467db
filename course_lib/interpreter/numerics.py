"""Round as a GPU does.

The stock interpreter keeps bf16 as raw bit patterns. It truncates fp32 where it should round to
bf16, so that half of all values are one ulp too low. It adds and compares the bit patterns
themselves, so that a sum of 4096 ones is 0. Its ``tl.maximum`` returns a NaN where the compiled one
returns the number.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np

_COMPARISONS = (np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal)


def bf16_bits(values: np.ndarray) -> np.ndarray:
    """Round fp32 ``values`` to bf16, to nearest even. Returns uint16 bit patterns of the same
    shape. NaN stays NaN."""
    # a GPU gives no warning of a NaN or an overflow
    with np.errstate(invalid="ignore", over="ignore"):
        return np.asarray(values, dtype=np.float32).astype(ml_dtypes.bfloat16).view(np.uint16)


def bf16_values(bits: np.ndarray) -> np.ndarray:
    """Return the exact fp32 values of bf16 bit patterns (uint16)."""
    return (np.asarray(bits, dtype=np.uint16).astype(np.uint32) << 16).view(np.float32)


def compute_bf16_by_value() -> None:
    """Make arithmetic and comparisons of bf16 blocks use the numbers: compute in fp32, and round
    each result to bf16.

    Raises: AttributeError if this Triton's interpreter has no such hooks.
    """
    import triton.language as tl
    from triton.runtime.interpreter import InterpreterBuilder, TensorHandle

    stock = {
        name: getattr(InterpreterBuilder, name)
        for name in ("binary_op", "unary_op", "ternary_op", "create_fma", "create_rsqrt")
    }

    def widen(*handles):
        """Return the handles as fp32 if one of them is bf16, else None. Without this, bf16 bits
        would be taken for integers."""
        if not any(handle.dtype.scalar == tl.bfloat16 for handle in handles):
            return None
        return [
            TensorHandle(bf16_values(h.data), tl.float32) if h.dtype.scalar == tl.bfloat16 else h
            for h in handles
        ]

    def narrow(handle):
        return TensorHandle(bf16_bits(handle.data), tl.bfloat16)

    def binary_op(self, lhs, rhs, op):
        wide = widen(lhs, rhs)
        if wide is None:
            return stock["binary_op"](self, lhs, rhs, op)
        result = stock["binary_op"](self, *wide, op)
        return result if op in _COMPARISONS else narrow(result)

    def unary_op(self, arg, op):
        wide = widen(arg)
        return (
            stock["unary_op"](self, arg, op)
            if wide is None
            else narrow(stock["unary_op"](self, *wide, op))
        )

    def ternary_op(self, lhs, rhs, other, op):
        # For np.where no cast is needed: it only chooses bit patterns.
        wide = widen(lhs, rhs, other) if op is np.clip else None
        return (
            stock["ternary_op"](self, lhs, rhs, other, op)
            if wide is None
            else narrow(stock["ternary_op"](self, *wide, op))
        )

    def create_fma(self, x, y, z):
        wide = widen(x, y, z)
        return (
            stock["create_fma"](self, x, y, z)
            if wide is None
            else narrow(stock["create_fma"](self, *wide))
        )

    def create_rsqrt(self, arg):
        wide = widen(arg)
        return (
            stock["create_rsqrt"](self, arg)
            if wide is None
            else narrow(stock["create_rsqrt"](self, *wide))
        )

    def get_bf16(self, value):
        # the stock interpreter has no constants of bf16
        return TensorHandle(bf16_bits(np.array([value], dtype=np.float32)), tl.bfloat16)

    for hook in (binary_op, unary_op, ternary_op, create_fma, create_rsqrt, get_bf16):
        setattr(InterpreterBuilder, hook.__name__, hook)


def prefer_numbers_to_nan() -> None:
    """Make ``tl.maximum`` and ``tl.minimum`` return the number where one operand is NaN, as the
    compiled ones do.

    With ``propagate_nan=tl.PropagateNan.ALL`` both return the NaN.

    Raises: AttributeError if this Triton's interpreter has no such hooks.
    """
    from triton.runtime.interpreter import InterpreterBuilder

    for name, op in (("create_maxnumf", np.fmax), ("create_minnumf", np.fmin)):
        # raises AttributeError if this Triton has no such function
        getattr(InterpreterBuilder, name)
        setattr(
            InterpreterBuilder, name, lambda self, lhs, rhs, op=op: self.binary_op(lhs, rhs, op)
        )
