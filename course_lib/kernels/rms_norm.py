"""RMSNorm forward: blocked, resident, and resident with the residual addition fused in front of it.

Bytes through device memory, itemsize s, M rows of N columns:

- blocked: x is read twice (mean square, output) and y written once, 3 M N s, less where a row stays in L2.
- resident: 2 M N s, the least any RMSNorm can move.
- fused add: reads x and residual, writes their sum and y, 4 M N s; as two kernels it is 5 M N s.

A padded lane holds 0 and adds nothing to a sum of squares, so RMSNorm needs no second mask. Statistics are fp32.

Sources: Zhang and Sennrich 2019, "Root Mean Square Layer Normalization"; the fused addition is that of Liger-Kernel and
flash-attention, which also round the sum to x's dtype before it is normalised, so that fused and unfused agree.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from course_lib.kernels.few_rows import few_rows_forward
from course_lib.kernels.launch import tables
from course_lib.kernels.split_row import split_forward
from course_lib.kernels.two_tiles import two_tiles_forward


@triton.jit
def rms_norm_blocked_kernel(
    x_ptr, y_ptr, w_ptr, rstd_ptr,
    stride_x_row, stride_x_col, stride_y_row, stride_y_col,   # in elements
    N, eps,
    HAS_W: tl.constexpr,
    BLOCK: tl.constexpr,                                      # columns a step; any power of two, N may be longer
):  # fmt: skip
    """One row a program, BLOCK columns a step, two sweeps over the row."""
    ACC: tl.constexpr = tl.float64 if x_ptr.dtype.element_ty == tl.float64 else tl.float32
    row = tl.program_id(0).to(tl.int64)  # row * stride passes 2^31 long before memory runs out
    x_row_ptr = x_ptr + row * stride_x_row
    y_row_ptr = y_ptr + row * stride_y_row

    squares = tl.zeros([BLOCK], dtype=ACC)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_row_ptr + cols.to(tl.int64) * stride_x_col, mask=cols < N, other=0.0).to(ACC)
        squares += x * x
    rstd = tl.rsqrt(tl.sum(squares, axis=0) / N + eps)

    tl.store(rstd_ptr + row, rstd)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < N
        y = tl.load(x_row_ptr + cols.to(tl.int64) * stride_x_col, mask=mask, other=0.0).to(ACC) * rstd
        if HAS_W:
            y = y * tl.load(w_ptr + cols, mask=mask, other=0.0).to(ACC)
        tl.store(y_row_ptr + cols.to(tl.int64) * stride_y_col, y.to(y_ptr.dtype.element_ty), mask=mask)


@triton.jit(do_not_specialize=["M"])
def rms_norm_resident_kernel(
    x_ptr, residual_ptr, sum_ptr, y_ptr, w_ptr, rstd_ptr,
    stride_x_row, stride_x_col, stride_residual_row, stride_residual_col, stride_y_row, stride_y_col,   # in elements
    M, N, eps,
    HAS_W: tl.constexpr,
    ADD: tl.constexpr,                                        # add the residual first, and store the sum like y
    ROWS: tl.constexpr,                                       # rows a program
    BLOCK: tl.constexpr,                                      # power of two >= N: the whole row stays in registers
    ONCE: tl.constexpr = "evict_first",                       # the mark of what passes through the caches once
):  # fmt: skip
    """A tile of ROWS whole rows a program, read once. Registers: ROWS * BLOCK / (32 * num_warps) fp32 a thread."""
    ACC: tl.constexpr = tl.float64 if x_ptr.dtype.element_ty == tl.float64 else tl.float32
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    cols = tl.arange(0, BLOCK)
    col_mask = cols < N
    mask = (rows < M)[:, None] & col_mask[None, :]
    cols_wide = cols.to(tl.int64)
    y_offsets = rows[:, None] * stride_y_row + cols_wide[None, :] * stride_y_col

    x = tl.load(x_ptr + rows[:, None] * stride_x_row + cols_wide[None, :] * stride_x_col, mask=mask, other=0.0, eviction_policy=ONCE).to(
        ACC
    )
    if ADD:
        x += tl.load(
            residual_ptr + rows[:, None] * stride_residual_row + cols_wide[None, :] * stride_residual_col,
            mask=mask, other=0.0, eviction_policy=ONCE,
        ).to(ACC)  # fmt: skip
        rounded = x.to(sum_ptr.dtype.element_ty)
        tl.store(sum_ptr + y_offsets, rounded, mask=mask)
        x = rounded.to(ACC)  # the next layer reads the rounded sum, so this one normalises it too

    rstd = tl.rsqrt(tl.sum(x * x, axis=1) / N + eps)  # padded lanes are 0 and add nothing; for a variance they would
    y = x * rstd[:, None]
    if HAS_W:  # after the reduction: until then its registers are x's
        y *= tl.load(w_ptr + cols, mask=col_mask, other=0.0, eviction_policy="evict_last").to(ACC)[None, :]
    tl.store(rstd_ptr + rows, rstd, mask=rows < M)
    tl.store(y_ptr + y_offsets, y.to(y_ptr.dtype.element_ty), mask=mask, eviction_policy=ONCE)


ALGORITHMS = ("auto", "resident", "two tiles", "blocked", "split", "few rows")
_SHARED = {"two tiles": two_tiles_forward, "split": split_forward, "few rows": few_rows_forward}  # LayerNorm's and RMSNorm's alike


def rms_norm_forward(x: Tensor, w: Tensor | None, eps: float, *, algorithm: str = "auto") -> tuple[Tensor, Tensor]:
    """RMSNorm of the rows of a matrix.

    Args:
        x: shape (M, N), N >= 1, fp32, fp16, bf16 or fp64, any strides.
        w: shape (N,), any of those dtypes, or None.
        eps: added to the mean square inside the root.
        algorithm: one of ALGORITHMS; "auto" is what tables.forward says.

    Returns: y of x's shape and dtype, contiguous; rstd, shape (M,), fp32, or fp64 for an fp64 x.

    Raises: ValueError if the algorithm is unknown, or cannot take this x.
    """
    if algorithm not in ALGORITHMS:
        raise ValueError(f"algorithm is {algorithm!r}; it can be {', '.join(map(repr, ALGORITHMS))}")
    _, y, rstd = _forward(x, None, w, eps, algorithm)
    return y, rstd


def add_rms_norm_forward(x: Tensor, residual: Tensor, w: Tensor | None, eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """``total = x + residual`` (rounded to x's dtype) and its RMSNorm, fused: 4 M N elements moved and not 5.

    Args:
        x, residual: shape (M, N), N >= 1, of one dtype, fp32, fp16, bf16 or fp64, any strides.
        w: shape (N,), any of those dtypes, or None.
        eps: added to the mean square inside the root.

    Returns: total and y, of x's shape and dtype, contiguous; rstd, shape (M,), fp32, or fp64 for an fp64 x.

    Raises: ValueError if the shapes or dtypes of x and residual differ.
    """
    tables.refuse_unlike(x, residual)
    return _forward(x, residual, w, eps, "auto")


def _forward(x: Tensor, residual: Tensor | None, w: Tensor | None, eps: float, algorithm: str) -> tuple[Tensor, Tensor, Tensor]:
    M, N = x.shape
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    total = y if residual is None else torch.empty_like(y)
    rstd = torch.empty(M, dtype=tables.statistics_dtype(x.dtype), device=x.device)
    if M == 0:
        return total, y, rstd
    w = None if w is None else w.contiguous()
    if algorithm == "auto":
        algorithm = tables.forward(x, residual, w, centred=False)
    if algorithm in _SHARED:
        _SHARED[algorithm](x, residual, w, None, y, None if residual is None else total, None, rstd, eps)
        return total, y, rstd
    if algorithm == "resident":
        rows, block, num_warps = tables.resident(N)
        added = x if residual is None else residual  # a stand-in pointer that is never read when ADD is off
        rms_norm_resident_kernel[(triton.cdiv(M, rows),)](
            x, added, total, y, x if w is None else w, rstd,
            tables.row_stride(x), x.stride(1), tables.row_stride(added), added.stride(1), y.stride(0), y.stride(1), M, N, eps,
            HAS_W=w is not None, ADD=residual is not None, ROWS=rows, BLOCK=block, ONCE=tables.once(N, add=residual is not None),
            num_warps=num_warps,
        )  # fmt: skip
        return total, y, rstd
    if residual is not None:
        torch.add(x, residual, out=total)
        x = total
    _, block, num_warps = tables.blocked(N)
    rms_norm_blocked_kernel[(M,)](
        x, y, x if w is None else w, rstd, tables.row_stride(x), x.stride(1), y.stride(0), y.stride(1), N, eps,
        HAS_W=w is not None, BLOCK=block, num_warps=num_warps,
    )  # fmt: skip
    return total, y, rstd
