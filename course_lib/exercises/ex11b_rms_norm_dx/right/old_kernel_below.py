"""The old kernel is still below, and would not run; a class of expected values, too."""

from typing import NamedTuple

import triton
import triton.language as tl


class Expected(NamedTuple):
    dx: float
    tolerance: float = 1e-5


@triton.jit
def rms_norm_dx_kernel(dy_ptr, x_ptr, w_ptr, rstd_ptr, dx_ptr, stride_dy_row, stride_dy_col, stride_x, stride_dx, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    inside = cols < N
    rstd = tl.load(rstd_ptr + row)
    wdy = tl.load(w_ptr + cols, mask=inside, other=0.0).to(tl.float32)
    wdy *= tl.load(dy_ptr + row * stride_dy_row + cols.to(tl.int64) * stride_dy_col, mask=inside, other=0.0).to(tl.float32)
    x = tl.load(x_ptr + row * stride_x + cols, mask=inside, other=0.0).to(tl.float32)
    along = tl.sum(x * wdy, axis=0) * (rstd * rstd) / N
    tl.store(dx_ptr + row * stride_dx + cols, ((wdy - x * along) * rstd).to(dx_ptr.dtype.element_ty), mask=inside)


@triton.autotune(configs=[], key=["N"])
@triton.jit
def rms_norm_dx_kernel_slow(dy_ptr, x_ptr, N):
    while True:
        print(np.zeros(3), open("f"))
