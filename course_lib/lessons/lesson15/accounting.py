"""Lesson 15: the kernels whose bytes the learner counts by hand, and a trace that counts the same
bytes.

The kernels are the course's designs, cut down to what matters for bytes: rows are packed, w and b
are always given. Each of them can be read in a minute. ``count_bytes`` runs them in Triton's
interpreter and adds up the bytes that every lane loads and stores.
"""

from __future__ import annotations

import html
import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
import triton
import triton.language as tl

from course_lib.base.errors import CourseError
from course_lib.base.translation import gettext as _
from course_lib.base.translation import mark as N_
from course_lib.base.words import list_words
from course_lib.kernels.launch import tables
from course_lib.lessons.pictures.access_map.run import record

DTYPES = {2: torch.float16, 4: torch.float32}
BLOCK = 64  # columns per step of the blocked kernel
_EPS = 1e-5


@triton.jit
def blocked_kernel(x_ptr, y_ptr, w_ptr, b_ptr, mean_ptr, rstd_ptr, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row * N + cols, mask=cols < N, other=0.0).to(tl.float32)
    mean = tl.sum(total, axis=0) / N
    squares = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=0.0).to(tl.float32)
        deviation = tl.where(cols < N, x - mean, 0.0)
        squares += deviation * deviation
    rstd = tl.rsqrt(tl.sum(squares, axis=0) / N + eps)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * N + cols, mask=cols < N).to(tl.float32)
        w = tl.load(w_ptr + cols, mask=cols < N).to(tl.float32)
        b = tl.load(b_ptr + cols, mask=cols < N).to(tl.float32)
        y = (x - mean) * rstd * w + b
        tl.store(y_ptr + row * N + cols, y.to(y_ptr.dtype.element_ty), mask=cols < N)


@triton.jit
def resident_kernel(
    x_ptr, y_ptr, w_ptr, b_ptr, mean_ptr, rstd_ptr, M, N, eps, ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    cols = tl.arange(0, BLOCK)
    offsets = rows[:, None] * N + cols[None, :]
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
    b = tl.load(b_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=1) / N
    deviation = tl.where((cols < N)[None, :], x - mean[:, None], 0.0)
    rstd = tl.rsqrt(tl.sum(deviation * deviation, axis=1) / N + eps)
    tl.store(mean_ptr + rows, mean, mask=rows < M)
    tl.store(rstd_ptr + rows, rstd, mask=rows < M)
    y = deviation * rstd[:, None] * w[None, :] + b[None, :]
    tl.store(y_ptr + offsets, y.to(y_ptr.dtype.element_ty), mask=mask)


@triton.jit
def add_kernel(x_ptr, residual_ptr, total_ptr, N, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * N + tl.arange(0, BLOCK)
    mask = tl.arange(0, BLOCK) < N
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    residual = tl.load(residual_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(total_ptr + offsets, (x + residual).to(total_ptr.dtype.element_ty), mask=mask)


@triton.jit
def rms_norm_kernel(x_ptr, y_ptr, w_ptr, rstd_ptr, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=0.0).to(tl.float32)
    rstd = tl.rsqrt(tl.sum(x * x, axis=0) / N + eps)
    tl.store(rstd_ptr + row, rstd)
    w = tl.load(w_ptr + cols, mask=cols < N).to(tl.float32)
    tl.store(y_ptr + row * N + cols, (x * rstd * w).to(y_ptr.dtype.element_ty), mask=cols < N)


@triton.jit
def add_rms_norm_kernel(
    x_ptr, residual_ptr, total_ptr, y_ptr, w_ptr, rstd_ptr, N, eps, BLOCK: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    offsets = row * N + cols
    x = tl.load(x_ptr + offsets, mask=cols < N, other=0.0).to(tl.float32)
    residual = tl.load(residual_ptr + offsets, mask=cols < N, other=0.0).to(tl.float32)
    total = (x + residual).to(total_ptr.dtype.element_ty)
    tl.store(total_ptr + offsets, total, mask=cols < N)
    wide = total.to(tl.float32)
    rstd = tl.rsqrt(tl.sum(wide * wide, axis=0) / N + eps)
    tl.store(rstd_ptr + row, rstd)
    w = tl.load(w_ptr + cols, mask=cols < N).to(tl.float32)
    tl.store(y_ptr + offsets, (wide * rstd * w).to(y_ptr.dtype.element_ty), mask=cols < N)


@triton.jit
def dx_kernel(dy_ptr, x_ptr, w_ptr, mean_ptr, rstd_ptr, dx_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    offsets = row * N + cols
    mean, rstd = tl.load(mean_ptr + row), tl.load(rstd_ptr + row)
    xhat = (tl.load(x_ptr + offsets, mask=cols < N, other=0.0).to(tl.float32) - mean) * rstd
    dy = tl.load(dy_ptr + offsets, mask=cols < N, other=0.0).to(tl.float32)
    wdy = dy * tl.load(w_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
    c1, c2 = tl.sum(xhat * wdy, axis=0) / N, tl.sum(wdy, axis=0) / N
    dx = (wdy - (xhat * c1 + c2)) * rstd
    tl.store(dx_ptr + offsets, dx.to(dx_ptr.dtype.element_ty), mask=cols < N)


@triton.jit
def partials_kernel(
    dy_ptr, x_ptr, mean_ptr, rstd_ptr, dw_partial_ptr, db_partial_ptr, M, N, rows_a_chunk,
    BLOCK_N: tl.constexpr,
):  # fmt: skip
    chunk = tl.program_id(1)
    cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    dw = tl.zeros([BLOCK_N], dtype=tl.float32)
    db = tl.zeros([BLOCK_N], dtype=tl.float32)
    for row in range(chunk * rows_a_chunk, tl.minimum((chunk + 1) * rows_a_chunk, M)):
        mean, rstd = tl.load(mean_ptr + row), tl.load(rstd_ptr + row)
        x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + row * N + cols, mask=cols < N, other=0.0).to(tl.float32)
        dw += dy * (x - mean) * rstd
        db += dy
    tl.store(dw_partial_ptr + chunk * N + cols, dw, mask=cols < N)
    tl.store(db_partial_ptr + chunk * N + cols, db, mask=cols < N)


@triton.jit
def finish_kernel(dw_partial_ptr, db_partial_ptr, dw_ptr, db_ptr, chunks, N, BLOCK_N: tl.constexpr):
    cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    dw = tl.zeros([BLOCK_N], dtype=tl.float32)
    db = tl.zeros([BLOCK_N], dtype=tl.float32)
    for chunk in range(chunks):
        dw += tl.load(dw_partial_ptr + chunk * N + cols, mask=cols < N, other=0.0)
        db += tl.load(db_partial_ptr + chunk * N + cols, mask=cols < N, other=0.0)
    tl.store(dw_ptr + cols, dw.to(dw_ptr.dtype.element_ty), mask=cols < N)
    tl.store(db_ptr + cols, db.to(db_ptr.dtype.element_ty), mask=cols < N)


@dataclass(frozen=True)
class TracedLaunch:
    """One launch of a kernel. Its arguments are ``tensors``, in the kernel's order, then
    ``numbers``, then ``constants``."""

    kernel: Any
    grid: tuple[int, ...]
    tensors: Mapping[str, torch.Tensor]
    numbers: tuple[float, ...]
    constants: Mapping[str, int]


# the functions of exercise 15a, each with the kernels that it accounts for, in launch order
KERNELS: dict[str, tuple[Any, ...]] = {
    "blocked_forward": (blocked_kernel,),
    "resident_forward": (resident_kernel,),
    "add_then_rms_norm": (add_kernel, rms_norm_kernel),
    "add_rms_norm": (add_rms_norm_kernel,),
    "two_stage_backward": (dx_kernel, partials_kernel, finish_kernel),
}
_GRIDS = {
    "blocked_forward": "(M,)",
    "resident_forward": N_("(triton.cdiv(M, ROWS),), with BLOCK >= N"),
    "add_then_rms_norm": N_("(M,) for both, with BLOCK >= N"),
    "add_rms_norm": N_("(M,), with BLOCK >= N"),
    "two_stage_backward": N_(
        "dx: (M,); partials: (triton.cdiv(N, BLOCK_N), chunks) with chunks = triton.cdiv(M,"
        " rows_a_chunk); finish: (triton.cdiv(N, BLOCK_N),)"
    ),
}


def list_launches(
    name: str,
    M: int,
    N: int,
    itemsize: int,
    *,
    ROWS: int = 1,
    rows_a_chunk: int = 1,
    BLOCK_N: int = 32,
) -> list[TracedLaunch]:
    """Return the launches of one entry of KERNELS on random M x N matrices whose elements have
    ``itemsize`` bytes.

    Raises: CourseError if there is no such entry, a size is below 1, or ``itemsize`` is neither 2
    nor 4.
    """
    if name not in KERNELS or itemsize not in DTYPES or min(M, N, ROWS, rows_a_chunk, BLOCK_N) < 1:
        raise CourseError(
            _(
                "the accounting has {kernels}, sizes from 1 and an itemsize of 2 or 4; you asked"
                " for {name!r}, M={M}, N={N}, itemsize={itemsize}, ROWS={ROWS},"
                " rows_a_chunk={rows_a_chunk}, BLOCK_N={BLOCK_N}."
            ).format(
                kernels=list_words(KERNELS),
                name=name,
                M=M,
                N=N,
                itemsize=itemsize,
                ROWS=ROWS,
                rows_a_chunk=rows_a_chunk,
                BLOCK_N=BLOCK_N,
            )
        )
    dtype, whole = DTYPES[itemsize], {"BLOCK": tables.next_power_of_2(N)}
    matrix = {
        key: torch.randn(M, N).to(dtype) for key in ("x", "residual", "total", "y", "dy", "dx")
    }
    vector = {key: torch.rand(N).to(dtype) for key in ("w", "b", "dw", "db")}
    row = {key: torch.rand(M) for key in ("mean", "rstd")}
    chunks = -(-M // rows_a_chunk)
    partial = {key: torch.zeros(chunks, N) for key in ("dw_partial", "db_partial")}
    tensors = matrix | vector | row | partial

    def launch(
        kernel: Any,
        grid: tuple[int, ...],
        names: str,
        numbers: tuple[float, ...],
        constants: Mapping[str, int],
    ) -> TracedLaunch:
        return TracedLaunch(
            kernel, grid, {key: tensors[key] for key in names.split()}, numbers, constants
        )

    column_blocks = -(-N // BLOCK_N)
    launches = {
        "blocked_forward": [
            launch(blocked_kernel, (M,), "x y w b mean rstd", (N, _EPS), {"BLOCK": BLOCK})
        ],
        "resident_forward": [
            launch(
                resident_kernel,
                (-(-M // ROWS),),
                "x y w b mean rstd",
                (M, N, _EPS),
                {"ROWS": ROWS, **whole},
            )
        ],
        "add_then_rms_norm": [
            launch(add_kernel, (M,), "x residual total", (N,), whole),
            launch(rms_norm_kernel, (M,), "total y w rstd", (N, _EPS), whole),
        ],
        "add_rms_norm": [
            launch(add_rms_norm_kernel, (M,), "x residual total y w rstd", (N, _EPS), whole)
        ],
        "two_stage_backward": [
            launch(dx_kernel, (M,), "dy x w mean rstd dx", (N,), whole),
            launch(
                partials_kernel,
                (column_blocks, chunks),
                "dy x mean rstd dw_partial db_partial",
                (M, N, rows_a_chunk),
                {"BLOCK_N": BLOCK_N},
            ),
            launch(
                finish_kernel,
                (column_blocks,),
                "dw_partial db_partial dw db",
                (chunks, N),
                {"BLOCK_N": BLOCK_N},
            ),
        ],
    }
    return launches[name]


def count_bytes(name: str, M: int, N: int, itemsize: int, **sizes: int) -> tuple[int, int]:
    """Return the bytes that the launches read and the bytes that they write, from a trace in
    Triton's interpreter.

    Args:
        name: a key of KERNELS.
        sizes: ROWS, or rows_a_chunk and BLOCK_N, if the kernels have them.

    Raises: CourseError if :func:`list_launches` raises it, or if a kernel cannot be traced.
    """
    read = written = 0
    for launch in list_launches(name, M, N, itemsize, **sizes):
        recording = record(
            launch.kernel,
            launch.grid,
            [*launch.tensors.values(), *launch.numbers],
            launch.constants,
        )
        if recording.fault:
            raise CourseError(
                _("{name} could not be traced. {fault}").format(name=name, fault=recording.fault)
            )
        read += sum(access.bytes for access in recording.accesses if access.kind == "load")
        written += sum(access.bytes for access in recording.accesses if access.kind == "store")
    return read, written


class KernelTexts:
    """The source text of the kernels, with one folded part per function of the exercise."""

    def _repr_html_(self) -> str:
        parts = []
        for name, kernels in KERNELS.items():
            text = "\n\n".join(
                inspect.getsource(getattr(kernel, "fn", kernel)).strip() for kernel in kernels
            )
            words = (
                _("{name}: {count} kernels, grid {grid}")
                if len(kernels) > 1
                else _("{name}: {count} kernel, grid {grid}")
            )
            summary = words.format(
                name=f"<code>{name}</code>",
                count=len(kernels),
                grid=f"<code>{html.escape(_(_GRIDS[name]))}</code>",
            )
            parts.append(
                f"<details><summary>{summary}</summary><pre>{html.escape(text)}</pre></details>"
            )
        return "".join(parts)

    def __repr__(self) -> str:
        return _(
            "The kernels of exercise 15a. They stand in course_lib/lessons/lesson15/accounting.py."
        )


def show_kernels() -> KernelTexts:
    """Return the sources of all KERNELS in a form that a notebook shows."""
    return KernelTexts()
