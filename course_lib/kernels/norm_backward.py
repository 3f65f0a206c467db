"""LayerNorm's and RMSNorm's backward passes: one set of kernels, with five designs for the same
gradients.

With ``wdy = w * dy``, ``c1 = mean(xhat * wdy)`` and ``c2 = mean(wdy)`` over the columns of a row,

    LayerNorm: dx = (wdy - (xhat * c1 + c2)) * rstd     dw = sum over rows of dy * xhat     db = sum over rows of dy
    RMSNorm:   dx = (wdy - xhat * c1) * rstd            dw = sum over rows of dy * xhat

RMSNorm subtracts no mean, so it has no c2 and no db. ``CENTRED`` tells a kernel which norm it
computes. It is a constant for the compiler, which leaves out the lines of the other norm.

``dx`` needs only its own row. ``dw`` and ``db`` need every row, and rows belong to different
programs. The designs differ in how they add up rows, and in their passes over M N elements of x, dy
and dx (3 is the least):

- two-stage: ``dx`` by rows, then ``dw`` and ``db`` by columns of row chunks, then a sum over the
  chunks. 5 passes, no locks, little scratch memory.
- persistent: a few programs per multiprocessor loop over tiles of rows, read x and dy once, and
  keep their part of dw and db in registers until the end. 3 passes plus 8 P N bytes of partial sums
  for each of dw and db, P programs. No locks, the same bits every time.
- columns, for rows of any length: several programs per row write their parts of the sums under c1
  and c2; then dx and the partial sums by columns. 5 passes.
- two tiles (two_tiles_backward.py), for rows of up to TWO_TILES_LIMIT columns, far from a power of
  two: persistent. 3 passes.
- split (split_row_backward.py), for rows above PERSISTENT_LIMIT: persistent, with a row's columns
  divided among programs. 3 passes.

mean and rstd come from the forward pass in fp32; with bf16 statistics xhat would be wrong by
several percent at mean/std = 100. fp64 inputs are computed in fp64.

Sources: the formulas are derived in lesson 10, after Ba, Kiros and Hinton 2016, "Layer
Normalization", and Zhang and Sennrich 2019, "Root Mean Square Layer Normalization"; the persistent
design follows flash-attention's and quack's kernels.
"""  # noqa: E501

from __future__ import annotations

import functools
from collections.abc import Callable
from math import prod

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from course_lib.kernels.arguments import add_offset, find_rows, show_vectors
from course_lib.kernels.column_sums import column_sums
from course_lib.kernels.launch import choice, device, operands, tables
from course_lib.kernels.launch.device_classes import DeviceClass, find_line
from course_lib.kernels.launch.launcher import Launcher, launch
from course_lib.kernels.split_row_backward import split_backward
from course_lib.kernels.two_tiles_backward import two_tiles_backward


@triton.jit(do_not_specialize=["M"])
def norm_dx_kernel(
    dy_ptr, x_ptr,            # (M, N), fp16, bf16, fp32 or fp64
    w_ptr,                    # (N,), any of those dtypes; read only if HAS_W
    mean_ptr, rstd_ptr,       # (M,), fp32, or fp64 for an fp64 x; mean is read only if CENTRED
    dx_ptr,                   # (M, N), x's dtype, written
    # in elements; dx has unit column stride
    stride_dy_row, stride_dy_col, stride_x_row, stride_x_col, stride_dx_row,
    M, N,
    CENTRED: tl.constexpr,    # LayerNorm; else RMSNorm
    HAS_W: tl.constexpr,
    ROWS: tl.constexpr,       # rows per program
    BLOCK: tl.constexpr,      # power of two >= N
):  # fmt: skip
    """dx for a tile of ROWS whole rows. Bytes: reads x and dy, writes dx (3 M N)."""
    ACC: tl.constexpr = tl.float64 if x_ptr.dtype.element_ty == tl.float64 else tl.float32
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    cols = tl.arange(0, BLOCK)
    col_mask = cols < N
    mask = (rows < M)[:, None] & col_mask[None, :]
    wide = cols.to(tl.int64)[None, :]
    x_tile_ptr = x_ptr + rows[:, None] * stride_x_row + wide * stride_x_col
    xhat = tl.load(x_tile_ptr, mask=mask, other=0.0, eviction_policy="evict_first").to(ACC)
    dy_tile_ptr = dy_ptr + rows[:, None] * stride_dy_row + wide * stride_dy_col
    wdy = tl.load(dy_tile_ptr, mask=mask, other=0.0, eviction_policy="evict_first").to(ACC)
    if HAS_W:
        wdy *= tl.load(w_ptr + cols, mask=col_mask, other=0.0, eviction_policy="evict_last").to(
            ACC
        )[None, :]
    if CENTRED:
        mean = tl.load(mean_ptr + rows, mask=rows < M, other=0.0)
    rstd = tl.load(rstd_ptr + rows, mask=rows < M, other=0.0)
    if CENTRED:
        # not zero in a padded lane; wdy is, and every use of xhat is a product with it
        xhat -= mean[:, None]
    xhat *= rstd[:, None]
    c1 = tl.sum(xhat * wdy, axis=1) / N
    if CENTRED:
        c2 = tl.sum(wdy, axis=1) / N
        dx = (wdy - (xhat * c1[:, None] + c2[:, None])) * rstd[:, None]
    else:
        dx = (wdy - xhat * c1[:, None]) * rstd[:, None]
    tl.store(
        dx_ptr + rows[:, None] * stride_dx_row + cols[None, :],
        dx.to(dx_ptr.dtype.element_ty),
        mask=mask,
    )


@triton.jit(do_not_specialize=["M", "rows_a_chunk"])
def norm_column_partials_kernel(
    dy_ptr, x_ptr,                       # (M, N), fp16, bf16, fp32 or fp64
    # (M,), fp32, or fp64 for an fp64 x; mean is read only if CENTRED
    mean_ptr, rstd_ptr,
    # (chunks, N), mean's dtype, contiguous, written; db only if CENTRED
    dw_partial_ptr, db_partial_ptr,
    stride_dy_row, stride_dy_col, stride_x_row, stride_x_col,   # in elements
    M, N, rows_a_chunk,
    CENTRED: tl.constexpr,               # LayerNorm; else RMSNorm
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,               # rows per step, columns per program
):  # fmt: skip
    """Sums of dy * xhat and, for LayerNorm, of dy over one chunk of rows, for BLOCK_N columns.

    Bytes: reads x and dy (2 M N).
    """
    ACC: tl.constexpr = dw_partial_ptr.dtype.element_ty
    chunk = tl.program_id(1)
    cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    wide = cols.to(tl.int64)[None, :]
    dw = tl.zeros([BLOCK_M, BLOCK_N], dtype=ACC)
    if CENTRED:
        db = tl.zeros([BLOCK_M, BLOCK_N], dtype=ACC)
    first = chunk.to(tl.int64) * rows_a_chunk
    for start in range(0, rows_a_chunk, BLOCK_M):
        within = start + tl.arange(0, BLOCK_M)
        rows = first + within
        # the last step must not read rows of the next chunk
        row_mask = (within < rows_a_chunk) & (rows < M)
        mask = row_mask[:, None] & (cols < N)[None, :]
        x = tl.load(
            x_ptr + rows[:, None] * stride_x_row + wide * stride_x_col, mask=mask, other=0.0
        ).to(ACC)
        dy = tl.load(
            dy_ptr + rows[:, None] * stride_dy_row + wide * stride_dy_col, mask=mask, other=0.0
        ).to(ACC)
        if CENTRED:
            mean = tl.load(mean_ptr + rows, mask=row_mask, other=0.0)
        rstd = tl.load(rstd_ptr + rows, mask=row_mask, other=0.0)
        if CENTRED:
            x -= mean[:, None]
        dw += dy * x * rstd[:, None]
        if CENTRED:
            db += dy
    offsets = chunk.to(tl.int64) * N + cols
    tl.store(dw_partial_ptr + offsets, tl.sum(dw, axis=0), mask=cols < N)
    if CENTRED:
        tl.store(db_partial_ptr + offsets, tl.sum(db, axis=0), mask=cols < N)


@triton.jit
def _load_statistics(mean_ptr, rstd_ptr, rows, M, CENTRED: tl.constexpr):
    """mean and rstd of the rows, of those from M on 0; for RMSNorm, which has no mean, rstd
    twice."""
    rstd = tl.load(rstd_ptr + rows, mask=rows < M, other=0.0)
    return tl.load(mean_ptr + rows, mask=rows < M, other=0.0) if CENTRED else rstd, rstd


@triton.jit(do_not_specialize=["M"])
def norm_backward_persistent_kernel(
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
    CENTRED: tl.constexpr,               # LayerNorm; else RMSNorm
    HAS_W: tl.constexpr,
    FULL: tl.constexpr,                  # N == BLOCK: no column mask
    ROWS: tl.constexpr,                  # rows per tile
    BLOCK: tl.constexpr,                 # power of two >= N
    STAGES: tl.constexpr,                # tiles in flight
    # for x, dy and dx, read or written once, so that w stays in L2
    EVICTION_POLICY: tl.constexpr = "evict_first",
    # mean and rstd are loaded one tile ahead: before dx's "store", "last" in the loop, or not
    AHEAD: tl.constexpr = "",
    DEPENDENT: tl.constexpr = False,     # the next kernel may start early
    HAS_DTOTAL: tl.constexpr = False,    # add the gradient of the sum that was normalised
    HAS_DW: tl.constexpr = True, HAS_DB: tl.constexpr = True,   # db only for LayerNorm
    # divides N and the row strides; a load of so many elements has 16 bytes
    VECTOR: tl.constexpr = 1,
    W_OFFSET: tl.constexpr = 0.0,   # added to w
):  # fmt: skip
    """dx for tiles of rows, and per program one partial row of dw and, for LayerNorm, of db.

    Program p takes tiles p, p + P, p + 2 P, ... So its partial sums depend on P and the launch
    table, not on timing. Keep the order of the loads: if both addresses are computed before both
    loads, a thread needs more registers. Bytes: reads x and dy, writes dx (3 M N; 4 M N with
    dtotal), and 4 P N of partial sums for each of dw and db.
    """
    if DEPENDENT:
        gdc_launch_dependents()
    ACC: tl.constexpr = rstd_ptr.dtype.element_ty
    program = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    # VECTOR divides them, here in plain sight of the compiler
    N = N // VECTOR * VECTOR
    stride_dy_row = show_vectors(stride_dy_row, VECTOR)
    stride_x_row = show_vectors(stride_x_row, VECTOR)
    stride_dx_row = stride_dx_row // VECTOR * VECTOR
    col_mask = cols < N
    wide = cols.to(tl.int64)[None, :]
    if HAS_W:
        if FULL:
            w = tl.load(w_ptr + cols, eviction_policy="evict_last").to(ACC)
        else:
            w = tl.load(w_ptr + cols, mask=col_mask, other=0.0, eviction_policy="evict_last").to(
                ACC
            )
        w = add_offset(w, W_OFFSET)
    dw = tl.zeros([ROWS, BLOCK], dtype=ACC)
    db = tl.zeros([ROWS, BLOCK], dtype=ACC)
    if AHEAD != "":
        first = (program * ROWS + tl.arange(0, ROWS)).to(tl.int64)
        mean, rstd = _load_statistics(mean_ptr, rstd_ptr, first, M, CENTRED)
    for tile in tl.range(program, tl.cdiv(M, ROWS), tl.num_programs(0), num_stages=STAGES):
        rows = (tile * ROWS + tl.arange(0, ROWS)).to(tl.int64)
        row_mask = rows < M
        if FULL and ROWS == 1:
            x_rows = find_rows(rows[:, None], stride_x_row, VECTOR)
            x_tile_ptr = x_ptr + x_rows + wide * stride_x_col
            xhat = tl.load(x_tile_ptr, eviction_policy=EVICTION_POLICY).to(ACC)
            dy_rows = find_rows(rows[:, None], stride_dy_row, VECTOR)
            dy_tile_ptr = dy_ptr + dy_rows + wide * stride_dy_col
            dy = tl.load(dy_tile_ptr, eviction_policy=EVICTION_POLICY).to(ACC)
        else:
            mask = row_mask[:, None] & col_mask[None, :]
            x_rows = find_rows(rows[:, None], stride_x_row, VECTOR)
            x_tile_ptr = x_ptr + x_rows + wide * stride_x_col
            xhat = tl.load(x_tile_ptr, mask=mask, other=0.0, eviction_policy=EVICTION_POLICY).to(
                ACC
            )
            dy_rows = find_rows(rows[:, None], stride_dy_row, VECTOR)
            dy_tile_ptr = dy_ptr + dy_rows + wide * stride_dy_col
            dy = tl.load(dy_tile_ptr, mask=mask, other=0.0, eviction_policy=EVICTION_POLICY).to(ACC)
        if AHEAD == "":
            if CENTRED:
                mean = tl.load(mean_ptr + rows, mask=row_mask, other=0.0)
            rstd = tl.load(rstd_ptr + rows, mask=row_mask, other=0.0)
        if CENTRED:
            xhat -= mean[:, None]
        xhat *= rstd[:, None]
        wdy = dy
        if HAS_W:
            wdy = dy * w[None, :]
        c1 = tl.sum(xhat * wdy, axis=1) / N
        if CENTRED:
            c2 = tl.sum(wdy, axis=1) / N
            dx = (wdy - (xhat * c1[:, None] + c2[:, None])) * rstd[:, None]
        else:
            dx = (wdy - xhat * c1[:, None]) * rstd[:, None]
        if AHEAD == "store":
            mean, rstd = _load_statistics(
                mean_ptr, rstd_ptr, rows + tl.num_programs(0) * ROWS, M, CENTRED
            )
        dx_offsets = rows[:, None] * stride_dx_row + cols[None, :]
        if HAS_DTOTAL:
            mask = row_mask[:, None] & col_mask[None, :]
            dx += tl.load(
                dtotal_ptr + dx_offsets, mask=mask, other=0.0, eviction_policy=EVICTION_POLICY
            ).to(ACC)
        target = dx_ptr + dx_offsets
        if FULL and ROWS == 1:
            tl.store(target, dx.to(dx_ptr.dtype.element_ty), eviction_policy=EVICTION_POLICY)
        else:
            mask = row_mask[:, None] & col_mask[None, :]
            tl.store(
                target, dx.to(dx_ptr.dtype.element_ty), mask=mask, eviction_policy=EVICTION_POLICY
            )
        if HAS_DW:
            dw += dy * xhat
        if HAS_DB:
            db += dy
        if AHEAD == "last":
            mean, rstd = _load_statistics(
                mean_ptr, rstd_ptr, rows + tl.num_programs(0) * ROWS, M, CENTRED
            )
    partial = program.to(tl.int64) * N + cols
    if HAS_DW:
        tl.store(dw_partial_ptr + partial, tl.sum(dw, axis=0), mask=col_mask)
    if HAS_DB:
        tl.store(db_partial_ptr + partial, tl.sum(db, axis=0), mask=col_mask)


@triton.jit
def norm_row_sums_kernel(
    dy_ptr, x_ptr,            # (M, N), fp16, bf16, fp32 or fp64
    w_ptr,                    # (N,), any of those dtypes; read only if HAS_W
    mean_ptr, rstd_ptr,       # (M,), fp32, or fp64 for an fp64 x; mean is read only if CENTRED
    c1_ptr, c2_ptr,           # (M, PARTS), rstd's dtype, contiguous, written; c2 only if CENTRED
    stride_dy_row, stride_dy_col, stride_x_row, stride_x_col,   # in elements
    N,
    CENTRED: tl.constexpr,    # LayerNorm; else RMSNorm
    HAS_W: tl.constexpr,
    # programs that share a row, so that a few long rows have work for a whole device
    PARTS: tl.constexpr,
    LENGTH: tl.constexpr,     # columns of a part, a multiple of BLOCK
    BLOCK: tl.constexpr,      # columns per step
    DEPENDENT: tl.constexpr,  # the next kernel may start early
    # divides N and the row strides; a load of so many elements has 16 bytes
    VECTOR: tl.constexpr = 1,
    W_OFFSET: tl.constexpr = 0.0,   # added to w
):  # fmt: skip
    """One part of one row's sums under c1 and, for LayerNorm, c2, for rows of any length. Bytes:
    reads x and dy (2 M N)."""
    if DEPENDENT:
        gdc_launch_dependents()
    ACC: tl.constexpr = c1_ptr.dtype.element_ty
    row = (tl.program_id(0) // PARTS).to(tl.int64)
    first = tl.program_id(0) % PARTS * LENGTH
    # VECTOR divides them, here in plain sight of the compiler
    N = N // VECTOR * VECTOR
    stride_dy_row = stride_dy_row // VECTOR * VECTOR
    stride_x_row = stride_x_row // VECTOR * VECTOR
    if CENTRED:
        mean = tl.load(mean_ptr + row)
    rstd = tl.load(rstd_ptr + row)
    products = tl.zeros([BLOCK], dtype=ACC)
    if CENTRED:
        total = tl.zeros([BLOCK], dtype=ACC)
    for start in range(first, tl.minimum(first + LENGTH, N), BLOCK):
        cols = start + tl.arange(0, BLOCK)
        wide = cols.to(tl.int64)
        mask = cols < N
        x = tl.load(x_ptr + row * stride_x_row + wide * stride_x_col, mask=mask, other=0.0).to(ACC)
        wdy = tl.load(dy_ptr + row * stride_dy_row + wide * stride_dy_col, mask=mask, other=0.0).to(
            ACC
        )
        if HAS_W:
            w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(ACC)
            wdy *= add_offset(w, W_OFFSET)
        if CENTRED:
            x -= mean
        products += x * rstd * wdy
        if CENTRED:
            total += wdy
    tl.store(c1_ptr + tl.program_id(0), tl.sum(products, axis=0))
    if CENTRED:
        tl.store(c2_ptr + tl.program_id(0), tl.sum(total, axis=0))


@triton.jit(do_not_specialize=["M", "rows_a_chunk"])
def norm_backward_columns_kernel(
    dy_ptr, x_ptr,                       # (M, N), fp16, bf16, fp32 or fp64
    w_ptr,                               # (N,), any of those dtypes; read only if HAS_W
    # (M,), fp32, or fp64 for an fp64 x; mean is read only if CENTRED
    mean_ptr, rstd_ptr,
    # (M, PARTS), rstd's dtype, contiguous: parts of each row's sums; c2 only if CENTRED
    c1_ptr, c2_ptr,
    dtotal_ptr,                          # (M, N), laid out like dx; read only if HAS_DTOTAL
    dx_ptr,                              # (M, N), x's dtype, written
    # (chunks, N), any floating dtype, contiguous, written only if HAS_DW, HAS_DB
    dw_partial_ptr, db_partial_ptr,
    # in elements; dx has unit column stride
    stride_dy_row, stride_dy_col, stride_x_row, stride_x_col, stride_dx_row,
    M, N, rows_a_chunk,
    CENTRED: tl.constexpr,               # LayerNorm; else RMSNorm
    HAS_W: tl.constexpr,
    PARTS: tl.constexpr,                 # parts of a row's sums
    PARTS_2: tl.constexpr,               # the power of two >= PARTS
    BLOCK: tl.constexpr,                 # columns per program
    HAS_DTOTAL: tl.constexpr,            # add the gradient of the sum that was normalised
    HAS_DW: tl.constexpr, HAS_DB: tl.constexpr,
    # this kernel may start before the sums are written, and the next before this one ends
    DEPENDENT: tl.constexpr,
    # divides N and the row strides; a load of so many elements has 16 bytes
    VECTOR: tl.constexpr = 1,
    W_OFFSET: tl.constexpr = 0.0,   # added to w
):  # fmt: skip
    """dx and partial sums for BLOCK columns of one chunk of rows, from the given parts of each
    row's sums.

    Bytes: reads x and dy, writes dx (3 M N; 4 M N with dtotal).
    """
    ACC: tl.constexpr = tl.float64 if x_ptr.dtype.element_ty == tl.float64 else tl.float32
    chunk = tl.program_id(1)
    cols = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    wide = cols.to(tl.int64)
    # VECTOR divides them, here in plain sight of the compiler
    N = N // VECTOR * VECTOR
    stride_dy_row = stride_dy_row // VECTOR * VECTOR
    stride_x_row = stride_x_row // VECTOR * VECTOR
    stride_dx_row = stride_dx_row // VECTOR * VECTOR
    mask = cols < N
    parts = tl.arange(0, PARTS_2)
    if HAS_W:
        w = tl.load(w_ptr + cols, mask=mask, other=0.0)
    dw = tl.zeros([BLOCK], dtype=ACC)
    db = tl.zeros([BLOCK], dtype=ACC)
    if DEPENDENT:
        gdc_wait()
        gdc_launch_dependents()
    first = chunk.to(tl.int64) * rows_a_chunk
    for number in range(0, tl.minimum(rows_a_chunk, M - chunk * rows_a_chunk)):
        row = first + number
        xhat = tl.load(x_ptr + row * stride_x_row + wide * stride_x_col, mask=mask, other=0.0).to(
            ACC
        )
        dy = tl.load(dy_ptr + row * stride_dy_row + wide * stride_dy_col, mask=mask, other=0.0).to(
            ACC
        )
        rstd = tl.load(rstd_ptr + row)
        c1 = (
            tl.sum(tl.load(c1_ptr + row * PARTS + parts, mask=parts < PARTS, other=0.0), axis=0) / N
        )
        if CENTRED:
            c2 = (
                tl.sum(tl.load(c2_ptr + row * PARTS + parts, mask=parts < PARTS, other=0.0), axis=0)
                / N
            )
            xhat -= tl.load(mean_ptr + row)
        xhat *= rstd
        wdy = dy
        if HAS_W:
            wdy = dy * add_offset(w.to(ACC), W_OFFSET)
        projection = xhat * c1
        if CENTRED:
            projection += c2
        dx = (wdy - projection) * rstd
        dx_offsets = row * stride_dx_row + wide
        if HAS_DTOTAL:
            dx += tl.load(dtotal_ptr + dx_offsets, mask=mask, other=0.0).to(ACC)
        tl.store(dx_ptr + dx_offsets, dx.to(dx_ptr.dtype.element_ty), mask=mask)
        if HAS_DW:
            dw += dy * xhat
        if HAS_DB:
            db += dy
    at = chunk.to(tl.int64) * N + wide
    if HAS_DW:
        tl.store(dw_partial_ptr + at, dw.to(dw_partial_ptr.dtype.element_ty), mask=mask)
    if HAS_DB:
        tl.store(db_partial_ptr + at, db.to(db_partial_ptr.dtype.element_ty), mask=mask)


# A design takes the class of the device, dy, x, w, mean, rstd, dtotal, dx, dw, db and w_offset, and
# fills dx, dw and db. dtotal is None without a residual, dw and db if they are not needed; for
# RMSNorm mean and db are None.
Design = Callable[
    [
        DeviceClass,
        Tensor,
        Tensor,
        Tensor | None,
        Tensor | None,
        Tensor,
        Tensor | None,
        Tensor,
        Tensor | None,
        Tensor | None,
        float,
    ],
    None,
]


def norm_backward(
    dy: Tensor, x: Tensor, w: Tensor | None, mean: Tensor | None, rstd: Tensor, *,
    dtotal: Tensor | None, needs_dw: bool, needs_db: bool, bias_dtype: torch.dtype | None,
    algorithm: str, designs: dict[str, Design], w_offset: float = 0.0,
) -> tuple[Tensor, Tensor | None, Tensor | None]:  # fmt: skip
    """Compute the gradients of a norm of the rows of a matrix, by one of ``designs``.

    Args:
        dy, x: shape (..., N), fp32, fp16, bf16 or fp64, any strides, also 0 as in an expanded dy.
        w: shape (N,), or None for all ones.
        mean, rstd: shape (M,), as the forward pass saved them: fp32, or fp64 for an fp64 x; mean
            None for RMSNorm.
        dtotal: shape (..., N), if x is a sum that the next layer uses as well: the gradient from
            there. It is added to dx before dx is rounded.
        needs_dw, needs_db: whether dw and db are computed. needs_db is False for RMSNorm.
        bias_dtype: dtype of db; None takes w's dtype, or x's without w.
        algorithm: a key of ``designs``, or "auto", which takes that of
            :func:`choice.choose_backward`.
        w_offset: added to w, if there is a w, as in the forward pass. dw is the same for any.

    Returns: dx of x's shape and dtype, contiguous; dw and db, shape (N,), in w's dtype (x's without
    w) and ``bias_dtype``, or None where they are not needed.

    Raises: ValueError if the algorithm is unknown, or does not take these arguments.
    """
    if algorithm != "auto" and algorithm not in designs:
        raise ValueError(
            f"algorithm is {algorithm!r}; it can be {', '.join(map(repr, ('auto', *designs)))}"
        )
    operands.check_columns(x)
    shape, N = x.shape, x.shape[-1]
    scattered = algorithm in ("auto", "persistent")
    x, dy = (operands.view_rows(rows, scattered=scattered) for rows in (x, dy))
    dx = torch.empty((prod(shape[:-1]), N), dtype=x.dtype, device=x.device)
    M = dx.shape[0]
    # without rows the sums are 0, and no kernel is launched
    make = torch.empty if M else torch.zeros
    w_dtype = x.dtype if w is None else w.dtype
    dw = make(N, dtype=w_dtype, device=x.device) if needs_dw else None
    db = make(N, dtype=bias_dtype or w_dtype, device=x.device) if needs_db else None
    if M:
        tuned = choice.find_device_class(x)
        if algorithm == "auto":
            algorithm = choice.choose_backward(x, centred=mean is not None, tuned=tuned)
        designs[algorithm](
            tuned, dy, x, None if w is None else w.contiguous(), mean, rstd,
            None if dtotal is None else dtotal.contiguous(), dx, dw, db, w_offset,
        )  # fmt: skip
    return dx if len(shape) == 2 else dx.view(shape), dw, db


def check_whole(
    algorithm: str, mean: Tensor | None, dtotal: Tensor | None, dw: Tensor | None,
    db: Tensor | None, w_offset: float,
) -> None:  # fmt: skip
    """Raise ValueError if a design of the lessons, which computes every gradient of a norm without
    a residual or an offset of w, is asked for more or less."""
    if dtotal is not None or dw is None or (db is None and mean is not None) or w_offset:
        raise ValueError(
            f"algorithm {algorithm!r} computes dx, dw and db, and adds no dtotal and no offset;"
            " use 'auto'"
        )


def _persistent(
    tuned: DeviceClass, dy: Tensor, x: Tensor, w: Tensor | None, mean: Tensor | None, rstd: Tensor,
    dtotal: Tensor | None, dx: Tensor, dw: Tensor | None, db: Tensor | None, w_offset: float,
) -> None:  # fmt: skip
    M, N = dx.shape
    strides = *operands.strides(dy), *operands.strides(x)
    centred = mean is not None
    unneeded = dw is None and tables.computes_unneeded_sums(N, centred=centred)
    has_dw, has_db = dw is not None or unneeded, db is not None or (unneeded and centred)
    tile, launcher = _prepare_persistent(
        N, x.dtype, tuned, centred, w is not None, dtotal is not None, has_dw, has_db,
        device.has_dependent_launch(x.device),
        device.count_shared_bytes(x.device), operands.find_vector(x, strides[0], strides[2]),
        w_offset,
    )  # fmt: skip
    programs = min(
        -(-M // tile.rows),
        tile.programs_per_multiprocessor * device.count_multiprocessors(x.device),
    )
    dw_partial, db_partial = (
        operands.make_partials(programs, x, x if needed else None) for needed in (has_dw, has_db)
    )
    launcher(
        (programs,), dy, x, x if w is None else w, rstd if mean is None else mean, rstd,
        dy if dtotal is None else dtotal, dx, rstd if dw_partial is None else dw_partial,
        rstd if db_partial is None else db_partial, *strides, dx.stride(0), M, N,
    )  # fmt: skip
    column_sums(None if dw is None else dw_partial, None if db is None else db_partial, dw, db)


@functools.cache
def _prepare_persistent(
    N: int, dtype: torch.dtype, tuned: DeviceClass, centred: bool, has_w: bool, has_dtotal: bool,
    has_dw: bool, has_db: bool, dependent: bool, shared_bytes: int, vector: int, w_offset: float,
) -> tuple[tables.PersistentLaunch, Launcher]:  # fmt: skip
    tile = tables.persistent(N, dtype, tuned=tuned, centred=centred)
    stage_bytes = (3 if has_dtotal else 2) * tile.rows * tile.block * dtype.itemsize
    line = find_line(tuned.persistent, N, dtype, centred)
    return tile, Launcher(
        norm_backward_persistent_kernel, CENTRED=centred, HAS_W=has_w, FULL=tile.block == N,
        ROWS=tile.rows, BLOCK=tile.block,
        STAGES=tables.fit_stages(tile.stages, stage_bytes, shared_bytes),
        EVICTION_POLICY=tables.eviction_policy(N, dtype),
        AHEAD=find_line(tuned.ahead, N, dtype, centred).ahead, DEPENDENT=dependent,
        HAS_DTOTAL=has_dtotal, HAS_DW=has_dw, HAS_DB=has_db, VECTOR=vector, W_OFFSET=w_offset,
        num_warps=tile.num_warps, maxnreg=line.registers,
    )  # fmt: skip


def _two_stage(
    tuned: DeviceClass, dy: Tensor, x: Tensor, w: Tensor | None, mean: Tensor | None, rstd: Tensor,
    dtotal: Tensor | None, dx: Tensor, dw: Tensor | None, db: Tensor | None, w_offset: float,
) -> None:  # fmt: skip
    check_whole("two-stage", mean, dtotal, dw, db, w_offset)
    M, N = x.shape
    centred = mean is not None
    saved = operands.first_given(mean, rstd), rstd
    strides = *operands.strides(dy), *operands.strides(x)
    tile = tables.resident(N)
    launch(
        norm_dx_kernel, (-(-M // tile.rows),), dy, x, operands.first_given(w, x), *saved, dx,
        *strides, dx.stride(0), M, N,
        CENTRED=centred, HAS_W=w is not None, ROWS=tile.rows, BLOCK=tile.block,
        num_warps=tile.num_warps,
    )  # fmt: skip
    chunks, rows_a_chunk = tables.row_chunks(M)
    dw_partial, db_partial = (operands.make_partials(chunks, x, total) for total in (dw, db))
    launch(
        norm_column_partials_kernel, (-(-N // 128), chunks), dy, x, *saved, dw_partial,
        operands.first_given(db_partial, dw_partial), *strides, M, N, rows_a_chunk,
        CENTRED=centred, BLOCK_M=32, BLOCK_N=128, num_warps=4,
    )  # fmt: skip
    column_sums(dw_partial, db_partial, dw, db)


def _columns(
    tuned: DeviceClass, dy: Tensor, x: Tensor, w: Tensor | None, mean: Tensor | None, rstd: Tensor,
    dtotal: Tensor | None, dx: Tensor, dw: Tensor | None, db: Tensor | None, w_offset: float,
) -> None:  # fmt: skip
    M, N = x.shape
    centred = mean is not None
    given = dy, x, operands.first_given(w, x), operands.first_given(mean, rstd), rstd
    strides = *operands.strides(dy), *operands.strides(x)
    parts, sums_launcher, block, dx_launcher = _prepare_columns(
        N, centred, w is not None, dtotal is not None, dw is not None, db is not None,
        device.has_dependent_launch(x.device), operands.find_vector(x, strides[0], strides[2]),
        w_offset,
    )  # fmt: skip
    c1 = torch.empty((M, parts), dtype=rstd.dtype, device=x.device)
    c2 = torch.empty_like(c1) if centred else c1
    sums_launcher((M * parts,), *given, c1, c2, *strides, N)
    programs = -(-N // block)
    chunks, rows_a_chunk = tables.row_chunks(M, programs, centred=centred)
    # with one chunk its sums are the result
    dw_partial, db_partial = (
        total if chunks == 1 else operands.make_partials(chunks, x, total) for total in (dw, db)
    )
    dx_launcher(
        (programs, chunks), *given, c1, c2, operands.first_given(dtotal, dy), dx,
        operands.first_given(dw_partial, rstd), operands.first_given(db_partial, rstd),
        *strides, dx.stride(0), M, N, rows_a_chunk,
    )  # fmt: skip
    if chunks > 1:
        column_sums(dw_partial, db_partial, dw, db)


@functools.cache
def _prepare_columns(
    N: int, centred: bool, has_w: bool, has_dtotal: bool, has_dw: bool, has_db: bool,
    dependent: bool, vector: int, w_offset: float,
) -> tuple[int, Launcher, int, Launcher]:  # fmt: skip
    parts, length, step, step_warps = tables.row_sums(N)
    block, num_warps = tables.columns_backward(N)
    common = {
        "CENTRED": centred, "HAS_W": has_w, "PARTS": parts, "DEPENDENT": dependent,
        "VECTOR": vector, "W_OFFSET": w_offset,
    }  # fmt: skip
    sums_launcher = Launcher(
        norm_row_sums_kernel, **common, LENGTH=length, BLOCK=step, num_warps=step_warps
    )
    return parts, sums_launcher, block, Launcher(
        norm_backward_columns_kernel, **common, PARTS_2=tables.next_power_of_2(parts), BLOCK=block,
        HAS_DTOTAL=has_dtotal, HAS_DW=has_dw, HAS_DB=has_db, num_warps=num_warps,
        **device.dependent_launch_options(dependent),
    )  # fmt: skip


DESIGNS: dict[str, Design] = {
    "persistent": _persistent,
    "two tiles": two_tiles_backward,
    "split": split_backward,
    "two-stage": _two_stage,
    "columns": _columns,
}
