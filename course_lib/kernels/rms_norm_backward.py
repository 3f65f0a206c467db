"""RMSNorm backward, five ways to the same gradients.

With ``xhat = x * rstd``, ``wdy = w * dy`` and ``c1 = mean(xhat * wdy)`` over the columns of a row,

    dx = (wdy - xhat * c1) * rstd        dw = sum over rows of dy * xhat

LayerNorm's backward pass without the mean: no c2 and no db, everything else as in layer_norm_backward.py, where the designs
are described. Passes over M N elements: two-stage 5; persistent, two tiles and split 3 plus 8 P N
bytes of partial sums; columns 5.

Sources: Zhang and Sennrich 2019, "Root Mean Square Layer Normalization"; derived in lesson 02.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.language.extra.cuda import gdc_launch_dependents

from course_lib.kernels import split_row_backward, two_tiles_backward
from course_lib.kernels.column_sums import column_sums
from course_lib.kernels.launch import tables


@triton.jit(do_not_specialize=["M"])
def rms_norm_dx_kernel(
    dy_ptr, x_ptr, w_ptr, rstd_ptr, dx_ptr,
    stride_dy_row, stride_dy_col, stride_x_row, stride_x_col, stride_dx_row,   # in elements; dx has unit column stride
    M, N,
    HAS_W: tl.constexpr,
    ROWS: tl.constexpr,                                                        # rows a program
    BLOCK: tl.constexpr,                                                       # power of two >= N
):  # fmt: skip
    """dx for a tile of ROWS whole rows. Bytes: reads x and dy, writes dx (3 M N)."""
    ACC: tl.constexpr = tl.float64 if x_ptr.dtype.element_ty == tl.float64 else tl.float32
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    cols = tl.arange(0, BLOCK)
    col_mask = cols < N
    mask = (rows < M)[:, None] & col_mask[None, :]
    wide = cols.to(tl.int64)[None, :]
    x = tl.load(x_ptr + rows[:, None] * stride_x_row + wide * stride_x_col, mask=mask, other=0.0, eviction_policy="evict_first").to(ACC)
    wdy = tl.load(dy_ptr + rows[:, None] * stride_dy_row + wide * stride_dy_col, mask=mask, other=0.0, eviction_policy="evict_first").to(
        ACC
    )
    if HAS_W:
        wdy *= tl.load(w_ptr + cols, mask=col_mask, other=0.0, eviction_policy="evict_last").to(ACC)[None, :]
    rstd = tl.load(rstd_ptr + rows, mask=rows < M, other=0.0)
    xhat = x * rstd[:, None]
    c1 = tl.sum(xhat * wdy, axis=1) / N
    dx = (wdy - xhat * c1[:, None]) * rstd[:, None]
    tl.store(dx_ptr + rows[:, None] * stride_dx_row + cols[None, :], dx.to(dx_ptr.dtype.element_ty), mask=mask)


@triton.jit(do_not_specialize=["M", "rows_a_chunk"])
def rms_norm_column_partials_kernel(
    dy_ptr, x_ptr, rstd_ptr, dw_partial_ptr,
    stride_dy_row, stride_dy_col, stride_x_row, stride_x_col,
    M, N, rows_a_chunk,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """Sums of dy * xhat over one chunk of rows, for BLOCK_N columns. Bytes: reads x and dy (2 M N)."""
    ACC: tl.constexpr = dw_partial_ptr.dtype.element_ty
    chunk = tl.program_id(1)
    cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    wide = cols.to(tl.int64)[None, :]
    dw = tl.zeros([BLOCK_M, BLOCK_N], dtype=ACC)
    first = chunk.to(tl.int64) * rows_a_chunk
    for start in range(0, rows_a_chunk, BLOCK_M):
        within = start + tl.arange(0, BLOCK_M)
        rows = first + within
        row_mask = (within < rows_a_chunk) & (rows < M)  # the next chunk's rows are not this one's
        mask = row_mask[:, None] & (cols < N)[None, :]
        x = tl.load(x_ptr + rows[:, None] * stride_x_row + wide * stride_x_col, mask=mask, other=0.0).to(ACC)
        dy = tl.load(dy_ptr + rows[:, None] * stride_dy_row + wide * stride_dy_col, mask=mask, other=0.0).to(ACC)
        rstd = tl.load(rstd_ptr + rows, mask=row_mask, other=0.0)
        dw += dy * x * rstd[:, None]
    offsets = chunk.to(tl.int64) * N + cols
    tl.store(dw_partial_ptr + offsets, tl.sum(dw, axis=0), mask=cols < N)


@triton.jit(do_not_specialize=["M"])
def rms_norm_backward_persistent_kernel(
    dy_ptr, x_ptr, w_ptr, rstd_ptr, dx_ptr, dw_partial_ptr,
    stride_dy_row, stride_dy_col, stride_x_row, stride_x_col, stride_dx_row,
    M, N,
    HAS_W: tl.constexpr,
    FULL: tl.constexpr,       # N == BLOCK: no column mask
    ROWS: tl.constexpr,       # rows a tile
    BLOCK: tl.constexpr,      # power of two >= N
    STAGES: tl.constexpr,     # tiles in flight
    ONCE: tl.constexpr = "evict_first",   # the mark of what passes through the caches once
    DEPENDENT: tl.constexpr = False,      # the next kernel may start early
):  # fmt: skip
    """dx for tiles of rows, and one partial row of dw a program.

    Program p takes tiles p, p + P, p + 2 P, ... so its partial sums depend on P and the launch table, on no timing.
    Bytes: reads x and dy, writes dx (3 M N), and 4 P N of partial sums.
    """
    if DEPENDENT:
        gdc_launch_dependents()
    ACC: tl.constexpr = dw_partial_ptr.dtype.element_ty
    program = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    col_mask = cols < N
    wide = cols.to(tl.int64)[None, :]
    if HAS_W:
        if FULL:
            w = tl.load(w_ptr + cols, eviction_policy="evict_last").to(ACC)
        else:
            w = tl.load(w_ptr + cols, mask=col_mask, other=0.0, eviction_policy="evict_last").to(ACC)
    dw = tl.zeros([ROWS, BLOCK], dtype=ACC)
    for tile in tl.range(program, tl.cdiv(M, ROWS), tl.num_programs(0), num_stages=STAGES):
        rows = (tile * ROWS + tl.arange(0, ROWS)).to(tl.int64)
        row_mask = rows < M
        if FULL and ROWS == 1:
            x = tl.load(x_ptr + rows[:, None] * stride_x_row + wide * stride_x_col, eviction_policy=ONCE).to(ACC)
            dy = tl.load(dy_ptr + rows[:, None] * stride_dy_row + wide * stride_dy_col, eviction_policy=ONCE).to(ACC)
        else:
            mask = row_mask[:, None] & col_mask[None, :]
            x = tl.load(x_ptr + rows[:, None] * stride_x_row + wide * stride_x_col, mask=mask, other=0.0, eviction_policy=ONCE).to(ACC)
            dy = tl.load(dy_ptr + rows[:, None] * stride_dy_row + wide * stride_dy_col, mask=mask, other=0.0, eviction_policy=ONCE).to(ACC)
        rstd = tl.load(rstd_ptr + rows, mask=row_mask, other=0.0)
        xhat = x * rstd[:, None]
        wdy = dy
        if HAS_W:
            wdy = dy * w[None, :]
        c1 = tl.sum(xhat * wdy, axis=1) / N
        dx = (wdy - xhat * c1[:, None]) * rstd[:, None]
        target = dx_ptr + rows[:, None] * stride_dx_row + cols[None, :]
        if FULL and ROWS == 1:
            tl.store(target, dx.to(dx_ptr.dtype.element_ty), eviction_policy=ONCE)
        else:
            tl.store(target, dx.to(dx_ptr.dtype.element_ty), mask=row_mask[:, None] & col_mask[None, :], eviction_policy=ONCE)
        dw += dy * xhat
    partial = program.to(tl.int64) * N + cols
    tl.store(dw_partial_ptr + partial, tl.sum(dw, axis=0), mask=col_mask)


@triton.jit
def rms_norm_row_sums_kernel(
    dy_ptr, x_ptr, w_ptr, rstd_ptr, c1_ptr,
    stride_dy_row, stride_dy_col, stride_x_row, stride_x_col,
    N,
    HAS_W: tl.constexpr,
    BLOCK: tl.constexpr,      # columns a step
):  # fmt: skip
    """c1 of one row of any length. Bytes: reads x and dy (2 M N)."""
    ACC: tl.constexpr = c1_ptr.dtype.element_ty
    row = tl.program_id(0).to(tl.int64)
    rstd = tl.load(rstd_ptr + row)
    products = tl.zeros([BLOCK], dtype=ACC)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        wide = cols.to(tl.int64)
        mask = cols < N
        x = tl.load(x_ptr + row * stride_x_row + wide * stride_x_col, mask=mask, other=0.0).to(ACC)
        wdy = tl.load(dy_ptr + row * stride_dy_row + wide * stride_dy_col, mask=mask, other=0.0).to(ACC)
        if HAS_W:
            wdy *= tl.load(w_ptr + cols, mask=mask, other=0.0).to(ACC)
        products += x * rstd * wdy
    tl.store(c1_ptr + row, tl.sum(products, axis=0) / N)


@triton.jit(do_not_specialize=["M", "rows_a_chunk"])
def rms_norm_backward_columns_kernel(
    dy_ptr, x_ptr, w_ptr, rstd_ptr, c1_ptr, dx_ptr, dw_partial_ptr,
    stride_dy_row, stride_dy_col, stride_x_row, stride_x_col, stride_dx_row,
    M, N, rows_a_chunk,
    HAS_W: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """dx and partial sums for BLOCK_N columns of one chunk of rows, c1 given. Bytes: reads x and dy, writes dx (3 M N)."""
    ACC: tl.constexpr = dw_partial_ptr.dtype.element_ty
    chunk = tl.program_id(1)
    cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    wide = cols.to(tl.int64)[None, :]
    if HAS_W:
        w = tl.load(w_ptr + cols, mask=cols < N, other=0.0).to(ACC)
    dw = tl.zeros([BLOCK_M, BLOCK_N], dtype=ACC)
    first = chunk.to(tl.int64) * rows_a_chunk
    for start in range(0, rows_a_chunk, BLOCK_M):
        within = start + tl.arange(0, BLOCK_M)
        rows = first + within
        row_mask = (within < rows_a_chunk) & (rows < M)
        mask = row_mask[:, None] & (cols < N)[None, :]
        x = tl.load(x_ptr + rows[:, None] * stride_x_row + wide * stride_x_col, mask=mask, other=0.0).to(ACC)
        dy = tl.load(dy_ptr + rows[:, None] * stride_dy_row + wide * stride_dy_col, mask=mask, other=0.0).to(ACC)
        rstd = tl.load(rstd_ptr + rows, mask=row_mask, other=0.0)
        c1 = tl.load(c1_ptr + rows, mask=row_mask, other=0.0)
        xhat = x * rstd[:, None]
        wdy = dy
        if HAS_W:
            wdy = dy * w[None, :]
        dx = (wdy - xhat * c1[:, None]) * rstd[:, None]
        tl.store(dx_ptr + rows[:, None] * stride_dx_row + wide, dx.to(dx_ptr.dtype.element_ty), mask=mask)
        dw += dy * xhat
    offsets = chunk.to(tl.int64) * N + cols
    tl.store(dw_partial_ptr + offsets, tl.sum(dw, axis=0), mask=cols < N)


ALGORITHMS = ("auto", "persistent", "two tiles", "split", "two-stage", "columns")


def rms_norm_backward(dy: Tensor, x: Tensor, w: Tensor | None, rstd: Tensor, *, algorithm: str = "auto") -> tuple[Tensor, Tensor]:
    """The gradients of :func:`course_lib.kernels.rms_norm.rms_norm_forward`.

    Args:
        dy, x: shape (M, N), fp32, fp16, bf16 or fp64, any strides, an expanded dy's zeros included.
        w: shape (N,), or None for all ones.
        rstd: shape (M,), as the forward pass saved it: fp32, or fp64 for an fp64 x.
        algorithm: one of ALGORITHMS; "auto" is what tables.backward says.

    Returns: dx of x's shape and dtype, contiguous; dw, shape (N,), in w's dtype (x's without w).

    Raises: ValueError if the algorithm is unknown, or N is too long for it.
    """
    if algorithm not in ALGORITHMS:
        raise ValueError(f"algorithm is {algorithm!r}; it can be {', '.join(map(repr, ALGORITHMS))}")
    M, N = x.shape
    dx = torch.empty((M, N), dtype=x.dtype, device=x.device)
    w_dtype = x.dtype if w is None else w.dtype
    if M == 0:
        return dx, torch.zeros(N, dtype=w_dtype, device=x.device)
    if algorithm == "auto":
        algorithm = tables.backward(x)
    run = {"persistent": _persistent, "two tiles": _two_tiles, "split": _split, "two-stage": _two_stage, "columns": _columns}[algorithm]
    dw_partial = run(dy, x, None if w is None else w.contiguous(), rstd, dx)
    return dx, column_sums(dw_partial, None, w_dtype)[0]


def _partial(P: int, N: int, like: Tensor) -> Tensor:
    return torch.empty((P, N), dtype=tables.statistics_dtype(like.dtype), device=like.device)


def _strides(dy: Tensor, x: Tensor) -> tuple[int, int, int, int]:
    return tables.row_stride(dy), dy.stride(1), tables.row_stride(x), x.stride(1)


def _persistent(dy: Tensor, x: Tensor, w: Tensor | None, rstd: Tensor, dx: Tensor) -> Tensor:
    M, N = x.shape
    launch = tables.persistent(N)
    programs = min(triton.cdiv(M, launch.rows), launch.programs_a_processor * tables.processors(x.device))
    dw_partial = _partial(programs, N, x)
    rms_norm_backward_persistent_kernel[(programs,)](
        dy, x, x if w is None else w, rstd, dx, dw_partial, *_strides(dy, x), dx.stride(0), M, N,
        HAS_W=w is not None, FULL=launch.block == N, ROWS=launch.rows, BLOCK=launch.block, STAGES=launch.stages,
        ONCE=tables.once(N), DEPENDENT=tables.has_dependent_launch(x.device), num_warps=launch.num_warps,
    )  # fmt: skip
    return dw_partial


def _two_tiles(dy: Tensor, x: Tensor, w: Tensor | None, rstd: Tensor, dx: Tensor) -> Tensor:
    return two_tiles_backward.two_tiles_backward(dy, x, w, None, rstd, dx)[0]


def _split(dy: Tensor, x: Tensor, w: Tensor | None, rstd: Tensor, dx: Tensor) -> Tensor:
    return split_row_backward.split_backward(dy, x, w, None, rstd, dx)[0]


def _two_stage(dy: Tensor, x: Tensor, w: Tensor | None, rstd: Tensor, dx: Tensor) -> Tensor:
    M, N = x.shape
    rows, block, num_warps = tables.resident(N)
    rms_norm_dx_kernel[(triton.cdiv(M, rows),)](
        dy, x, x if w is None else w, rstd, dx, *_strides(dy, x), dx.stride(0), M, N,
        HAS_W=w is not None, ROWS=rows, BLOCK=block, num_warps=num_warps,
    )  # fmt: skip
    chunks, rows_a_chunk = tables.chunks(M)
    dw_partial = _partial(chunks, N, x)
    rms_norm_column_partials_kernel[(triton.cdiv(N, 128), chunks)](
        dy, x, rstd, dw_partial, *_strides(dy, x), M, N, rows_a_chunk, BLOCK_M=32, BLOCK_N=128, num_warps=4
    )
    return dw_partial


def _columns(dy: Tensor, x: Tensor, w: Tensor | None, rstd: Tensor, dx: Tensor) -> Tensor:
    M, N = x.shape
    _, block, num_warps = tables.blocked(N)
    c1 = torch.empty_like(rstd)
    stand_in = x if w is None else w
    rms_norm_row_sums_kernel[(M,)](dy, x, stand_in, rstd, c1, *_strides(dy, x), N, HAS_W=w is not None, BLOCK=block, num_warps=num_warps)
    chunks, rows_a_chunk = tables.chunks(M)
    dw_partial = _partial(chunks, N, x)
    rms_norm_backward_columns_kernel[(triton.cdiv(N, 512), chunks)](
        dy, x, stand_in, rstd, c1, dx, dw_partial, *_strides(dy, x), dx.stride(0), M, N, rows_a_chunk,
        HAS_W=w is not None, BLOCK_M=8, BLOCK_N=512, num_warps=4,
    )  # fmt: skip
    return dw_partial
