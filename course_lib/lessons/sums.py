"""What lesson 13 launches: dw under a lock, in two stages and persistent, each in many orders of its programs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

import course_lib
from course_lib.base.errors import CourseError
from course_lib.bench import backward, measurement
from course_lib.compiler import Pointer, compile_report
from course_lib.kernels.launch import tables
from course_lib.kernels.layer_norm_backward import layer_norm_backward
from course_lib.kernels.norm_backward import norm_backward_persistent_kernel, norm_column_partials_kernel
from course_lib.lessons.compiled_kernel.model import learners_kernel
from course_lib.lessons.schedule.run import Interleaving, interleaved
from course_lib.norms import reference

ROWS, COLUMNS = 6, 16  # of the lesson's first dw
M, N = 10, 40  # of what is cut into chunks and tiles
LENGTHS = (256, 1024, 4096, 8192)  # of the rows in the stored measurements


def draw(rows: int, columns: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Two matrices of normal numbers, fp32: dy, and xhat or x."""
    generator = torch.Generator().manual_seed(seed)
    dy, other = (torch.randn(rows, columns, generator=generator) for _ in range(2))
    return dy, other


def run_dw(kernel: Any, seeds: Iterable[int] = range(20)) -> list[Interleaving]:
    """A kernel (dy, xhat, dw, lock, BLOCK) with a program for each of six rows, once in each order."""
    dy, xhat = draw(ROWS, COLUMNS)
    locks = torch.zeros(1, dtype=torch.int32)
    return interleaved(kernel, (ROWS,), dy, xhat, torch.zeros(COLUMNS), locks, BLOCK=COLUMNS, seeds=seeds)


def count_results(runs: Sequence[Interleaving], *names: str) -> int:
    """How many different results the runs have left in these tensors, bit by bit.

    Raises: AssertionError if a run did not come to its end, or something was found in it.
    """
    assert all(run.complete and not run.findings for run in runs)
    return len({b"".join(run.result(name).tobytes() for name in names) for run in runs})


def run_two_stage(rows_a_chunk: int, seeds: Iterable[int] = range(20)) -> list[Interleaving]:
    """The course's first stage on 10 rows of 40 columns, 2 rows a step, 32 columns a program."""
    dy, x, mean, rstd = _save_forward()
    chunks = -(-M // rows_a_chunk)
    dw, db = (torch.full((chunks, N), float("nan")) for _ in range(2))
    arguments = (dy, x, mean, rstd, dw, db, N, 1, N, 1, M, N, rows_a_chunk)
    constants = {"CENTRED": True, "BLOCK_M": 2, "BLOCK_N": 32}
    return interleaved(norm_column_partials_kernel, (2, chunks), *arguments, **constants, seeds=seeds)


def run_persistent(P: int, seeds: Iterable[int] = range(20)) -> list[Interleaving]:
    """The course's persistent kernel on the same rows, 2 rows a tile, P programs."""
    dy, x, mean, rstd = _save_forward()
    dw, db = (torch.full((P, N), float("nan")) for _ in range(2))
    arguments = (dy, x, x, mean, rstd, torch.full_like(x, float("nan")), dw, db, N, 1, N, 1, N, M, N)
    constants = {"CENTRED": True, "HAS_W": False, "FULL": False, "ROWS": 2, "BLOCK": 64, "STAGES": 1}
    return interleaved(norm_backward_persistent_kernel, (P,), *arguments, **constants, seeds=seeds)


def sum_partials(run: Interleaving) -> np.ndarray:
    """dw: what a run has left as partial sums, added up row by row in fp32."""
    return np.add.accumulate(run.result("dw_partial"), axis=0)[-1]


def compute_gradients() -> reference.LayerNormVJP:
    """What is right for the matrices of :func:`run_two_stage` and :func:`run_persistent`, in float64."""
    dy, x = draw(M, N, seed=1)
    return reference.layer_norm_vjp(dy, x)


def _save_forward() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    dy, x = draw(M, N, seed=1)
    saved = reference.layer_norm(x)
    mean, rstd = (torch.tensor(values, dtype=torch.float32) for values in (saved.mean, saved.rstd))
    return dy, x, mean, rstd


def measure_designs() -> measurement.Measurement:
    """LayerNorm's backward designs and PyTorch at four row lengths: on this machine's GPU, or as stored."""
    measured = backward.latest(LENGTHS)
    rows = [row for row in measured.rows if row["op"] == "layer_norm_backward" and row["N"] in LENGTHS]
    return replace(measured, rows=rows)


def list_registers(columns: int) -> dict[str, tuple[int, int]]:
    """Registers a thread and bytes spilled, fp16, for an H100: the course's persistent kernel, and the learner's 13b once it compiles."""
    found = {"the course's": _count_registers(norm_backward_persistent_kernel, columns, own=False)}
    with contextlib.suppress(CourseError):  # not begun, or not whole yet: the panel of 13b says so
        found["yours"] = _count_registers(learners_kernel("13b"), columns, own=True)
    return found


def _count_registers(kernel: Any, columns: int, *, own: bool) -> tuple[int, int]:
    settings = tables.persistent(columns)
    half, single = Pointer("fp16"), Pointer("fp32")
    strides = [columns, 1, columns, columns] if own else [columns, 1, columns, 1, columns]
    constants = {"ROWS": settings.rows, "BLOCK": settings.block}
    if not own:
        constants |= {"CENTRED": True, "HAS_W": True, "FULL": True, "STAGES": settings.stages}
    arguments = [*[half] * 3, *[single] * 2, half, *[single] * 2, *strides, 32768, columns]
    report = compile_report(kernel, arguments, constants, num_warps=settings.num_warps, arch="sm_90", disassemble=False)
    return report.registers, report.spill_bytes


def compare_designs() -> dict[str, float]:
    """The largest error of dx, dw and db by each of the lesson's designs, run on this machine as the course's functions launch it."""
    dy, x, mean, rstd = (tensor.to(course_lib.DEVICE) for tensor in _save_forward())
    want = compute_gradients()
    errors = {}
    for algorithm in ("locked", "two-stage", "persistent"):
        found = layer_norm_backward(dy, x, None, mean, rstd, algorithm=algorithm)
        pairs = zip(found, (want.dx, want.dw, want.db), strict=True)
        errors[algorithm] = max(float(np.abs(reference.float64(got) - right).max()) for got, right in pairs)
    return errors
