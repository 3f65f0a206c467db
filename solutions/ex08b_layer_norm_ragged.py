"""Optional task 08b: LayerNorm of rows that end at different columns.

x and y have M rows of N places each. Row r has lengths[r] elements, at least 1 and at most N: they stand in its first places. The
places after them hold anything at all in x, and 0 in y.

    y = (x - mean) * rstd * w + b        rstd = 1 / sqrt(var + eps)        mean and var over the elements of the row

A program takes ROWS rows, and reads each element of x once. BLOCK is a power of two no smaller than N. M need not be a multiple
of ROWS.

x, y (M, N) and w, b (N,) are fp16, bf16 or fp32, not always the same; lengths (M,) is int32; mean and rstd (M,) are fp32, and the
kernel saves them. Rows are stride_x (stride_y) elements apart, and row * stride_x can pass 2^31. Compute in fp32, and round once, to
y's dtype. A NaN or an Inf in a row changes no other row.

The course launches the kernel for you. Check with the panel in lesson 08, or with `course check 08b` in a terminal.
"""

import triton
import triton.language as tl


@triton.jit
def layer_norm_ragged_kernel(
    x_ptr, y_ptr, w_ptr, b_ptr, lengths_ptr, mean_ptr, rstd_ptr,
    stride_x, stride_y,
    M, N, eps,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    # BEGIN SOLUTION
    #:
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    cols = tl.arange(0, BLOCK)
    lengths = tl.load(lengths_ptr + rows, mask=rows < M, other=0)
    there = cols[None, :] < lengths[:, None]
    x = tl.load(x_ptr + rows[:, None] * stride_x + cols[None, :], mask=there, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=1) / lengths
    deviation = tl.where(there, x - mean[:, None], 0.0)
    rstd = tl.rsqrt(tl.sum(deviation * deviation, axis=1) / lengths + eps)
    w = tl.load(w_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
    b = tl.load(b_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
    y = tl.where(there, deviation * rstd[:, None] * w[None, :] + b[None, :], 0.0)
    place = (rows < M)[:, None] & (cols < N)[None, :]
    tl.store(y_ptr + rows[:, None] * stride_y + cols[None, :], y.to(y_ptr.dtype.element_ty), mask=place)
    tl.store(mean_ptr + rows, mean, mask=rows < M)
    tl.store(rstd_ptr + rows, rstd, mask=rows < M)
    # END SOLUTION
