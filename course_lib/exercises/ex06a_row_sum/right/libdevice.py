"""A function of libdevice's imported beside a kernel that does not need it; the sum in four parts."""

try:
    from triton.language.extra import libdevice
except ImportError:
    libdevice = None

import triton
import triton.language as tl


@triton.jit
def root_kernel(x_ptr, y_ptr):
    tl.store(y_ptr, libdevice.sqrt(tl.load(x_ptr)))


@triton.jit
def row_sum_kernel(x_ptr, y_ptr, stride_x, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    even = tl.zeros([BLOCK], dtype=tl.float32)
    odd = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, N, 2 * BLOCK):
        even += tl.load(x_ptr + row * stride_x + start + cols, mask=start + cols < N, other=0.0).to(tl.float32)
        later = start + BLOCK + cols
        odd += tl.load(x_ptr + row * stride_x + later, mask=later < N, other=0.0).to(tl.float32)
    tl.store(y_ptr + row, tl.sum(even + odd, axis=0))
