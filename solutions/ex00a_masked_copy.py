"""Exercise 00a: a masked copy.

Copy n elements from x to y. Program p copies the BLOCK elements that start at p * BLOCK; there are ceil(n / BLOCK)
programs, so the last one usually has lanes past the end. A lane past the end must neither read nor write, so
each element of x is read once, by the one lane that stores it.

The course launches copy_kernel for you. Check with the panel in lesson 00, or with `course check 00a` in a terminal.
"""

import triton
import triton.language as tl


@triton.jit
def copy_kernel(
    x_ptr, y_ptr,
    n,                      # elements in x and in y
    BLOCK: tl.constexpr,    # elements per program, a power of two
):
    program = tl.program_id(0)
    # BEGIN SOLUTION
    #: offsets: the BLOCK elements of this program. mask: which of them exist. Then load, then store.
    offsets = program * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(y_ptr + offsets, x, mask=mask)
    # END SOLUTION
