"""x is loaded a second time, padded with the mean; the mean by the reciprocal of N."""

import triton
import triton.language as tl


@triton.jit
def layer_norm_kernel(
    x_ptr, y_ptr,           # (M, N), fp32
    w_ptr, b_ptr,           # (N,), fp32
    stride_x, stride_y,     # elements between rows
    N, eps,
    BLOCK: tl.constexpr,    # power of two >= N
):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x_ptr += row * stride_x
    y_ptr += row * stride_y
    mean = tl.sum(tl.load(x_ptr + cols, mask=mask, other=0.0), axis=0) / N

    deviation = tl.load(x_ptr + cols, mask=mask, other=mean) - mean
    var = tl.sum(deviation * deviation, axis=0) * (1.0 / N)

    normed = deviation / tl.sqrt_rn(var + eps)
    w = tl.load(w_ptr + cols, mask=mask, other=1.0)
    b = tl.load(b_ptr + cols, mask=mask, other=float("nan"))
    tl.store(y_ptr + cols, tl.fma(normed, w, b), mask=mask)
