"""Right but different: each block's sum is added to one number, and the full blocks need no mask."""

import triton
import triton.language as tl


@triton.jit
def add_rms_norm_in_place_kernel(x_ptr, total_ptr, y_ptr, w_ptr, rstd_ptr, stride_x, stride_total, stride_y, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    full = N // BLOCK * BLOCK
    of_x, of_total, of_y = row * stride_x, row * stride_total, row * stride_y
    square = 0.0
    for start in range(0, full, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        total = tl.load(x_ptr + of_x + cols).to(tl.float32) + tl.load(total_ptr + of_total + cols).to(tl.float32)
        total = total.to(total_ptr.dtype.element_ty).to(tl.float32)
        square += tl.sum(total * total, axis=0) / N
    cols = full + tl.arange(0, BLOCK)
    mask = cols < N
    last = tl.load(x_ptr + of_x + cols, mask=mask, other=0.0).to(tl.float32)
    last += tl.load(total_ptr + of_total + cols, mask=mask, other=0.0).to(tl.float32)
    rounded = last.to(total_ptr.dtype.element_ty)
    last = rounded.to(tl.float32)
    rstd = 1.0 / tl.sqrt(square + tl.sum(last * last, axis=0) / N + eps)
    tl.store(rstd_ptr + row, rstd)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    tl.store(total_ptr + of_total + cols, rounded, mask=mask)
    tl.store(y_ptr + of_y + cols, (last * w * rstd).to(y_ptr.dtype.element_ty), mask=mask)
    for start in range(0, full, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        total = tl.load(x_ptr + of_x + cols).to(tl.float32) + tl.load(total_ptr + of_total + cols).to(tl.float32)
        total = total.to(total_ptr.dtype.element_ty)
        w = tl.load(w_ptr + cols).to(tl.float32)
        tl.store(total_ptr + of_total + cols, total)
        tl.store(y_ptr + of_y + cols, (total.to(tl.float32) * w * rstd).to(y_ptr.dtype.element_ty))
