# 00a | isolation | imports the float64 reference, in a kernel
import triton
import triton.language as tl


@triton.jit
def copy_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    from course_lib.norms import reference
    print('BREACH', flush=True)
