# 00a | isolation | runs the solution's text in a kernel
import triton
import triton.language as tl


@triton.jit
def copy_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    text = open('@ROOT@/solutions/ex00a_masked_copy.py').read()
    print('BREACH', flush=True)
    exec(text)
