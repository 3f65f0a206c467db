# 00a | isolation | ends the process with exit code 0, from a kernel
import triton
import triton.language as tl
import os


@triton.jit
def copy_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    os._exit(0)
