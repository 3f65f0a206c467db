"""LayerNorm forward: a blocked kernel for any row length, and a resident kernel that reads each row
once.

Bytes through device memory, itemsize s, M rows of N columns:

- blocked: x is read three times (mean, variance, output) and y written once, 4 M N s. If the rows
  at work fit the L2 cache, the second and third read come from there, and less goes through device
  memory.
- resident: x read once, y written once, 2 M N s, the least that any LayerNorm can move. ``w`` and
  ``b`` stay in L2.

Both keep statistics in fp32, subtract the mean before squaring (two-pass: no cancellation), zero
the padded lanes of the deviation, and compute row offsets in 64 bits.

Sources: the three sweeps are those of the Triton tutorial "Layer Normalization"; the tile of rows
and the single load follow PyTorch's and Liger-Kernel's resident kernels.
"""

from __future__ import annotations

import functools

import torch
import triton
import triton.language as tl
from torch import Tensor

from course_lib.kernels.add_layer_norm import add_layer_norm_kernel
from course_lib.kernels.arguments import add_offset, find_rows, read_eps, show_vectors
from course_lib.kernels.launch import operands, tables
from course_lib.kernels.launch.device_classes import DeviceClass, find_line
from course_lib.kernels.launch.launcher import Launcher, launch
from course_lib.kernels.norm_forward import SHARED_DESIGNS, norm_forward


@triton.jit
def layer_norm_blocked_kernel(
    x_ptr, y_ptr,             # (M, N), fp16, bf16, fp32 or fp64; y is written
    w_ptr, b_ptr,             # (N,), any of those dtypes; read only if HAS_W, HAS_B
    mean_ptr, rstd_ptr,       # (M,), fp32, or fp64 for an fp64 x, written
    stride_x_row, stride_x_col, stride_y_row, stride_y_col,   # in elements
    N, eps,
    HAS_W: tl.constexpr, HAS_B: tl.constexpr,
    BLOCK: tl.constexpr,      # columns per step; any power of two, N may be longer
    W_OFFSET: tl.constexpr = 0.0,   # added to w
):  # fmt: skip
    """One row per program, BLOCK columns per step, three sweeps over the row.

    Registers: BLOCK / (32 * num_warps) fp32 per thread for each of x and the running sums, for any
    N.
    """
    ACC: tl.constexpr = tl.float64 if x_ptr.dtype.element_ty == tl.float64 else tl.float32
    row = tl.program_id(0).to(tl.int64)  # row * stride passes 2^31 long before memory runs out
    x_row_ptr = x_ptr + row * stride_x_row
    y_row_ptr = y_ptr + row * stride_y_row

    total = tl.zeros([BLOCK], dtype=ACC)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        total += tl.load(x_row_ptr + cols.to(tl.int64) * stride_x_col, mask=cols < N, other=0.0).to(
            ACC
        )
    mean = tl.sum(total, axis=0) / N

    squares = tl.zeros([BLOCK], dtype=ACC)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_row_ptr + cols.to(tl.int64) * stride_x_col, mask=cols < N, other=0.0).to(ACC)
        # a padded lane holds 0 - mean, and would be squared
        deviation = tl.where(cols < N, x - mean, 0.0)
        squares += deviation * deviation
    rstd = tl.rsqrt(tl.sum(squares, axis=0) / N + read_eps(eps))

    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < N
        x = tl.load(x_row_ptr + cols.to(tl.int64) * stride_x_col, mask=mask, other=0.0).to(ACC)
        y = (x - mean) * rstd
        if HAS_W:
            w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(ACC)
            y = y * add_offset(w, W_OFFSET)
        if HAS_B:
            y = y + tl.load(b_ptr + cols, mask=mask, other=0.0).to(ACC)
        tl.store(
            y_row_ptr + cols.to(tl.int64) * stride_y_col, y.to(y_ptr.dtype.element_ty), mask=mask
        )


@triton.jit(do_not_specialize=["M"])
def layer_norm_resident_kernel(
    x_ptr, y_ptr,             # (M, N), fp16, bf16, fp32 or fp64; y is written
    w_ptr, b_ptr,             # (N,), any of those dtypes; read only if HAS_W, HAS_B
    mean_ptr, rstd_ptr,       # (M,), fp32, or fp64 for an fp64 x, written
    stride_x_row, stride_x_col, stride_y_row, stride_y_col,   # in elements
    M, N, eps,
    HAS_W: tl.constexpr, HAS_B: tl.constexpr,
    ROWS: tl.constexpr,       # rows per program
    BLOCK: tl.constexpr,      # power of two >= N: the whole row stays in registers
    # for x and y, read or written once, so that w and b stay in L2
    EVICTION_POLICY: tl.constexpr = "evict_first",
    # divides N and the row strides; a load of so many elements has 16 bytes
    VECTOR: tl.constexpr = 1,
    W_OFFSET: tl.constexpr = 0.0,   # added to w
):  # fmt: skip
    """A tile of ROWS whole rows per program, read once.

    Registers: ROWS * BLOCK / (32 * num_warps) fp32 per thread. w and b are loaded after the
    reductions. Loading them before would hide their latency, but would take two more registers for
    each one of x until the end. docs/kernel-trials.md, "Forward", has the measurement: long rows
    are slower that way.
    """
    ACC: tl.constexpr = tl.float64 if x_ptr.dtype.element_ty == tl.float64 else tl.float32
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    cols = tl.arange(0, BLOCK)
    # VECTOR divides them, here in plain sight of the compiler
    N = N // VECTOR * VECTOR
    stride_x_row = show_vectors(stride_x_row, VECTOR)
    stride_y_row = stride_y_row // VECTOR * VECTOR
    col_mask = cols < N
    mask = (rows < M)[:, None] & col_mask[None, :]
    cols_wide = cols.to(tl.int64)

    x_rows = find_rows(rows[:, None], stride_x_row, VECTOR)
    x_tile_ptr = x_ptr + x_rows + cols_wide[None, :] * stride_x_col
    x = tl.load(x_tile_ptr, mask=mask, other=0.0, eviction_policy=EVICTION_POLICY).to(ACC)

    mean = tl.sum(x, axis=1) / N
    # a padded lane holds 0 - mean, and would be squared
    deviation = tl.where(col_mask[None, :], x - mean[:, None], 0.0)
    rstd = tl.rsqrt(tl.sum(deviation * deviation, axis=1) / N + read_eps(eps))

    y = deviation * rstd[:, None]
    if HAS_W:
        w = tl.load(w_ptr + cols, mask=col_mask, other=0.0, eviction_policy="evict_last").to(ACC)
        y *= add_offset(w, W_OFFSET)[None, :]
    if HAS_B:
        y += tl.load(b_ptr + cols, mask=col_mask, other=0.0, eviction_policy="evict_last").to(ACC)[
            None, :
        ]
    tl.store(mean_ptr + rows, mean, mask=rows < M)
    tl.store(rstd_ptr + rows, rstd, mask=rows < M)
    y_tile_ptr = y_ptr + rows[:, None] * stride_y_row + cols_wide[None, :] * stride_y_col
    tl.store(y_tile_ptr, y.to(y_ptr.dtype.element_ty), mask=mask, eviction_policy=EVICTION_POLICY)


def _resident(
    tuned: DeviceClass, x: Tensor, residual: Tensor | None, w: Tensor | None, b: Tensor | None,
    y: Tensor, total: Tensor | None,
    mean: Tensor | None, rstd: Tensor, eps: float, w_offset: float,
) -> None:  # fmt: skip
    M, N = y.shape
    x_strides = operands.strides(x)
    added = x_strides if residual is None else operands.strides(residual)
    rows, launcher = _prepare_resident(
        N, x.dtype, tuned, w is not None, b is not None, residual is not None,
        operands.find_vector(x, x_strides[0], added[0]), w_offset,
    )  # fmt: skip
    grid = (-(-M // rows),)
    weights = x if w is None else w, x if b is None else b
    if residual is None:
        launcher(grid, x, y, *weights, mean, rstd, *x_strides, *y.stride(), M, N, eps)
    else:
        launcher(
            grid, x, residual, total, y, *weights, mean, rstd,
            *x_strides, *added, y.stride(0), M, N, eps,
        )  # fmt: skip


@functools.cache
def _prepare_resident(
    N: int, dtype: torch.dtype, tuned: DeviceClass, has_w: bool, has_b: bool, add: bool,
    vector: int, w_offset: float,
) -> tuple[int, Launcher]:  # fmt: skip
    tile = tables.resident(N, dtype, tuned=tuned, centred=True, add=add)
    options = {
        "HAS_W": has_w,
        "HAS_B": has_b,
        "ROWS": tile.rows,
        "BLOCK": tile.block,
        "VECTOR": vector,
        "W_OFFSET": w_offset,
        "num_warps": tile.num_warps,
    }
    if add:
        return tile.rows, Launcher(add_layer_norm_kernel, **options)
    most = find_line(tuned.resident, N, dtype, True, add).registers
    return tile.rows, Launcher(
        layer_norm_resident_kernel,
        **options,
        EVICTION_POLICY=tables.eviction_policy(N, dtype),
        maxnreg=most,
    )


def _blocked(
    tuned: DeviceClass, x: Tensor, residual: Tensor | None, w: Tensor | None, b: Tensor | None,
    y: Tensor, total: Tensor | None,
    mean: Tensor | None, rstd: Tensor, eps: float, w_offset: float,
) -> None:  # fmt: skip
    if residual is not None and total is not None:
        x = torch.add(x, residual, out=total)
    M, N = x.shape
    tile = tables.blocked(N)
    launch(
        layer_norm_blocked_kernel, (M,), x, y, operands.first_given(w, x),
        operands.first_given(b, x), mean, rstd,
        *operands.strides(x), *y.stride(), N, eps,
        HAS_W=w is not None, HAS_B=b is not None, BLOCK=tile.block, W_OFFSET=w_offset,
        num_warps=tile.num_warps,
    )  # fmt: skip


_DESIGNS = {"resident": _resident, "blocked": _blocked, **SHARED_DESIGNS}
ALGORITHMS = ("auto", *_DESIGNS)


def layer_norm_forward(
    x: Tensor,
    w: Tensor | None,
    b: Tensor | None,
    eps: float,
    dtype: torch.dtype | None = None,
    w_offset: float = 0.0,
    *,
    algorithm: str = "auto",
    save: bool = True,
) -> tuple[Tensor, Tensor, Tensor]:
    """LayerNorm of the rows of x, its last dimension.

    Args:
        x: shape (..., N), N >= 1, fp32, fp16, bf16 or fp64, any strides.
        w, b: shape (N,), any of those dtypes, or None.
        eps: added to the variance inside the root.
        dtype: of y; None takes x's.
        w_offset: added to w, if there is a w.
        algorithm: one of ALGORITHMS; "auto" takes that of
            :func:`course_lib.kernels.launch.choice.choose_forward`.
        save: False if there is no backward pass. mean and rstd then share memory, and their values
            are meaningless.

    Returns: y of x's shape, contiguous; mean and rstd, shape (M,) for M rows, fp32, or fp64
    for an fp64 x.

    Raises: ValueError if the algorithm is unknown, or cannot take this x.
    """
    _, y, mean, rstd = norm_forward(
        x, None, w, b, eps, centred=True, algorithm=algorithm, designs=_DESIGNS,
        dtype=dtype, w_offset=w_offset, save=save,
    )  # fmt: skip
    assert mean is not None  # every centred norm has a mean
    return y, mean, rstd


def add_layer_norm_forward(
    x: Tensor, residual: Tensor, w: Tensor | None, b: Tensor | None, eps: float,
    dtype: torch.dtype | None = None, w_offset: float = 0.0,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """``total = x + residual`` (rounded to x's dtype) and its LayerNorm, fused: moves 4 M N
    elements instead of 5 M N.

    Args:
        x, residual: shape (..., N), N >= 1, of one dtype, fp32, fp16, bf16 or fp64, any strides.
        w, b: shape (N,), any of those dtypes, or None.
        eps: added to the variance inside the root.
        dtype: of y; None takes x's.
        w_offset: added to w, if there is a w.

    Returns: total, of x's dtype, and y, both of x's shape, contiguous; mean and rstd, shape (M,),
    fp32, or fp64 for an fp64 x.

    Raises: ValueError if the shapes or dtypes of x and residual differ.
    """
    total, y, mean, rstd = norm_forward(
        x, residual, w, b, eps, centred=True, algorithm="auto", designs=_DESIGNS, dtype=dtype,
        w_offset=w_offset,
    )  # fmt: skip
    assert mean is not None  # every centred norm has a mean
    return total, y, mean, rstd
