# 00a | isolation | replaces the launch
import triton
import triton.language as tl
import sys


@triton.jit
def copy_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    for name, module in list(sys.modules.items()):
        if name.endswith('interpreter.launch'):
            module.launch = lambda *rest: None
