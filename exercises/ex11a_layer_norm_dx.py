"""Exercise 11a: dx of LayerNorm, several whole rows per program.

The forward pass has saved mean and rstd, one fp32 number each per row. With xhat = (x - mean) * rstd and wdy = w * dy,

    c1 = mean(xhat * wdy)        c2 = mean(wdy)        dx = (wdy - (xhat * c1 + c2)) * rstd

with means over the N columns of a row.
BLOCK is a power of two no smaller than N; a program takes a tile of ROWS rows, and M need not be a multiple of ROWS. Every
matrix has a row stride of its own, and dy a column stride as well: it may be expanded from one number, or transposed.
Offsets can pass 2^31. Compute in fp32 whatever the dtypes, and store dx in its own.

The course launches the kernel for you. Check with the panel in lesson 11, or with `course check 11a` in a terminal.
"""

import triton
import triton.language as tl


@triton.jit
def layer_norm_dx_kernel(
    dy_ptr, x_ptr, w_ptr, mean_ptr, rstd_ptr, dx_ptr,
    stride_dy_row, stride_dy_col,   # elements between rows and between columns of dy
    stride_x, stride_dx,            # elements between rows; columns of x and dx are neighbours
    M, N,
    ROWS: tl.constexpr,             # rows per program
    BLOCK: tl.constexpr,            # power of two >= N
):
    cols = tl.arange(0, BLOCK)
    wide = cols.to(tl.int64)        # for dy: column * stride_dy_col can pass 2^31, too
    # YOUR CODE, about 2 lines: rows: the row numbers of this program. mask: which places of the tile hold an element?

    # YOUR CODE, about 7 lines: Load what the formula needs. Then xhat and wdy.

    # YOUR CODE, about 4 lines: c1 and c2, one per row: which lanes may take part, and what do you divide by? Then dx,
    # stored by its own stride.
