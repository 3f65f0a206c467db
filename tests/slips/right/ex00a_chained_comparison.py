"""Both bounds in one mask, in 64 bits, and other is given though nobody needs it."""

import triton
import triton.language as tl


@triton.jit
def copy_kernel(
    x_ptr, y_ptr,
    n,                      # elements in x and in y
    BLOCK: tl.constexpr,    # elements a program, a power of two
):
    program = tl.program_id(0)
    offsets = program.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = (0 <= offsets) & (offsets < n)
    x = tl.load(x_ptr + offsets, mask=mask, other=0)
    tl.store(y_ptr + offsets, x, mask=mask)
