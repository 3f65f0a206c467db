"""Cache modifier, multiple_of and max_contiguous."""

import triton
import triton.language as tl


@triton.jit
def copy_kernel(
    x_ptr, y_ptr,
    n,                      # elements in x and in y
    BLOCK: tl.constexpr,    # elements a program, a power of two
):
    program = tl.program_id(0)
    offsets = program * BLOCK + tl.arange(0, BLOCK)
    offsets = tl.max_contiguous(tl.multiple_of(offsets, BLOCK), BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, cache_modifier=".cg")
    tl.store(y_ptr + offsets, x, mask=mask)
