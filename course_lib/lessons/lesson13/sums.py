"""What lesson 13 runs: a row's rstd in batches of several sizes, and dw under a lock, in two stages
and persistent, each in many orders of its programs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

import course_lib
from course_lib.base.errors import CourseError
from course_lib.base.translation import mark as N_
from course_lib.bench import backward, measurement
from course_lib.compiler import Pointer, compile_report
from course_lib.kernels.launch import tables
from course_lib.kernels.layer_norm_backward import layer_norm_backward
from course_lib.kernels.norm_backward import (
    norm_backward_persistent_kernel,
    norm_column_partials_kernel,
)
from course_lib.lessons.own_launch import order_arguments
from course_lib.lessons.pictures.compiled_kernel.model import learners_kernel, make_pointers
from course_lib.lessons.pictures.schedule.run import Interleaving, interleaved
from course_lib.lessons.statistics_rows import add_with_running_sums
from course_lib.norms import reference

ROWS, COLUMNS = 6, 16  # size of the matrices for the lesson's first dw
M, N = 10, 40  # size of the matrices that are cut into chunks and tiles
LENGTHS = (256, 1024, 4096, 8192)  # row lengths of the stored measurements that the lesson shows
_ROWS = 32768  # rows of the matrix for which registers are counted
_BATCH_COLUMNS = 4096  # columns of the rows that stand in batches of several sizes
_FIRST_ROW = 27  # the seed of a row for which the three splits differ
_MULTIPROCESSORS = 132  # of an H100


@dataclass(frozen=True)
class Split:
    """How a kernel adds up a row in a batch of M rows: ``count_parts(M)`` programs have a part of
    it each, and each of them has ``count_sums(M)`` running sums. ``name`` is marked for
    translation."""

    name: str
    count_parts: Callable[[int], int]
    count_sums: Callable[[int], int]


def _fill_multiprocessors(M: int) -> int:
    """Return the largest power of two of parts for which M rows need no more programs than there
    are multiprocessors."""
    return 1 << max(1, _MULTIPROCESSORS // M).bit_length() - 1


SPLITS = (
    Split(N_("more sums if M < 256"), lambda M: 1, lambda M: 1024 if M < 256 else 256),
    Split(N_("as many parts as fill the GPU"), _fill_multiprocessors, lambda M: 32),
    Split(N_("256 sums, whatever M is"), lambda M: 1, lambda M: 256),
)


def draw_rows(count: int, seed: int = _FIRST_ROW) -> np.ndarray:
    """Return ``count`` rows of 4096 normal numbers in fp32."""
    generator = np.random.default_rng(seed)
    return generator.normal(size=(count, _BATCH_COLUMNS)).astype(np.float32)


def compute_rstd(x: np.ndarray, split: Split, M: int) -> np.ndarray:
    """Return the rstd of RMSNorm of each row of ``x``, in fp32, as the split adds it up in a batch
    of M rows."""
    parts = (x * x).reshape(len(x), split.count_parts(M), -1)
    total = np.add.accumulate(add_with_running_sums(parts, split.count_sums(M)), axis=1)[:, -1]
    return 1 / np.sqrt(total / np.float32(x.shape[1]) + np.float32(1e-6))


def draw(rows: int, columns: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Return two fp32 matrices of normal numbers: dy, and xhat or x."""
    generator = torch.Generator().manual_seed(seed)
    dy, matrix = (torch.randn(rows, columns, generator=generator) for _ in range(2))
    return dy, matrix


def run_dw(kernel: Any, seeds: Iterable[int] = range(20)) -> list[Interleaving]:
    """Run a kernel (dy, xhat, dw, lock, BLOCK) with one program per row, once per seed."""
    dy, xhat = draw(ROWS, COLUMNS)
    locks = torch.zeros(1, dtype=torch.int32)
    return interleaved(
        kernel, (ROWS,), dy, xhat, torch.zeros(COLUMNS), locks, BLOCK=COLUMNS, seeds=seeds
    )


def count_results(runs: Sequence[Interleaving], *names: str) -> int:
    """Count the different results, compared bit by bit, that the runs have left in these tensors.

    Raises: AssertionError if a run did not finish, or has findings such as a race.
    """
    assert all(run.complete and not run.findings for run in runs)
    return len({b"".join(run.result(name).tobytes() for name in names) for run in runs})


def run_two_stage(rows_a_chunk: int, seeds: Iterable[int] = range(20)) -> list[Interleaving]:
    """Run the first stage of the course's two-stage design on 10 rows of 40 columns: 2 rows per
    step, 32 columns per program."""
    dy, x, mean, rstd = _save_forward()
    chunks = -(-M // rows_a_chunk)
    dw, db = (torch.full((chunks, N), float("nan")) for _ in range(2))
    arguments = (dy, x, mean, rstd, dw, db, N, 1, N, 1, M, N, rows_a_chunk)
    constants = {"CENTRED": True, "BLOCK_M": 2, "BLOCK_N": 32}
    return interleaved(
        norm_column_partials_kernel, (2, chunks), *arguments, **constants, seeds=seeds
    )


def run_persistent(P: int, seeds: Iterable[int] = range(20)) -> list[Interleaving]:
    """Run the course's persistent kernel with P programs on the rows of :func:`run_two_stage`, 2
    rows per tile."""
    dy, x, mean, rstd = _save_forward()
    dw, db = (torch.full((P, N), float("nan")) for _ in range(2))
    arguments = (
        dy,
        x,
        x,
        mean,
        rstd,
        dy,  # no dtotal
        torch.full_like(x, float("nan")),
        dw,
        db,
        N,
        1,
        N,
        1,
        N,
        M,
        N,
    )
    constants = {
        "CENTRED": True,
        "HAS_W": False,
        "FULL": False,
        "ROWS": 2,
        "BLOCK": 64,
        "STAGES": 1,
    }
    return interleaved(norm_backward_persistent_kernel, (P,), *arguments, **constants, seeds=seeds)


def sum_partials(run: Interleaving) -> np.ndarray:
    """Return dw: the sum of the partial sums that a run has left, added row by row in fp32."""
    return np.add.accumulate(run.result("dw_partial"), axis=0)[-1]


def compute_gradients() -> reference.LayerNormVJP:
    """Return the right gradients for the matrices of :func:`run_two_stage` and
    :func:`run_persistent`, in float64."""
    dy, x = draw(M, N, seed=1)
    return reference.layer_norm_vjp(dy, x)


def _save_forward() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    dy, x = draw(M, N, seed=1)
    saved = reference.layer_norm(x)
    mean, rstd = (torch.tensor(values, dtype=torch.float32) for values in (saved.mean, saved.rstd))
    return dy, x, mean, rstd


def measure_designs() -> measurement.Measurement:
    """Return times of LayerNorm's backward designs and of PyTorch for LENGTHS, measured on this
    machine's GPU, or else stored."""
    return _select_designs(backward.latest(LENGTHS))


def read_stored_designs() -> measurement.Measurement:
    """Return the stored ones of these times, on every machine."""
    return _select_designs(measurement.stored(backward.KIND))


def _select_designs(measured: measurement.Measurement) -> measurement.Measurement:
    rows = [
        row for row in measured.rows if row["op"] == "layer_norm_backward" and row["N"] in LENGTHS
    ]
    return replace(measured, rows=rows)


def list_registers(columns: int) -> dict[str, tuple[int, int]]:
    """Return registers per thread and spilled bytes for an H100, in fp16: of the course's
    persistent kernel, and of 13b if it compiles."""
    settings = tables.persistent(columns)
    tile = {"ROWS": settings.rows, "BLOCK": settings.block}
    half, single = Pointer("fp16"), Pointer("fp32")
    arguments = [
        *[half] * 3,
        *[single] * 2,
        *[half] * 2,
        *[single] * 2,
        columns,
        1,
        columns,
        1,
        columns,
        _ROWS,
        columns,
    ]
    constants = {"CENTRED": True, "HAS_W": True, "FULL": True, "STAGES": settings.stages} | tile
    registers = {
        "the course's": _count_registers(
            norm_backward_persistent_kernel, arguments, constants, settings.num_warps
        )
    }
    # 13b is not written yet or does not compile; its panel says so
    with contextlib.suppress(CourseError):
        arguments, constants = order_arguments(
            "13b", _ROWS, columns, make_pointers("13b", "fp16") | tile
        )
        registers["yours"] = _count_registers(
            learners_kernel("13b"), arguments, constants, settings.num_warps
        )
    return registers


def _count_registers(
    kernel: Any, arguments: list[Any], constants: dict[str, Any], num_warps: int
) -> tuple[int, int]:
    report = compile_report(
        kernel, arguments, constants, num_warps=num_warps, arch="sm_90", disassemble=False
    )
    return report.registers, report.spill_bytes


def compare_designs() -> dict[str, float]:
    """Run each of the lesson's designs on this machine, through the course's function, and return
    its largest error of dx, dw and db."""
    dy, x, mean, rstd = (tensor.to(course_lib.DEVICE) for tensor in _save_forward())
    want = compute_gradients()
    errors = {}
    for algorithm in ("locked", "two-stage", "persistent"):
        gradients = layer_norm_backward(dy, x, None, mean, rstd, algorithm=algorithm)
        pairs = zip(gradients, (want.dx, want.dw, want.db), strict=True)
        errors[algorithm] = max(
            float(np.abs(reference.float64(actual) - right).max()) for actual, right in pairs
        )
    return errors
