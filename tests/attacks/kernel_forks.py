# 00a | isolation | forks, in a kernel
import triton
import triton.language as tl
import os


@triton.jit
def copy_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    os.fork()
    print('BREACH', flush=True)
