"""RMSNorm forward: blocked, resident, and resident with a fused residual addition in front.

Bytes through device memory, itemsize s, M rows of N columns:

- blocked: x is read twice (mean square, output) and y written once, 3 M N s, or less if a row stays
  in L2.
- resident: 2 M N s, the least that any RMSNorm can move.
- fused add: reads x and residual, writes their sum and y, 4 M N s; two kernels move 5 M N s.

A padded lane holds 0 and adds nothing to a sum of squares, so RMSNorm needs no second mask.
Statistics are fp32.

Sources: Zhang and Sennrich 2019, "Root Mean Square Layer Normalization"; the fused addition is that
of Liger-Kernel (commit fef5504), which also rounds the sum to x's dtype before it is normalised, so
that fused and unfused agree.
"""

from __future__ import annotations

import functools

import torch
import triton
import triton.language as tl
from torch import Tensor

from course_lib.kernels.arguments import add_offset, find_rows, read_eps, show_vectors
from course_lib.kernels.launch import operands, tables
from course_lib.kernels.launch.device_classes import DeviceClass
from course_lib.kernels.launch.launcher import Launcher, launch
from course_lib.kernels.norm_forward import SHARED_DESIGNS, norm_forward


@triton.jit
def rms_norm_blocked_kernel(
    x_ptr, y_ptr,             # (M, N), fp16, bf16, fp32 or fp64; y is written
    w_ptr,                    # (N,), any of those dtypes; read only if HAS_W
    rstd_ptr,                 # (M,), fp32, or fp64 for an fp64 x, written
    stride_x_row, stride_x_col, stride_y_row, stride_y_col,   # in elements
    N, eps,
    HAS_W: tl.constexpr,
    BLOCK: tl.constexpr,      # columns per step; any power of two, N may be longer
    W_OFFSET: tl.constexpr = 0.0,   # added to w
):  # fmt: skip
    """One row per program, BLOCK columns per step, two sweeps over the row."""
    ACC: tl.constexpr = tl.float64 if x_ptr.dtype.element_ty == tl.float64 else tl.float32
    row = tl.program_id(0).to(tl.int64)  # row * stride passes 2^31 long before memory runs out
    x_row_ptr = x_ptr + row * stride_x_row
    y_row_ptr = y_ptr + row * stride_y_row

    squares = tl.zeros([BLOCK], dtype=ACC)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_row_ptr + cols.to(tl.int64) * stride_x_col, mask=cols < N, other=0.0).to(ACC)
        squares += x * x
    rstd = tl.rsqrt(tl.sum(squares, axis=0) / N + read_eps(eps))

    tl.store(rstd_ptr + row, rstd)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < N
        y = (
            tl.load(x_row_ptr + cols.to(tl.int64) * stride_x_col, mask=mask, other=0.0).to(ACC)
            * rstd
        )
        if HAS_W:
            w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(ACC)
            y = y * add_offset(w, W_OFFSET)
        tl.store(
            y_row_ptr + cols.to(tl.int64) * stride_y_col, y.to(y_ptr.dtype.element_ty), mask=mask
        )


@triton.jit(do_not_specialize=["M"])
def rms_norm_resident_kernel(
    # (M, N), fp16, bf16, fp32 or fp64, both the same; residual is read only if ADD
    x_ptr, residual_ptr,
    # (M, N), written; sum, of x's dtype, only if ADD, with y's strides; y any of those dtypes
    sum_ptr, y_ptr,
    w_ptr,                    # (N,), any of those dtypes; read only if HAS_W
    rstd_ptr,                 # (M,), fp32, or fp64 for an fp64 x, written
    # in elements
    stride_x_row, stride_x_col, stride_residual_row, stride_residual_col, stride_y_row,
    stride_y_col,
    M, N, eps,
    HAS_W: tl.constexpr,
    ADD: tl.constexpr,        # add the residual first, and store the sum
    ROWS: tl.constexpr,       # rows per program
    BLOCK: tl.constexpr,      # power of two >= N: the whole row stays in registers
    # for x and y, read or written once, so that w stays in L2
    EVICTION_POLICY: tl.constexpr = "evict_first",
    W_FIRST: tl.constexpr = False,   # load w before the reduction
    # divides N and the row strides; a load of so many elements has 16 bytes
    VECTOR: tl.constexpr = 1,
    W_OFFSET: tl.constexpr = 0.0,   # added to w
):  # fmt: skip
    """A tile of ROWS whole rows per program, read once. Registers: ROWS * BLOCK / (32 * num_warps)
    fp32 per thread."""
    ACC: tl.constexpr = tl.float64 if x_ptr.dtype.element_ty == tl.float64 else tl.float32
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    cols = tl.arange(0, BLOCK)
    # VECTOR divides them, here in plain sight of the compiler
    N = N // VECTOR * VECTOR
    stride_x_row = show_vectors(stride_x_row, VECTOR)
    stride_residual_row = show_vectors(stride_residual_row, VECTOR)
    stride_y_row = stride_y_row // VECTOR * VECTOR
    col_mask = cols < N
    mask = (rows < M)[:, None] & col_mask[None, :]
    cols_wide = cols.to(tl.int64)
    y_offsets = rows[:, None] * stride_y_row + cols_wide[None, :] * stride_y_col

    if HAS_W and W_FIRST:
        w = tl.load(w_ptr + cols, mask=col_mask, other=0.0, eviction_policy="evict_last")
    x_rows = find_rows(rows[:, None], stride_x_row, VECTOR)
    x_tile_ptr = x_ptr + x_rows + cols_wide[None, :] * stride_x_col
    x = tl.load(x_tile_ptr, mask=mask, other=0.0, eviction_policy=EVICTION_POLICY).to(ACC)
    if ADD:
        residual_tile_ptr = (
            residual_ptr
            + rows[:, None] * stride_residual_row
            + cols_wide[None, :] * stride_residual_col
        )
        x += tl.load(residual_tile_ptr, mask=mask, other=0.0, eviction_policy=EVICTION_POLICY).to(
            ACC
        )
        rounded = x.to(sum_ptr.dtype.element_ty)
        tl.store(sum_ptr + y_offsets, rounded, mask=mask)
        x = rounded.to(ACC)  # the next layer reads the rounded sum, so this one normalises it too

    # padded lanes are 0 and add nothing; for a variance they would
    rstd = tl.rsqrt(tl.sum(x * x, axis=1) / N + read_eps(eps))
    y = x * rstd[:, None]
    if HAS_W and W_FIRST:
        y *= add_offset(w.to(ACC), W_OFFSET)[None, :]
    elif HAS_W:
        w = tl.load(w_ptr + cols, mask=col_mask, other=0.0, eviction_policy="evict_last")
        y *= add_offset(w.to(ACC), W_OFFSET)[None, :]
    tl.store(rstd_ptr + rows, rstd, mask=rows < M)
    tl.store(
        y_ptr + y_offsets, y.to(y_ptr.dtype.element_ty), mask=mask, eviction_policy=EVICTION_POLICY
    )


def _resident(
    tuned: DeviceClass, x: Tensor, residual: Tensor | None, w: Tensor | None, b: None, y: Tensor,
    total: Tensor | None,
    mean: None, rstd: Tensor, eps: float, w_offset: float,
) -> None:  # fmt: skip
    M, N = y.shape
    x_strides = operands.strides(x)
    added = x_strides if residual is None else operands.strides(residual)
    rows, launcher = _prepare_resident(
        N, x.dtype, tuned, w is not None, residual is not None,
        operands.find_vector(x, x_strides[0], added[0]), w_offset,
    )  # fmt: skip
    launcher(
        (-(-M // rows),), x, x if residual is None else residual, y if total is None else total, y,
        x if w is None else w, rstd,
        *x_strides, *added, *y.stride(), M, N, eps,
    )  # fmt: skip


@functools.cache
def _prepare_resident(
    N: int, dtype: torch.dtype, tuned: DeviceClass, has_w: bool, add: bool, vector: int,
    w_offset: float,
) -> tuple[int, Launcher]:  # fmt: skip
    tile = tables.resident(N, dtype, tuned=tuned)
    return tile.rows, Launcher(
        rms_norm_resident_kernel, HAS_W=has_w, ADD=add, ROWS=tile.rows, BLOCK=tile.block,
        EVICTION_POLICY=tables.eviction_policy(N, dtype, add=add),
        W_FIRST=tables.loads_w_first(N, dtype), VECTOR=vector, W_OFFSET=w_offset,
        num_warps=tile.num_warps,
    )  # fmt: skip


def _blocked(
    tuned: DeviceClass, x: Tensor, residual: Tensor | None, w: Tensor | None, b: None, y: Tensor,
    total: Tensor | None,
    mean: None, rstd: Tensor, eps: float, w_offset: float,
) -> None:  # fmt: skip
    if residual is not None and total is not None:
        x = torch.add(x, residual, out=total)
    M, N = x.shape
    tile = tables.blocked(N)
    launch(
        rms_norm_blocked_kernel, (M,), x, y, operands.first_given(w, x), rstd, *operands.strides(x),
        *y.stride(), N, eps,
        HAS_W=w is not None, BLOCK=tile.block, W_OFFSET=w_offset, num_warps=tile.num_warps,
    )  # fmt: skip


_DESIGNS = {"resident": _resident, "blocked": _blocked, **SHARED_DESIGNS}
ALGORITHMS = ("auto", *_DESIGNS)


def rms_norm_forward(
    x: Tensor, w: Tensor | None, eps: float, dtype: torch.dtype | None = None,
    w_offset: float = 0.0, *,
    algorithm: str = "auto",
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """RMSNorm of the rows of x, its last dimension.

    Args:
        x: shape (..., N), N >= 1, fp32, fp16, bf16 or fp64, any strides.
        w: shape (N,), any of those dtypes, or None.
        eps: added to the mean square inside the root.
        dtype: of y; None takes x's.
        w_offset: added to w, if there is a w.
        algorithm: one of ALGORITHMS; "auto" takes that of
            :func:`course_lib.kernels.launch.choice.choose_forward`.

    Returns: y of x's shape, contiguous; rstd, shape (M,) for M rows, fp32, or fp64 for an
    fp64 x.

    Raises: ValueError if the algorithm is unknown, or cannot take this x.
    """
    _, y, _, rstd = norm_forward(
        x, None, w, None, eps, centred=False, algorithm=algorithm, designs=_DESIGNS,
        dtype=dtype, w_offset=w_offset,
    )  # fmt: skip
    return y, rstd


def add_rms_norm_forward(
    x: Tensor, residual: Tensor, w: Tensor | None, eps: float, dtype: torch.dtype | None = None,
    w_offset: float = 0.0,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """``total = x + residual`` (rounded to x's dtype) and its RMSNorm, fused: moves 4 M N elements
    instead of 5 M N.

    Args:
        x, residual: shape (..., N), N >= 1, of one dtype, fp32, fp16, bf16 or fp64, any strides.
        w: shape (N,), any of those dtypes, or None.
        eps: added to the mean square inside the root.
        dtype: of y; None takes x's.
        w_offset: added to w, if there is a w.

    Returns: total, of x's dtype, and y, both of x's shape, contiguous; rstd, shape (M,), fp32, or
    fp64 for an fp64 x.

    Raises: ValueError if the shapes or dtypes of x and residual differ.
    """
    total, y, _, rstd = norm_forward(
        x, residual, w, None, eps, centred=False, algorithm="auto", designs=_DESIGNS, dtype=dtype,
        w_offset=w_offset,
    )  # fmt: skip
    return total, y, rstd
