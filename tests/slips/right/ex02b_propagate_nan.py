"""maximum with propagate_nan."""

import triton
import triton.language as tl


@triton.jit
def rms_norm_kernel(
    x_ptr, y_ptr, w_ptr, rstd_ptr,
    stride_x, stride_y,     # elements between rows
    N, eps,
    BLOCK: tl.constexpr,    # power of two >= N
):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * stride_x + cols, mask=mask, other=0.0).to(tl.float32)
    rstd = 1 / tl.sqrt(tl.maximum(tl.sum(x * x, axis=0) / N, 0.0, propagate_nan=tl.PropagateNan.ALL) + eps)
    tl.store(rstd_ptr + row, rstd)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    y = x * rstd * w
    tl.store(y_ptr + row * stride_y + cols, y.to(y_ptr.dtype.element_ty), mask=mask)
