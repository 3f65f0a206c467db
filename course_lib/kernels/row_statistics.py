"""Mean and variance of rows, by five kernels: one pass, shifted one pass, two passes, Welford, and
two passes in registers.

Each stores mean and var (biased) of every row of an (M, N) matrix, in fp32. Bytes read through
device memory, itemsize s (each kernel also writes 8 M):

- one-pass: x read once, M N s. ``E[x^2] - E[x]^2`` cancels if |mean| >> std. It is not clamped, so
  it can be negative.
- shifted one-pass: M N s, and the first element of each row a second time. Its accuracy depends on
  the shift: the error grows with (mean - shift)^2 / var.
- two-pass, streamed: x read twice, 2 M N s, or less if a row is still in a cache for the second
  sweep.
- Welford, streamed: M N s. Every lane keeps count, mean and M2 of its own elements; one
  ``tl.reduce`` merges the lanes.
- two-pass, resident: M N s. The row stays in registers, so the second sweep reads no memory.

Every lane has its own accumulators, and the lanes are merged once, after the loop. So an element
passes through up to N / BLOCK additions in its lane, and log2(BLOCK) between lanes.

Sources: Welford 1962, "Note on a Method for Calculating Corrected Sums of Squares and Products";
Chan, Golub and LeVeque 1979, "Updating Formulae and a Pairwise Algorithm for Computing Sample
Variances".
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from course_lib.kernels.launch import operands, tables

ALGORITHMS = ("one_pass", "shifted", "two_pass", "welford", "resident")
# columns per step: 8 per thread, which is one 16-byte load of fp16 or two of fp32
STREAMED_BLOCK = 2048


@triton.jit
def one_pass_kernel(
    x_ptr,                        # (M, N), fp32, fp16 or bf16
    mean_ptr, var_ptr,            # (M,), fp32, written
    stride_x_row, stride_x_col,   # in elements
    N,
    BLOCK: tl.constexpr,          # columns per step
):  # fmt: skip
    """``var = sum(x^2) / N - mean^2``, both sums from one sweep.

    Registers: x and two accumulators, BLOCK / (32 * num_warps) each.
    """
    row = tl.program_id(0).to(tl.int64)  # row * stride passes 2^31 long before memory runs out
    x_row_ptr = x_ptr + row * stride_x_row
    total = tl.zeros([BLOCK], dtype=tl.float32)
    squares = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_row_ptr + cols.to(tl.int64) * stride_x_col, mask=cols < N, other=0.0).to(
            tl.float32
        )
        total += x
        squares += x * x  # padded lanes are 0, because nothing was subtracted
    mean = tl.sum(total, axis=0) / N
    tl.store(mean_ptr + row, mean)
    tl.store(var_ptr + row, tl.sum(squares, axis=0) / N - mean * mean)


@triton.jit
def shifted_one_pass_kernel(
    x_ptr,                        # (M, N), fp32, fp16 or bf16
    mean_ptr, var_ptr,            # (M,), fp32, written
    stride_x_row, stride_x_col,   # in elements
    N,
    BLOCK: tl.constexpr,          # columns per step
):  # fmt: skip
    """One pass over ``x - shift``; the shift is the row's first element. The variance is the same,
    with less cancellation."""
    row = tl.program_id(0).to(tl.int64)
    x_row_ptr = x_ptr + row * stride_x_row
    shift = tl.load(x_row_ptr).to(tl.float32)
    total = tl.zeros([BLOCK], dtype=tl.float32)
    squares = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_row_ptr + cols.to(tl.int64) * stride_x_col, mask=cols < N, other=0.0).to(
            tl.float32
        )
        shifted = tl.where(cols < N, x - shift, 0.0)  # a padded lane holds 0 - shift
        total += shifted
        squares += shifted * shifted
    offset = tl.sum(total, axis=0) / N
    tl.store(mean_ptr + row, shift + offset)
    tl.store(var_ptr + row, tl.sum(squares, axis=0) / N - offset * offset)


@triton.jit
def two_pass_kernel(
    x_ptr,                        # (M, N), fp32, fp16 or bf16
    mean_ptr, var_ptr,            # (M,), fp32, written
    stride_x_row, stride_x_col,   # in elements
    N,
    BLOCK: tl.constexpr,          # columns per step
):  # fmt: skip
    """The mean in one sweep, the squared deviations from it in a second sweep. Registers: x and one
    accumulator."""
    row = tl.program_id(0).to(tl.int64)
    x_row_ptr = x_ptr + row * stride_x_row
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        total += tl.load(x_row_ptr + cols.to(tl.int64) * stride_x_col, mask=cols < N, other=0.0).to(
            tl.float32
        )
    mean = tl.sum(total, axis=0) / N

    squares = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_row_ptr + cols.to(tl.int64) * stride_x_col, mask=cols < N, other=0.0).to(
            tl.float32
        )
        deviation = tl.where(cols < N, x - mean, 0.0)  # a padded lane holds 0 - mean
        squares += deviation * deviation
    tl.store(mean_ptr + row, mean)
    tl.store(var_ptr + row, tl.sum(squares, axis=0) / N)


@triton.jit
def merge(n_a, mean_a, M2_a, n_b, mean_b, M2_b):
    """Count, mean and M2 of the union of two sets of numbers (Chan, Golub and LeVeque 1979); zeros
    for two empty sets."""
    n = n_a + n_b
    share = n_b / tl.maximum(n, 1.0)  # avoids 0 / 0 when two lanes without elements are merged
    difference = mean_b - mean_a
    return n, mean_a + difference * share, M2_a + M2_b + difference * (n_a * share) * difference


@triton.jit
def welford_kernel(
    x_ptr,                        # (M, N), fp32, fp16 or bf16
    mean_ptr, var_ptr,            # (M,), fp32, written
    stride_x_row, stride_x_col,   # in elements
    N,
    BLOCK: tl.constexpr,          # columns per step
):  # fmt: skip
    """Welford in every lane, in one sweep, then a merge of all lanes. Registers: x and two
    accumulators.

    A lane's count follows from its number, so it needs no register. With BLOCK >= N every lane has
    one element at most, and all the work is in the merge.
    """
    row = tl.program_id(0).to(tl.int64)
    x_row_ptr = x_ptr + row * stride_x_row
    lanes = tl.arange(0, BLOCK)
    mean = tl.zeros([BLOCK], dtype=tl.float32)
    M2 = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, N, BLOCK):
        cols = start + lanes
        x = tl.load(x_row_ptr + cols.to(tl.int64) * stride_x_col, mask=cols < N, other=0.0).to(
            tl.float32
        )
        # 0 does not change mean and M2 of a padded lane
        deviation = tl.where(cols < N, x - mean, 0.0)
        share = BLOCK / (start + BLOCK)  # 1 / count, the same for all lanes
        mean += deviation * share
        M2 += deviation * (x - mean)
    # number of columns lane, lane + BLOCK, ... below N
    count = ((N - lanes + (BLOCK - 1)) // BLOCK).to(tl.float32)
    count, row_mean, row_M2 = tl.reduce((count, mean, M2), 0, merge)
    tl.store(mean_ptr + row, row_mean)
    tl.store(var_ptr + row, row_M2 / N)


@triton.jit(do_not_specialize=["M"])
def resident_kernel(
    x_ptr,                        # (M, N), fp32, fp16 or bf16
    mean_ptr, var_ptr,            # (M,), fp32, written
    stride_x_row, stride_x_col,   # in elements
    M, N,
    ROWS: tl.constexpr,           # rows per program
    BLOCK: tl.constexpr,          # power of two >= N
):  # fmt: skip
    """Two passes over a tile of ROWS whole rows, which is read once. BLOCK is a power of two >= N.

    Registers: ROWS * BLOCK / (32 * num_warps) fp32 per thread for x.
    """
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    cols = tl.arange(0, BLOCK)
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    x = tl.load(
        x_ptr + rows[:, None] * stride_x_row + cols.to(tl.int64)[None, :] * stride_x_col,
        mask=mask,
        other=0.0,
    ).to(tl.float32)
    mean = tl.sum(x, axis=1) / N
    deviation = tl.where(mask, x - mean[:, None], 0.0)
    tl.store(mean_ptr + rows, mean, mask=rows < M)
    tl.store(var_ptr + rows, tl.sum(deviation * deviation, axis=1) / N, mask=rows < M)


KERNELS = {
    "one_pass": one_pass_kernel,
    "shifted": shifted_one_pass_kernel,
    "two_pass": two_pass_kernel,
    "welford": welford_kernel,
}


def streamed_launch(N: int, block: int | None = None) -> tables.TileLaunch:
    """Return the launch of a streamed kernel for rows of N columns. Without ``block`` it has up to
    STREAMED_BLOCK columns per step, 8 elements per thread.

    Raises: ValueError if block is not a power of two.
    """
    if block is None:
        block = min(max(tables.next_power_of_2(N), 16), STREAMED_BLOCK)
    if block < 1 or block & (block - 1):
        raise ValueError(f"BLOCK is {block}; it must be a power of two")
    return tables.TileLaunch(1, block, min(max(block // 256, 1), 16))


def row_statistics(
    x: Tensor, algorithm: str = "resident", *, block: int | None = None
) -> tuple[Tensor, Tensor]:
    """Compute mean and biased variance of the rows of a matrix.

    Args:
        x: shape (M, N), N >= 1, fp32, fp16 or bf16, any strides.
        algorithm: one of ALGORITHMS.
        block: columns per step, a power of two; None takes 2048, or less for a shorter row.
            "resident" ignores it and takes the block of its launch table.

    Returns: mean and var, shape (M,), fp32. With cancellation, the var of "one_pass" may be
    negative.

    Raises: ValueError if the algorithm is unknown, the block is not a power of two, or N is too
    large for "resident".
    """
    M, N = x.shape
    if algorithm not in ALGORITHMS:
        raise ValueError(f"algorithm is {algorithm!r}; it can be {', '.join(ALGORITHMS)}")
    launch = tables.resident(N) if algorithm == "resident" else streamed_launch(N, block)
    mean = torch.empty(M, dtype=torch.float32, device=x.device)
    var = torch.empty(M, dtype=torch.float32, device=x.device)
    if M == 0:
        return mean, var
    if algorithm == "resident":
        resident_kernel[(triton.cdiv(M, launch.rows),)](
            x,
            mean,
            var,
            *operands.strides(x),
            M,
            N,
            ROWS=launch.rows,
            BLOCK=launch.block,
            num_warps=launch.num_warps,
        )
    else:
        KERNELS[algorithm][(M,)](
            x, mean, var, *operands.strides(x), N, BLOCK=launch.block, num_warps=launch.num_warps
        )
    return mean, var
