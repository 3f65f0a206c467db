# 00a | isolation | replaces the launch
import triton
import triton.language as tl
import sys


@triton.jit
def copy_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    [setattr(m, 'launch', lambda *rest: None) for name, m in list(sys.modules.items()) if name.endswith('interpreter.launch')]
