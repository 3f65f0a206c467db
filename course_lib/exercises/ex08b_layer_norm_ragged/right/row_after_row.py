"""Right but different: the rows of a program one after the other, each in a block of one dimension."""

import triton
import triton.language as tl


@triton.jit
def layer_norm_ragged_kernel(
    x_ptr, y_ptr, w_ptr, b_ptr, lengths_ptr, mean_ptr, rstd_ptr, stride_x, stride_y, M, N, eps, ROWS: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    cols = tl.arange(0, BLOCK)
    w = tl.load(w_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
    b = tl.load(b_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
    first = tl.program_id(0).to(tl.int64) * ROWS
    for i in range(0, min(ROWS, M - first)):
        length = tl.load(lengths_ptr + first + i)
        live = cols < length
        x = tl.load(x_ptr + (first + i) * stride_x + cols, mask=live, other=0.0).to(tl.float32)
        mean = tl.sum(x) / length
        var = tl.sum(tl.where(live, (x - mean) * (x - mean), 0.0)) / length
        rstd = 1 / tl.sqrt(var + eps)
        y = tl.where(live, (x - mean) * rstd * w + b, 0.0)
        tl.store(y_ptr + (first + i) * stride_y + cols, y.to(y_ptr.dtype.element_ty), mask=cols < N)
        tl.store(mean_ptr + first + i, mean)
        tl.store(rstd_ptr + first + i, rstd)
