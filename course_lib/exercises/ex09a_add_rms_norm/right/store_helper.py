"""A helper stores, rounds and hands back; keyword arguments everywhere; prints in the kernel's file."""

import triton
import triton.language as tl


@triton.jit
def store_rounded(ptr, value, mask):
    rounded = value.to(ptr.dtype.element_ty)
    tl.store(ptr, rounded, mask=mask)
    return rounded.to(tl.float32)


@triton.jit
def add_rms_norm_kernel(
    x_ptr, residual_ptr, total_ptr, y_ptr, w_ptr, rstd_ptr, stride_x, stride_residual, stride_total, stride_y, N, eps, BLOCK: tl.constexpr
):
    row = tl.program_id(axis=0).to(dtype=tl.int64)
    cols = tl.arange(start=0, end=BLOCK)
    mask = cols < N
    added = tl.load(x_ptr + row * stride_x + cols, mask=mask, other=0.0).to(tl.float32)
    added += tl.load(residual_ptr + row * stride_residual + cols, mask=mask, other=0.0).to(tl.float32)
    total = store_rounded(ptr=total_ptr + row * stride_total + cols, value=added, mask=mask)
    rstd = tl.rsqrt(tl.sum(total * total, axis=0) / N + eps)
    tl.store(rstd_ptr + row, rstd)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    _ = store_rounded(y_ptr + row * stride_y + cols, total * rstd * w, mask)


for size in (128, 256):
    print("blocks for", size, triton.next_power_of_2(size))
