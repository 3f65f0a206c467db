"""One while loop for both sweeps: the first pass adds up, the second writes. Blocks come from the end of the row."""

import triton
import triton.language as tl


@triton.jit
def rms_norm_blocked_kernel(x_ptr, y_ptr, w_ptr, rstd_ptr, stride_x, stride_y, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    blocks = tl.cdiv(N, BLOCK)
    total = 0.0
    rstd = 0.0
    step = 0
    while step < 2 * blocks:
        cols = (blocks - 1 - step % blocks) * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * stride_x + cols, mask=cols < N, other=0.0).to(tl.float32)
        if step < blocks:
            total += tl.sum(x * x, axis=0)
        else:
            w = tl.load(w_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
            tl.store(y_ptr + row * stride_y + cols, (x * rstd * w).to(y_ptr.dtype.element_ty), mask=cols < N)
        step += 1
        if step == blocks:
            rstd = 1 / tl.sqrt(total / N + eps)
            tl.store(rstd_ptr + row, rstd)
