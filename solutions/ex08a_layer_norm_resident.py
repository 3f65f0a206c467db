"""Exercise 08a: LayerNorm forward, several whole rows per program, each read once.

BLOCK is a power of two no smaller than N, so a row fits the program's registers and is loaded once. A program takes a
tile of ROWS rows: tensors of shape (ROWS, BLOCK), reductions along axis 1. M need not be a multiple of ROWS, N need not
equal BLOCK. Everything else is as in 07a: fp32 inside, mean and rstd saved, row offsets in 64 bits. No element of x may
be read twice. The check also says what a compiler for an H100 makes of the kernel: its registers, what it spills, and its
load instructions.

The course launches the kernel for you. Check with the panel in lesson 08, or with `course check 08a` in a terminal.
"""

import triton
import triton.language as tl


@triton.jit
def layer_norm_resident_kernel(
    x_ptr, y_ptr, w_ptr, b_ptr, mean_ptr, rstd_ptr,
    stride_x, stride_y,     # elements between rows
    M, N, eps,
    ROWS: tl.constexpr,     # rows per program
    BLOCK: tl.constexpr,    # power of two >= N
):
    cols = tl.arange(0, BLOCK)
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    # BEGIN SOLUTION
    #: mask: which places of the tile hold an element?
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    # END SOLUTION

    # BEGIN SOLUTION
    #: Load the tile of x; then mean, deviation and rstd of each row.
    x = tl.load(x_ptr + rows[:, None] * stride_x + cols[None, :], mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=1) / N
    deviation = tl.where(mask, x - mean[:, None], 0.0)
    rstd = tl.rsqrt(tl.sum(deviation * deviation, axis=1) / N + eps)
    # END SOLUTION

    w = tl.load(w_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
    b = tl.load(b_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
    # BEGIN SOLUTION
    #: y: the tile of the result, in fp32.
    y = deviation * rstd[:, None] * w[None, :] + b[None, :]
    # END SOLUTION
    tl.store(y_ptr + rows[:, None] * stride_y + cols[None, :], y.to(y_ptr.dtype.element_ty), mask=mask)
    # BEGIN SOLUTION
    #: Store mean and rstd of the rows that exist.
    tl.store(mean_ptr + rows, mean, mask=rows < M)
    tl.store(rstd_ptr + rows, rstd, mask=rows < M)
    # END SOLUTION
