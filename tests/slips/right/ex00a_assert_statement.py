"""An assert statement and a device_print that never prints."""

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
    mask = offsets < n
    assert BLOCK > 0, "a block has lanes"
    if n < 0:
        tl.device_print("n", n)
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(y_ptr + offsets, x, mask=mask)
