"""The pointers move to the block, and the lanes are compared with what is left of n."""

import triton
import triton.language as tl


@triton.jit
def copy_kernel(
    x_ptr, y_ptr,
    n,                      # elements in x and in y
    BLOCK: tl.constexpr,    # elements a program, a power of two
):
    program = tl.program_id(0)
    start = program * BLOCK
    x_ptr += start
    y_ptr += start
    offsets = tl.arange(0, BLOCK)
    mask = offsets < n - start
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(y_ptr + offsets, x, mask=mask)
