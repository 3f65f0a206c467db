# 00a | handed in | a helper that Python runs, and no compiler
import triton
import triton.language as tl
import numpy as np


def helper(x):
    return np.asarray(x)


@triton.jit
def copy_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = helper(tl.load(x_ptr + offsets, mask=mask))
    tl.store(y_ptr + offsets, x, mask=mask)
