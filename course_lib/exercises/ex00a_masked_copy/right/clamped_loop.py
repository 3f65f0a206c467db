"""Right but different: offsets built the other way round, a store mask computed twice, a load with `other`."""

import triton
import triton.language as tl


@triton.jit
def copy_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    left = n - tl.program_id(0) * BLOCK
    start = x_ptr + tl.program_id(0) * BLOCK
    value = tl.load(start + lanes, mask=lanes < left, other=-1)
    tl.store(y_ptr + (tl.program_id(0) * BLOCK + lanes), value, mask=left > lanes)
