# 00a | handed in | calls by the name of jit what is none
import triton
import triton.language as tl
from triton import jit


class Names:
    core = builtins = print = 0


def jit(function):
    return function(tl)


@jit
def A(t):
    t.core.builtins.print('BREA' + 'CH')
    return tl.constexpr(0)


B = Names


@triton.jit
def copy_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask) + A + 0 * B.core
    tl.store(y_ptr + offsets, x, mask=mask)
