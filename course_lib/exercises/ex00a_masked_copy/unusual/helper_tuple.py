"""A helper returns offsets and mask; the assertions say what is taken for granted."""

import triton
import triton.language as tl


@triton.jit
def lanes_of(program, n, BLOCK: tl.constexpr):
    offsets = program * BLOCK + tl.arange(0, BLOCK)
    return offsets, offsets < n


@triton.jit
def copy_kernel(
    x_ptr, y_ptr,
    n,
    BLOCK: tl.constexpr,
):
    tl.static_assert(BLOCK & (BLOCK - 1) == 0)
    offsets, mask = lanes_of(tl.program_id(axis=0), n, BLOCK)
    tl.device_assert(tl.min(offsets, axis=0) >= 0)
    tl.store(pointer=y_ptr + offsets, value=tl.load(x_ptr + offsets, mask, eviction_policy="evict_first"), mask=mask)
