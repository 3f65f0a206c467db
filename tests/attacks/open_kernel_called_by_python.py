# 00a | handed in | has Python call a helper of kernels with a module
import triton
import triton.language as tl


class Names:
    core = builtins = print = 0


@triton.jit
def helper(t):
    t.core.builtins.print('BREA' + 'CH')
    return 0


A = tl.constexpr(helper(tl))
B = Names


@triton.jit
def copy_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask) + A + 0 * B.core
    tl.store(y_ptr + offsets, x, mask=mask)
