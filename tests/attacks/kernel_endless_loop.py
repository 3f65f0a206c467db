# 00a | isolation | does not end, in a kernel
import triton
import triton.language as tl


@triton.jit
def copy_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    while n > -1:
        BLOCK + 0
