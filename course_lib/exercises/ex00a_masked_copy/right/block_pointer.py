"""A block pointer with a check of its bounds, and a kernel's own helper for the number of the block."""

import triton
import triton.language as tl


@triton.jit
def first_of(program, BLOCK: tl.constexpr):
    return program * BLOCK


@triton.jit
def copy_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    start = first_of(tl.program_id(0), BLOCK)
    source = tl.make_block_ptr(x_ptr, (n,), (1,), (start,), (BLOCK,), (0,))
    target = tl.make_block_ptr(y_ptr, (n,), (1,), (start,), (BLOCK,), (0,))
    tl.store(target, tl.load(source, boundary_check=(0,)), boundary_check=(0,))
