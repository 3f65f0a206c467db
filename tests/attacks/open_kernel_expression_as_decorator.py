# 00a | handed in | Python in the decorator of a function for constants
import triton
import triton.language as tl


@(exec("print('BREACH')") or triton.constexpr_function)
def one(n):
    return n


@triton.jit
def copy_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    unused = one(1)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(y_ptr + offsets, x, mask=mask)
