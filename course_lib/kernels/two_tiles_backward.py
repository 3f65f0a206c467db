"""LayerNorm and RMSNorm backward for rows far from a power of two: a row is a tile of BLOCK and a
tile of TAIL columns.

The persistent kernels of norm_backward.py give a row of 4097 columns a block of 8192 lanes, half of
them idle. If rows are not whole vectors of 16 bytes, every lane has its own
instruction for each load and store. Here a row is a tile of BLOCK columns, all of them used, and a
tile of TAIL columns, as in two_tiles.py. The rest is the persistent design: x and dy are read once,
dw and db stay in registers, and each program writes one partial row.

Bytes: reads x and dy, writes dx (3 M N), and 8 P N of partial sums for RMSNorm, 16 P N for
LayerNorm, P programs. docs/kernel-trials.md, "Backward" and "Faster memory, and few rows", has the
measurements. At 4095 columns, which fill one block, two tiles gain nothing.

Source: norm_backward.py and two_tiles.py.
"""

from __future__ import annotations

import functools

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.language.extra.cuda import gdc_launch_dependents

from course_lib.kernels.arguments import add_offset
from course_lib.kernels.column_sums import column_sums
from course_lib.kernels.launch import device, operands, tables
from course_lib.kernels.launch.device_classes import DeviceClass
from course_lib.kernels.launch.launcher import Launcher


# The compiler is not told that w is aligned, because x's rows may not be: two_tiles.py gives the
# reason.
@triton.jit(do_not_specialize=["M"], do_not_specialize_on_alignment=["w_ptr"])
def two_tiles_backward_kernel(
    dy_ptr, x_ptr,                       # (M, N), fp16, bf16, fp32 or fp64
    w_ptr,                               # (N,), any of those dtypes; read only if HAS_W
    # (M,), fp32, or fp64 for an fp64 x; mean is read only if CENTRED
    mean_ptr, rstd_ptr,
    dtotal_ptr,                          # (M, N), laid out like dx; read only if HAS_DTOTAL
    dx_ptr,                              # (M, N), x's dtype, written
    # (P, N) for P programs, rstd's dtype, contiguous, written only if HAS_DW, HAS_DB
    dw_partial_ptr, db_partial_ptr,
    # in elements; dx has unit column stride
    stride_dy_row, stride_dy_col, stride_x_row, stride_x_col, stride_dx_row,
    M, N,
    CENTRED: tl.constexpr,    # LayerNorm; else RMSNorm, which has no mean, no c2 and no db
    HAS_W: tl.constexpr,
    BLOCK: tl.constexpr,      # columns of the first tile, at most N
    TAIL: tl.constexpr,       # columns of the second, at least N - BLOCK
    STAGES: tl.constexpr,     # rows in flight
    DEPENDENT: tl.constexpr,  # the next kernel may start early
    HAS_DTOTAL: tl.constexpr, # add the gradient of the sum that was normalised
    HAS_DW: tl.constexpr, HAS_DB: tl.constexpr,   # db only for LayerNorm
    # divides N and the row strides; a load of so many elements has 16 bytes
    VECTOR: tl.constexpr = 1,
    W_OFFSET: tl.constexpr = 0.0,   # added to w
):  # fmt: skip
    """Rows p, p + P, p + 2 P, ... for program p of P.

    Registers: about six times (BLOCK + TAIL) / (32 * num_warps) fp32 per thread.
    """
    if DEPENDENT:
        gdc_launch_dependents()
    ACC: tl.constexpr = rstd_ptr.dtype.element_ty
    program = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    tail_cols = BLOCK + tl.arange(0, TAIL)
    # VECTOR divides them, here in plain sight of the compiler
    N = N // VECTOR * VECTOR
    stride_dy_row = stride_dy_row // VECTOR * VECTOR
    stride_x_row = stride_x_row // VECTOR * VECTOR
    stride_dx_row = stride_dx_row // VECTOR * VECTOR
    mask = tail_cols < N
    wide = cols.to(tl.int64)
    tail_wide = tail_cols.to(tl.int64)
    if HAS_W:
        w = tl.load(w_ptr + cols)
        tail_w = tl.load(w_ptr + tail_cols, mask=mask, other=0.0)
    dw = tl.zeros([BLOCK], dtype=ACC)
    tail_dw = tl.zeros([TAIL], dtype=ACC)
    db = tl.zeros([BLOCK], dtype=ACC)
    tail_db = tl.zeros([TAIL], dtype=ACC)
    for number in tl.range(program, M, tl.num_programs(0), num_stages=STAGES):
        row = program.to(tl.int64) + (number - program)
        x_row_ptr = x_ptr + row * stride_x_row
        dy_row_ptr = dy_ptr + row * stride_dy_row
        xhat = tl.load(x_row_ptr + wide * stride_x_col).to(ACC)
        tail_xhat = tl.load(x_row_ptr + tail_wide * stride_x_col, mask=mask, other=0.0).to(ACC)
        dy = tl.load(dy_row_ptr + wide * stride_dy_col).to(ACC)
        tail_dy = tl.load(dy_row_ptr + tail_wide * stride_dy_col, mask=mask, other=0.0).to(ACC)
        rstd = tl.load(rstd_ptr + row)
        if CENTRED:
            mean = tl.load(mean_ptr + row)
            xhat -= mean
            # not zero in a padded lane; tail_dy is, and every use of it is a product
            tail_xhat -= mean
        xhat *= rstd
        tail_xhat *= rstd
        wdy = dy
        tail_wdy = tail_dy
        if HAS_W:
            wdy = dy * add_offset(w.to(ACC), W_OFFSET)
            tail_wdy = tail_dy * add_offset(tail_w.to(ACC), W_OFFSET)
        c1 = (tl.sum(xhat * wdy, axis=0) + tl.sum(tail_xhat * tail_wdy, axis=0)) / N
        if CENTRED:
            c2 = (tl.sum(wdy, axis=0) + tl.sum(tail_wdy, axis=0)) / N
            dx = (wdy - (xhat * c1 + c2)) * rstd
            tail_dx = (tail_wdy - (tail_xhat * c1 + c2)) * rstd
        else:
            dx = (wdy - xhat * c1) * rstd
            tail_dx = (tail_wdy - tail_xhat * c1) * rstd
        if HAS_DB:
            db += dy
            tail_db += tail_dy
        if HAS_DTOTAL:
            dtotal_row_ptr = dtotal_ptr + row * stride_dx_row
            dx += tl.load(dtotal_row_ptr + cols).to(ACC)
            tail_dx += tl.load(dtotal_row_ptr + tail_cols, mask=mask, other=0.0).to(ACC)
        target = dx_ptr + row * stride_dx_row
        tl.store(target + cols, dx.to(dx_ptr.dtype.element_ty))
        tl.store(target + tail_cols, tail_dx.to(dx_ptr.dtype.element_ty), mask=mask)
        if HAS_DW:
            dw += dy * xhat
            tail_dw += tail_dy * tail_xhat
    partial = program.to(tl.int64) * N
    if HAS_DW:
        tl.store(dw_partial_ptr + partial + cols, dw)
        tl.store(dw_partial_ptr + partial + tail_cols, tail_dw, mask=mask)
    if HAS_DB:
        tl.store(db_partial_ptr + partial + cols, db)
        tl.store(db_partial_ptr + partial + tail_cols, tail_db, mask=mask)


def two_tiles_backward(
    tuned: DeviceClass, dy: Tensor, x: Tensor, w: Tensor | None, mean: Tensor | None, rstd: Tensor,
    dtotal: Tensor | None, dx: Tensor, dw: Tensor | None, db: Tensor | None, w_offset: float,
) -> None:  # fmt: skip
    """Compute what :func:`course_lib.kernels.split_row_backward.split_backward` does, for 1 <= N <=
    TWO_TILES_LIMIT. x may also be fp64.

    Raises: ValueError if N is out of that range.
    """
    M, N = x.shape
    strides = *operands.strides(dy), *operands.strides(x)
    tiles, launcher = _prepare(
        N, x.dtype, tuned, mean is not None, w is not None, dtotal is not None, dw is not None,
        db is not None, device.has_dependent_launch(x.device),
        operands.find_vector(x, strides[0], strides[2]), w_offset,
    )  # fmt: skip
    programs = min(M, tiles.programs_per_multiprocessor * device.count_multiprocessors(x.device))
    dw_partial, db_partial = (operands.make_partials(programs, x, total) for total in (dw, db))
    launcher(
        (programs,), dy, x, operands.first_given(w, x), operands.first_given(mean, rstd), rstd,
        operands.first_given(dtotal, dy), dx, operands.first_given(dw_partial, rstd),
        operands.first_given(db_partial, rstd),
        *strides, dx.stride(0), M, N,
    )  # fmt: skip
    column_sums(dw_partial, db_partial, dw, db)


@functools.cache
def _prepare(
    N: int, dtype: torch.dtype, tuned: DeviceClass, centred: bool, has_w: bool, has_dtotal: bool,
    has_dw: bool, has_db: bool, dependent: bool, vector: int, w_offset: float,
) -> tuple[tables.TwoTilesLaunch, Launcher]:  # fmt: skip
    tiles = tables.two_tiles_backward(N, dtype, tuned=tuned)
    return tiles, Launcher(
        two_tiles_backward_kernel, CENTRED=centred, HAS_W=has_w, BLOCK=tiles.block, TAIL=tiles.tail,
        STAGES=tiles.stages,
        DEPENDENT=dependent, HAS_DTOTAL=has_dtotal, HAS_DW=has_dw, HAS_DB=has_db,
        VECTOR=vector, W_OFFSET=w_offset, num_warps=tiles.num_warps,
    )  # fmt: skip
