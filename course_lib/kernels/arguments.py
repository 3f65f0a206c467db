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
