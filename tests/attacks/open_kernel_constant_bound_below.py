# 00a | handed in | runs Python to make a constant, by a name that is bound after it
import triton
import triton.language as tl


ONE = tl.constexpr(exec("print('BREACH')") or 1)
exec = tl.constexpr(1)


@triton.jit
def copy_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    unused = ONE + exec
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(y_ptr + offsets, x, mask=mask)
