"""What kernels do with arguments that have more than one form: jitted functions in one place."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def read_eps(eps):
    """eps as a floating-point number.

    Triton passes a Python float in fp32. For an fp64 x, ``operands.encode_eps`` makes eps a 64-bit
    integer: the bits of the fp64 number, with the sign bit inverted.
    """
    if eps.dtype == tl.int64:
        return (eps ^ -9223372036854775808).to(tl.float64, bitcast=True)
    else:
        return eps


@triton.jit
def add_offset(w, W_OFFSET: tl.constexpr):
    """w + W_OFFSET; without an offset w itself, because the compiler does not leave out w + 0.0."""
    return w + W_OFFSET if W_OFFSET != 0.0 else w


@triton.jit
def show_vectors(stride, VECTOR: tl.constexpr):
    """The elements from one row to the next as a multiple of VECTOR, in plain sight of the
    compiler. A tuple is left to find_rows."""
    if isinstance(stride, tl.tuple):
        return stride
    else:
        return stride // VECTOR * VECTOR


@triton.jit
def find_rows(rows, stride, VECTOR: tl.constexpr):
    """Elements from the first row to each of ``rows``.

    ``stride`` is the elements from one row to the next, or, for rows of three dimensions, the tuple
    of ``operands.strides``: the inner rows, the middle rows, and the elements from one inner,
    middle and outer row to the next, which VECTOR divides.
    """
    if isinstance(stride, tl.tuple):
        # there are fewer rows than 2^31, and a division of 64-bit numbers takes longer
        number = rows.to(tl.int32)
        outer = number // stride[0]
        inner = number - outer * stride[0]
        middle = outer % stride[1]
        outer = outer // stride[1]
        return (
            inner.to(tl.int64) * (stride[2] // VECTOR * VECTOR)
            + middle.to(tl.int64) * (stride[3] // VECTOR * VECTOR)
            + outer.to(tl.int64) * (stride[4] // VECTOR * VECTOR)
        )
    else:
        return rows * stride
