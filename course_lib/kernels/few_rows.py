"""LayerNorm and RMSNorm forward for long rows that are few or not aligned: one launch for the
chunks' statistics, one for y.

With few rows there is no other work during the wait in split_row.py's exchange, and its words need
a launch that sets them to 0. So here one kernel writes the statistics of every chunk and the next
kernel merges them: the end of the first launch is the synchronisation. x is read twice, but a small
x is still in the L2 cache the second time. There are no tickets, no words and no waits.

On a GPU of compute capability 9 or more the second kernel is a programmatic dependent launch: it
starts while the first runs, loads x, w and b, and only then waits for the end of the first.
docs/kernel-trials.md, "Long rows, split over programs", has the measurements: with one row two
launches are ahead of the exchange, with 16 rows of 262144 columns behind it.

In half precision, long rows that begin at any address come here as well, even if there are many;
choice.py has the conditions. They are loaded element by element, and so are w and b. The loads are
then the bottleneck, not the memory, and a second read of x costs less than the waits. A program of
the second launch writes its columns of several rows, and loads w and b once.

The result has the same bits as that of split_row.py: same chunks, same sums, same merge. A row gets
the same bits in every batch.

Source: two launches are the classical form of a reduction over a whole device; NVIDIA's CUDA
programming guide explains the dependent launch.
"""

from __future__ import annotations

import functools

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from course_lib.kernels.arguments import add_offset
from course_lib.kernels.launch import device, operands, tables
from course_lib.kernels.launch.device_classes import DeviceClass
from course_lib.kernels.launch.launcher import Launcher
from course_lib.kernels.split_row import compute_chunk_statistics, merge_statistics


@triton.jit
def few_rows_statistics_kernel(
    # (M, N), fp16, bf16 or fp32, both the same; residual is read only if ADD
    x_ptr, residual_ptr,
    total_ptr,                # (M, N), x's dtype, unit column stride, written only if ADD
    means_ptr, squares_ptr,   # (M, CHUNKS), fp32, contiguous, written; means only if CENTRED
    # in elements
    stride_x_row, stride_x_col, stride_residual_row, stride_residual_col, stride_total_row,
    N,
    CENTRED: tl.constexpr,    # LayerNorm; else RMSNorm
    ADD: tl.constexpr,        # add the residual first, and store the sum in total
    CHUNKS: tl.constexpr,     # chunks of a row
    BLOCK: tl.constexpr,      # columns of a chunk
    DEPENDENT: tl.constexpr,  # the next kernel may start early
    # divides N and the row strides; a load of so many elements has 16 bytes
    VECTOR: tl.constexpr = 1,
):  # fmt: skip
    """Mean and sum of squared deviations of one chunk of one row. Bytes: reads x (M N)."""
    if DEPENDENT:
        gdc_launch_dependents()
    chunk = tl.program_id(0) % CHUNKS
    row = (tl.program_id(0) // CHUNKS).to(tl.int64)
    cols = chunk * BLOCK + tl.arange(0, BLOCK)
    wide = cols.to(tl.int64)
    # VECTOR divides them, here in plain sight of the compiler
    N = N // VECTOR * VECTOR
    stride_x_row = stride_x_row // VECTOR * VECTOR
    stride_residual_row = stride_residual_row // VECTOR * VECTOR
    stride_total_row = stride_total_row // VECTOR * VECTOR
    mask = cols < N
    count = tl.minimum(N - chunk * BLOCK, BLOCK).to(tl.float32)
    x = tl.load(x_ptr + row * stride_x_row + wide * stride_x_col, mask=mask, other=0.0)
    if ADD:
        x += tl.load(
            residual_ptr + row * stride_residual_row + wide * stride_residual_col,
            mask=mask,
            other=0.0,
        )
        tl.store(total_ptr + row * stride_total_row + cols, x, mask=mask)
    # Triton declares that a call of a jitted function never returns
    mean, squares = compute_chunk_statistics(x.to(tl.float32), mask, count, CENTRED)  # pyright: ignore[reportGeneralTypeIssues]
    if CENTRED:
        tl.store(means_ptr + row * CHUNKS + chunk, mean)
    tl.store(squares_ptr + row * CHUNKS + chunk, squares)


@triton.jit(do_not_specialize=["M"])
def few_rows_output_kernel(
    # (M, N), fp16, bf16 or fp32, y also fp64; y has unit column stride and is written
    x_ptr, y_ptr,
    w_ptr, b_ptr,             # (N,), fp16, bf16, fp32 or fp64; read only if HAS_W, HAS_B
    mean_ptr, rstd_ptr,       # (M,), fp32, written; mean only if CENTRED
    means_ptr, squares_ptr,   # (M, CHUNKS), fp32, contiguous; means is read only if CENTRED
    stride_x_row, stride_x_col, stride_y_row,   # in elements; y has unit column stride
    M, N, eps,
    CENTRED: tl.constexpr,
    HAS_W: tl.constexpr, HAS_B: tl.constexpr,
    ROWS: tl.constexpr,       # rows per program
    CHUNKS: tl.constexpr,
    CHUNKS_2: tl.constexpr,   # the power of two >= CHUNKS
    COPIES: tl.constexpr,     # as in split_row.py, so that the merge gives the same bits
    BLOCK: tl.constexpr,      # columns of a chunk
    PART: tl.constexpr,       # columns per program
    # x may be loaded before the first kernel ends, because that does not write it
    EARLY: tl.constexpr,
    # this kernel starts early, and must wait before it reads what the first kernel writes
    DEPENDENT: tl.constexpr,
    # divides N and the row strides; a load of so many elements has 16 bytes
    VECTOR: tl.constexpr = 1,
    W_OFFSET: tl.constexpr = 0.0,   # added to w
):  # fmt: skip
    """PART columns of y in ROWS rows. Bytes: reads x, from the L2 cache if it fits, and writes y (2
    M N)."""
    parts = tl.cdiv(N, PART)
    part = tl.program_id(0) % parts
    first = (tl.program_id(0) // parts).to(tl.int64) * ROWS
    cols = part * PART + tl.arange(0, PART)
    # VECTOR divides them, here in plain sight of the compiler
    N = N // VECTOR * VECTOR
    stride_x_row = stride_x_row // VECTOR * VECTOR
    stride_y_row = stride_y_row // VECTOR * VECTOR
    mask = cols < N
    wide = cols.to(tl.int64)
    source = x_ptr + first * stride_x_row + wide * stride_x_col
    if EARLY:
        x = tl.load(source, mask=mask, other=0.0)
    if HAS_W:
        w = tl.load(w_ptr + cols, mask=mask, other=0.0)
    if HAS_B:
        b = tl.load(b_ptr + cols, mask=mask, other=0.0)
    if DEPENDENT:
        gdc_wait()
    if not EARLY:
        x = tl.load(source, mask=mask, other=0.0)
    chunks = tl.arange(0, CHUNKS_2)[None, :] + tl.zeros([COPIES, 1], dtype=tl.int32)
    for number in range(ROWS):
        row = first + number
        present = row < M
        squares = tl.load(
            squares_ptr + row * CHUNKS + chunks, mask=present & (chunks < CHUNKS), other=0.0
        )
        means = squares
        if CENTRED:
            means = tl.load(
                means_ptr + row * CHUNKS + chunks, mask=present & (chunks < CHUNKS), other=0.0
            )
        means, rstds = merge_statistics(means, squares, chunks, N, eps, CHUNKS, BLOCK, CENTRED)
        rstd = tl.max(rstds, axis=0)  # all copies are equal
        y = x.to(tl.float32)
        if ROWS > 1:  # load the next row before this one is written
            following = (row + 1 < M) & (number + 1 < ROWS)
            next_source = x_ptr + (row + 1) * stride_x_row + wide * stride_x_col
            x = tl.load(next_source, mask=mask & following, other=0.0)
        if CENTRED:
            mean = tl.max(means, axis=0)
            y -= mean
            if part == 0:
                tl.store(mean_ptr + row, mean, mask=present)
        y *= rstd
        if part == 0:
            tl.store(rstd_ptr + row, rstd, mask=present)
        if HAS_W:
            y *= add_offset(w.to(tl.float32), W_OFFSET)
        if HAS_B:
            y += b.to(tl.float32)
        tl.store(
            y_ptr + row * stride_y_row + cols, y.to(y_ptr.dtype.element_ty), mask=mask & present
        )


def few_rows_forward(
    tuned: DeviceClass, x: Tensor, residual: Tensor | None, w: Tensor | None, b: Tensor | None,
    y: Tensor, total: Tensor | None,
    mean: Tensor | None, rstd: Tensor, eps: float, w_offset: float,
) -> None:  # fmt: skip
    """Compute the same bits as :func:`course_lib.kernels.split_row.split_forward`, on any device
    and with any number of rows.

    Raises: ValueError if x is fp64.
    """
    M, N = x.shape
    if x.dtype == torch.float64:
        raise ValueError("the chunks' statistics are fp32, and x is fp64; use 'blocked'")
    shares = tables.split(
        N, x.dtype, centred=mean is not None, add=residual is not None, tuned=tuned
    )
    rows, part, num_warps = tables.few_rows(M, N)
    # Two tensors: the second half of a shared one could begin at an address that is not a multiple
    # of 16, depending on M, and Triton would compile another kernel.
    means = torch.empty((M, shares.chunks), dtype=torch.float32, device=x.device)
    squares = torch.empty_like(means)
    added = operands.first_given(residual, x)
    statistics_launcher, output_launcher = _prepare(
        shares, rows, part, num_warps, mean is not None, w is not None, b is not None,
        residual is not None,
        device.has_dependent_launch(x.device),
        operands.find_vector(x, operands.row_stride(x), operands.row_stride(added)), w_offset,
    )  # fmt: skip
    statistics_launcher(
        (M * shares.chunks,), x, added, operands.first_given(total, y), means, squares,
        *operands.strides(x), *operands.strides(added), y.stride(0), N,
    )  # fmt: skip
    source = x if total is None else total
    output_launcher(
        (-(-N // part) * -(-M // rows),), source, y, operands.first_given(w, x),
        operands.first_given(b, x), operands.first_given(mean, rstd), rstd,
        means, squares,
        *operands.strides(source), y.stride(0), M, N, eps,
    )  # fmt: skip


@functools.cache
def _prepare(
    shares: tables.SplitLaunch,
    rows: int,
    part: int,
    num_warps: int,
    centred: bool,
    has_w: bool,
    has_b: bool,
    add: bool,
    dependent: bool,
    vector: int,
    w_offset: float,
) -> tuple[Launcher, Launcher]:
    common = {
        "CENTRED": centred,
        "CHUNKS": shares.chunks,
        "BLOCK": shares.block,
        "DEPENDENT": dependent,
        "VECTOR": vector,
    }
    chunks_2 = tables.next_power_of_2(shares.chunks)
    return Launcher(few_rows_statistics_kernel, **common, ADD=add,
        num_warps=shares.num_warps), Launcher(
        few_rows_output_kernel, **common, HAS_W=has_w, HAS_B=has_b, ROWS=rows, CHUNKS_2=chunks_2,
        COPIES=tables.copies(chunks_2, num_warps),
        PART=part, EARLY=not add, W_OFFSET=w_offset, num_warps=num_warps,
        **device.dependent_launch_options(dependent),
    )  # fmt: skip
