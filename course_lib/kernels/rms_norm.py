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

from course_lib.kernels import launch_table, split_row


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


@triton.jit
def rms_norm_resident_kernel(
    x_ptr, residual_ptr, sum_ptr, y_ptr, w_ptr, rstd_ptr,
    stride_x_row, stride_x_col, stride_residual_row, stride_residual_col, stride_y_row, stride_y_col,   # in elements
    M, N, eps,
    HAS_W: tl.constexpr,
    ADD: tl.constexpr,                                        # add the residual first, and store the sum like y
    ROWS: tl.constexpr,                                       # rows a program
    BLOCK: tl.constexpr,                                      # power of two >= N: the whole row stays in registers
):  # fmt: skip
    """A tile of ROWS whole rows a program, read once. Registers: ROWS * BLOCK / (32 * num_warps) fp32 a thread."""
    ACC: tl.constexpr = tl.float64 if x_ptr.dtype.element_ty == tl.float64 else tl.float32
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    cols = tl.arange(0, BLOCK)
    col_mask = cols < N
    mask = (rows < M)[:, None] & col_mask[None, :]
    cols_wide = cols.to(tl.int64)
    y_offsets = rows[:, None] * stride_y_row + cols_wide[None, :] * stride_y_col

    x = tl.load(
        x_ptr + rows[:, None] * stride_x_row + cols_wide[None, :] * stride_x_col, mask=mask, other=0.0, eviction_policy="evict_first"
    ).to(ACC)
    if ADD:
        x += tl.load(
            residual_ptr + rows[:, None] * stride_residual_row + cols_wide[None, :] * stride_residual_col,
            mask=mask, other=0.0, eviction_policy="evict_first",
        ).to(ACC)  # fmt: skip
        rounded = x.to(sum_ptr.dtype.element_ty)
        tl.store(sum_ptr + y_offsets, rounded, mask=mask)
        x = rounded.to(ACC)  # the next layer reads the rounded sum, so this one normalises it too

    rstd = tl.rsqrt(tl.sum(x * x, axis=1) / N + eps)  # padded lanes are 0 and add nothing; for a variance they would
    y = x * rstd[:, None]
    if HAS_W:  # after the reduction: until then its registers are x's
        y *= tl.load(w_ptr + cols, mask=col_mask, other=0.0, eviction_policy="evict_last").to(ACC)[None, :]
    tl.store(rstd_ptr + rows, rstd, mask=rows < M)
    tl.store(y_ptr + y_offsets, y.to(y_ptr.dtype.element_ty), mask=mask, eviction_policy="evict_first")


def rms_norm_forward(x: Tensor, w: Tensor | None, eps: float, *, algorithm: str = "auto") -> tuple[Tensor, Tensor]:
    """RMSNorm of the rows of a matrix.

    Args:
        x: shape (M, N), N >= 1, fp32, fp16, bf16 or fp64, any strides.
        w: shape (N,), any of those dtypes, or None.
        eps: added to the mean square inside the root.
        algorithm: "resident", "blocked", "split" (split_row.py), or "auto" for resident up to 32768 columns and split above.

    Returns: y of x's shape and dtype, contiguous; rstd, shape (M,), fp32, or fp64 for an fp64 x.

    Raises: ValueError if the algorithm is unknown, or N is too long for the resident kernel.
    """
    M, N = x.shape
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    rstd = torch.empty(M, dtype=launch_table.statistics_dtype(x.dtype), device=x.device)
    if M == 0:
        return y, rstd
    if algorithm == "auto":
        algorithm = "resident" if N <= launch_table.RESIDENT_LIMIT else "split" if split_row.fits(x) else "blocked"
    if algorithm == "split":
        y, _, rstd = split_row.split_forward(x, w, None, eps, centred=False)
        return y, rstd
    if algorithm == "resident":
        _launch_resident(x, None, None, y, w, rstd, eps)
    elif algorithm == "blocked":
        _, block, num_warps = launch_table.blocked(N)
        rms_norm_blocked_kernel[(M,)](
            x, y, x if w is None else w.contiguous(), rstd, x.stride(0), x.stride(1), y.stride(0), y.stride(1), N, eps,
            HAS_W=w is not None, BLOCK=block, num_warps=num_warps,
        )  # fmt: skip
    else:
        raise ValueError(f"algorithm is {algorithm!r}; it can be 'resident', 'blocked', 'split' or 'auto'")
    return y, rstd


def add_rms_norm_forward(x: Tensor, residual: Tensor, w: Tensor | None, eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """``total = x + residual`` (rounded to x's dtype) and its RMSNorm, in one kernel up to 32768 columns, in two above.

    Args:
        x, residual: shape (M, N), N >= 1, fp32, fp16, bf16 or fp64, any strides.
        w: shape (N,), any of those dtypes, or None.

    Returns: total and y, of x's shape and dtype, contiguous; rstd, shape (M,), fp32, or fp64 for an fp64 x.

    Raises: ValueError if the shapes of x and residual differ.
    """
    if x.shape != residual.shape:
        raise ValueError(f"x has shape {tuple(x.shape)} and residual {tuple(residual.shape)}; they must be the same")
    M, N = x.shape
    if N > launch_table.RESIDENT_LIMIT:  # two kernels: a split row's chunks would each have to wait with the sum in registers
        total = x + residual
        return total, *rms_norm_forward(total, w, eps)
    total = torch.empty((M, N), dtype=x.dtype, device=x.device)
    y = torch.empty_like(total)
    rstd = torch.empty(M, dtype=launch_table.statistics_dtype(x.dtype), device=x.device)
    if M > 0:
        _launch_resident(x, residual, total, y, w, rstd, eps)
    return total, y, rstd


def _launch_resident(
    x: Tensor, residual: Tensor | None, total: Tensor | None, y: Tensor, w: Tensor | None, rstd: Tensor, eps: float
) -> None:
    M, N = x.shape
    rows, block, num_warps = launch_table.resident(N)
    added = x if residual is None else residual  # a stand-in pointer that is never read when ADD is off
    rms_norm_resident_kernel[(triton.cdiv(M, rows),)](
        x, added, y if total is None else total, y, x if w is None else w.contiguous(), rstd,
        x.stride(0), x.stride(1), added.stride(0), added.stride(1), y.stride(0), y.stride(1), M, N, eps,
        HAS_W=w is not None, ADD=residual is not None, ROWS=rows, BLOCK=block, num_warps=num_warps,
    )  # fmt: skip
