# 00a | handed in | runs text by a function of NumPy's
import triton
import triton.language as tl
from numpy.testing import runstring

ONE = tl.constexpr(runstring("print('BREACH')", None) or 1)


@triton.jit
def copy_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    unused = ONE + 1
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(y_ptr + offsets, x, mask=mask)
