# 00a | isolation | raises what the grader raises where there is no room
import triton
import triton.language as tl
class Unplaceable(Exception):
    pass


@triton.jit
def copy_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    raise Unplaceable()
