"""Exercise 13b: dx, dw and db in one kernel that reads x and dy once.

A grid of P programs, however many rows there are. A tile is ROWS whole rows, and program p takes the tiles p, p + P,
p + 2 P, ... as long as there are any. From each tile it stores dx, and it keeps two running sums: dy * xhat for dw, and dy
for db. When it is through, it stores them as row p of two matrices of partial sums, shape (P, N), fp32. The kernel that
adds up the rows of those is the second of 13a.

`tile_dx` is the arithmetic of 11a: xhat and dx of a tile that has been loaded.

M need not be a multiple of ROWS, and P may be larger than the number of tiles: then some programs have nothing to add up,
and their row of partial sums is 0. The partial sums hold NaN before the launch. Every matrix has a row stride of its own,
and dy a column stride as well; offsets can pass 2^31. The same inputs must give the same bits in whatever order the
programs run.

The course launches the kernel for you. Check with the panel in lesson 13, or with `course check 13b` in a terminal.
"""

import triton
import triton.language as tl


@triton.jit
def tile_dx(dy, x, w, mean, rstd, N):
    """xhat and dx of a tile, shape (ROWS, BLOCK); dy must be 0 in lanes past the end."""
    xhat = (x - mean[:, None]) * rstd[:, None]
    wdy = dy * w[None, :]
    c1 = tl.sum(xhat * wdy, axis=1) / N
    c2 = tl.sum(wdy, axis=1) / N
    return xhat, (wdy - (xhat * c1[:, None] + c2[:, None])) * rstd[:, None]


@triton.jit
def persistent_backward_kernel(
    dy_ptr, x_ptr, w_ptr, mean_ptr, rstd_ptr, dx_ptr, dw_partial_ptr, db_partial_ptr,
    stride_dy_row, stride_dy_col, stride_x, stride_dx,   # elements; the columns of x and dx are neighbours
    M, N,
    ROWS: tl.constexpr,                                  # rows per tile
    BLOCK: tl.constexpr,                                 # power of two >= N
):
    program = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    wide = cols.to(tl.int64)[None, :]                    # for dy: column * stride_dy_col can pass 2^31, too
    w = tl.load(w_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
    # YOUR CODE, about 13 lines: The loop over this program's tiles: where does it begin, how far does it go, and how
    # wide is a step? What do you keep from tile to tile?

    # YOUR CODE, about 3 lines: The partial sums of this program.
