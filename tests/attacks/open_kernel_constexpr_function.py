# 00a | handed in | reads a file in a function for constants
import triton
import triton.language as tl


@triton.constexpr_function
def width(n):
    return len(open('@VICTIM@').read())


@triton.jit
def copy_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask) + width(1)
    tl.store(y_ptr + offsets, x, mask=mask)
