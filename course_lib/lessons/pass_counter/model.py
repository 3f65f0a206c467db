"""Lesson 04: how often each way to normalise a row sweeps over the matrix, counted from a trace of real kernels: what is shown, as plain data."""

from __future__ import annotations

import functools
import json
import os
import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from course_lib.base import paths, runtime
from course_lib.base.errors import CourseError
from course_lib.base.worker import Launch, Worker, WorkerDied, WorkerTimeout, take_stdout
from course_lib.interpreter.bounds import Region
from course_lib.interpreter.trace import Trace, tracing
from course_lib.lessons.words import format_bytes, format_duration

ALGORITHMS = {
    "copy": "copy",
    "naive": "op by op",
    "one_pass": "one-pass",
    "two_pass": "two-pass, blocked",
    "welford": "Welford, blocked",
    "resident": "two-pass, resident",
}
ITEMSIZE = {"fp16": 2, "fp32": 4}
ROWS = (1, 16, 256, 4096, 65536)
COLUMNS = (100, 1024, 4096, 8192)
BLOCK = 1024
RESIDENT_LIMIT = 32768  # columns; a longer row does not fit the registers of one program
_TRACED_ROWS = 2  # all rows are alike
_EPS = 1e-5
_SECONDS = 120.0


@triton.jit
def copy_kernel(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * N + cols, mask=cols < N)
        tl.store(y_ptr + row * N + cols, x, mask=cols < N)


@triton.jit
def mean_kernel(x_ptr, mean_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row * N + cols, mask=cols < N, other=0.0).to(tl.float32)
    tl.store(mean_ptr + row, tl.sum(total, axis=0) / N)


@triton.jit
def centre_kernel(x_ptr, mean_ptr, d_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    mean = tl.load(mean_ptr + row)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * N + cols, mask=cols < N).to(tl.float32)
        tl.store(d_ptr + row * N + cols, (x - mean).to(d_ptr.dtype.element_ty), mask=cols < N)


@triton.jit
def square_kernel(d_ptr, s_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        d = tl.load(d_ptr + row * N + cols, mask=cols < N).to(tl.float32)
        tl.store(s_ptr + row * N + cols, (d * d).to(s_ptr.dtype.element_ty), mask=cols < N)


@triton.jit
def scale_kernel(d_ptr, var_ptr, y_ptr, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    rstd = tl.rsqrt(tl.load(var_ptr + row) + eps)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        d = tl.load(d_ptr + row * N + cols, mask=cols < N).to(tl.float32)
        tl.store(y_ptr + row * N + cols, (d * rstd).to(y_ptr.dtype.element_ty), mask=cols < N)


@triton.jit
def one_pass_kernel(x_ptr, y_ptr, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros([BLOCK], dtype=tl.float32)
    squares = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=0.0).to(tl.float32)
        total += x
        squares += x * x
    mean = tl.sum(total, axis=0) / N
    rstd = tl.rsqrt(tl.sum(squares, axis=0) / N - mean * mean + eps)  # cancels: lesson 03
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * N + cols, mask=cols < N).to(tl.float32)
        tl.store(y_ptr + row * N + cols, ((x - mean) * rstd).to(y_ptr.dtype.element_ty), mask=cols < N)


@triton.jit
def two_pass_kernel(x_ptr, y_ptr, N, eps, BLOCK: tl.constexpr):
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
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * N + cols, mask=cols < N).to(tl.float32)
        tl.store(y_ptr + row * N + cols, ((x - mean) * rstd).to(y_ptr.dtype.element_ty), mask=cols < N)


@triton.jit
def welford_kernel(x_ptr, y_ptr, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    count, mean, M2 = 0.0, 0.0, 0.0
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=0.0).to(tl.float32)
        n = tl.minimum(BLOCK, N - start).to(tl.float32)
        block_mean = tl.sum(x, axis=0) / n
        deviation = tl.where(cols < N, x - block_mean, 0.0)
        apart = block_mean - mean
        M2 += tl.sum(deviation * deviation, axis=0) + apart * apart * count * n / (count + n)
        mean += apart * n / (count + n)
        count += n
    rstd = tl.rsqrt(M2 / N + eps)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * N + cols, mask=cols < N).to(tl.float32)
        tl.store(y_ptr + row * N + cols, ((x - mean) * rstd).to(y_ptr.dtype.element_ty), mask=cols < N)


@triton.jit
def resident_kernel(x_ptr, y_ptr, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / N
    deviation = tl.where(cols < N, x - mean, 0.0)
    rstd = tl.rsqrt(tl.sum(deviation * deviation, axis=0) / N + eps)
    tl.store(y_ptr + row * N + cols, (deviation * rstd).to(y_ptr.dtype.element_ty), mask=cols < N)


@dataclass(frozen=True)
class Pass:
    """One sweep over a matrix of M x N elements: ``kind`` is "load" or "store"; ``amount`` is 1.0 for every element once."""

    launch: int  # which kernel launch it belongs to, from 0
    tensor: str
    kind: str
    amount: float


@dataclass(frozen=True)
class Count:
    """What an algorithm asks of memory. ``a_row`` are bytes of single numbers a row (mean, variance), loads and stores."""

    algorithm: str
    N: int
    launches: int
    sweeps: tuple[Pass, ...]
    a_row: int

    def passes(self, kind: str | None = None) -> float:
        """Passes over a matrix of M x N elements: the loads, the stores, or both."""
        return sum(sweep.amount for sweep in self.sweeps if kind in (None, sweep.kind))

    def bytes(self, M: int, itemsize: int) -> float:
        """All bytes asked for by M rows."""
        return self.passes() * M * self.N * itemsize + self.a_row * M


def run(algorithm: str, x: Tensor, BLOCK: int = BLOCK) -> Tensor:
    """``x`` normalised row by row (or copied) by the kernels of this module; shape and dtype of x, shape (M, N), packed.

    Raises: CourseError for an unknown algorithm, or a row that cannot stay resident.
    """
    return _prepare(algorithm, x, BLOCK)[1]()


def _prepare(algorithm: str, x: Tensor, block: Any) -> tuple[dict[str, Tensor], Callable[[], Tensor]]:
    """The matrices of an algorithm by name, and the function that launches its kernels.

    ``block`` is an int, which the types of Triton do not know for a tl.constexpr.
    """
    if algorithm not in ALGORITHMS:
        raise CourseError(f"the pass counter knows {', '.join(ALGORITHMS)}; you asked for {algorithm!r}.")
    M, N = x.shape
    if algorithm == "resident" and N > RESIDENT_LIMIT:
        raise CourseError(
            f"a row of {N} columns does not stay in the registers of one program; {RESIDENT_LIMIT} is the limit."
        )
    y = torch.full_like(x, float("nan"))
    grid, matrices = (M,), {"x": x, "y": y}
    whole = {"copy": copy_kernel, "one_pass": one_pass_kernel, "two_pass": two_pass_kernel, "welford": welford_kernel}
    if algorithm == "naive":
        matrices |= {"d": torch.empty_like(x), "s": torch.empty_like(x)}

    def launch() -> Tensor:
        if algorithm == "naive":
            mean, var = (torch.empty(M, dtype=torch.float32, device=x.device) for _ in range(2))
            mean_kernel[grid](x, mean, N, BLOCK=block)
            centre_kernel[grid](x, mean, matrices["d"], N, BLOCK=block)
            square_kernel[grid](matrices["d"], matrices["s"], N, BLOCK=block)
            mean_kernel[grid](matrices["s"], var, N, BLOCK=block)
            scale_kernel[grid](matrices["d"], var, y, N, _EPS, BLOCK=block)
        elif algorithm == "resident":
            resident_kernel[grid](x, y, N, _EPS, BLOCK=triton.next_power_of_2(N))
        else:
            whole[algorithm][grid](x, y, N, *([] if algorithm == "copy" else [_EPS]), BLOCK=block)
        return y

    return matrices, launch


def count(algorithm: str, N: int, BLOCK: int = BLOCK) -> Count:
    """Trace the algorithm on two fp32 rows of N columns, and count its sweeps.

    Every row is alike, and so is every dtype: passes are bytes asked for over the bytes of the matrix.

    Raises: CourseError for an unknown algorithm, N below 1, a BLOCK that is no power of two, or a second process that fails.
    """
    if algorithm not in ALGORITHMS or N < 1 or BLOCK < 1 or BLOCK & (BLOCK - 1):
        raise CourseError(
            f"the pass counter knows {', '.join(ALGORITHMS)}, N >= 1 and a BLOCK that is a power of two; "
            f"you asked for {algorithm!r}, N={N}, BLOCK={BLOCK}."
        )
    if algorithm == "resident" and N > RESIDENT_LIMIT:
        raise CourseError(
            f"a row of {N} columns does not stay in the registers of one program; {RESIDENT_LIMIT} is the limit."
        )
    return _count_all(N, BLOCK)[algorithm]


def list_fitting(N: int) -> list[str]:
    return [name for name in ALGORITHMS if name != "resident" or N <= RESIDENT_LIMIT]


@functools.lru_cache(maxsize=256)
def _count_all(N: int, block: int) -> dict[str, Count]:
    """Every algorithm that takes rows of N columns."""
    if runtime.current().interpreted:
        return {name: _trace(name, N, block) for name in list_fitting(N)}
    if (N, block) not in _from_elsewhere:
        # a process takes seconds, a size hundredths of one
        _from_elsewhere.update(_count_elsewhere({N, *COLUMNS}, block))
    return _from_elsewhere[N, block]


_from_elsewhere: dict[tuple[int, int], dict[str, Count]] = {}


def _trace(algorithm: str, N: int, block: int) -> Count:
    matrices, launch = _prepare(algorithm, torch.randn(_TRACED_ROWS, N), block)
    with tracing([Region.of(name, tensor) for name, tensor in matrices.items()]) as trace:
        launch()
    return _sum_up(algorithm, N, trace)


def _sum_up(algorithm: str, N: int, trace: Trace) -> Count:
    """One Pass for each line of a kernel that loads or stores a matrix, in the order of program 0."""
    size = {region.name: region.nbytes for region in trace.regions}
    sweeps: dict[tuple[int, str, str, int | None], int] = {}
    numbers, launch, before = 0, 0, (0, 0, 0)
    for event in trace.events:
        if event.program < before:  # the next kernel's program 0
            launch += 1
        before = event.program
        if event.tensor is None:
            numbers += event.bytes
            continue
        key = (launch, event.tensor, event.kind, event.line)
        sweeps[key] = sweeps.get(key, 0) + event.bytes
    passes = tuple(
        Pass(launch, tensor, kind, moved / size[tensor]) for (launch, tensor, kind, _), moved in sweeps.items()
    )
    return Count(algorithm, N, launch + 1, passes, numbers // _TRACED_ROWS)


def _count_elsewhere(sizes: Collection[int], block: int) -> dict[tuple[int, int], dict[str, Count]]:
    """The counts for rows of each size, made by a process whose Triton interprets."""
    try:
        with Worker(_launch) as counter:
            answer = json.loads(counter.ask(json.dumps({"sizes": sorted(sizes), "block": block}), _SECONDS))
    except WorkerTimeout:
        raise CourseError(
            f"the process that traces kernels took longer than {_SECONDS:g} s. Run the cell again."
        ) from None
    except WorkerDied as died:
        said = died.last_line or "it printed nothing"
        raise CourseError(
            f"the process that traces kernels failed ({said}). `course doctor` tries the interpreter."
        ) from None
    return {
        (int(N), block): {fields["algorithm"]: _read_count(fields) for fields in made} for N, made in answer.items()
    }


def _launch() -> Launch:
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    path = os.pathsep.join(filter(None, [str(paths.ROOT), os.environ.get("PYTHONPATH")]))
    code = "from course_lib.lessons.pass_counter.model import main; main()"
    return Launch([sys.executable, "-c", code], environment | {"COURSE_DEVICE": "cpu", "PYTHONPATH": path}, cwd=None)


def _read_count(fields: Mapping[str, Any]) -> Count:
    sweeps = tuple(Pass(**sweep) for sweep in fields["sweeps"])
    return Count(fields["algorithm"], fields["N"], fields["launches"], sweeps, fields["a_row"])


def main() -> None:
    """Answer the one question of the process that cannot trace: every count for each size."""
    answers = take_stdout()
    asked = json.loads(sys.stdin.readline())
    counts = {N: [asdict(made) for made in _count_all(N, asked["block"]).values()] for N in asked["sizes"]}
    print(json.dumps(counts), file=answers)


@dataclass(frozen=True)
class Shown:
    """What the picture compares: every algorithm at one size."""

    chosen: str
    M: int
    N: int
    dtype: str
    counts: tuple[Count, ...]

    @property
    def count(self) -> Count:
        return next(made for made in self.counts if made.algorithm == self.chosen)

    @property
    def copy(self) -> Count:
        return self.counts[0]

    def bytes(self, made: Count) -> float:
        return made.bytes(self.M, ITEMSIZE[self.dtype])


def model(algorithm: str, M: int, N: int, dtype: str) -> Shown:
    """The counts of every algorithm for M x N, one of them chosen.

    Raises: CourseError if an argument is not one that :func:`count` takes, or M or the dtype is not one of the widget's.
    """
    if M < 1 or dtype not in ITEMSIZE:
        raise CourseError(
            f"the pass counter takes M >= 1 and the dtypes {', '.join(ITEMSIZE)}; you asked for M={M}, dtype={dtype!r}."
        )
    count(algorithm, N)
    return Shown(algorithm, M, N, dtype, tuple(_count_all(N, BLOCK)[name] for name in list_fitting(N)))


def title(state: Shown) -> str:
    """Passes of the chosen algorithm, and what they are against a copy."""
    passes, copied = state.count.passes(), state.copy.passes()
    if state.chosen == "copy":
        return f"A copy makes {copied:g} passes: nothing that reads x and writes y can do with less"
    if passes == copied:
        return f"{ALGORITHMS[state.chosen]}: {passes:g} passes, as many as a copy"
    return f"{ALGORITHMS[state.chosen]}: {passes:g} passes, {passes / copied:g} times a copy"


def describe(state: Shown, bandwidth: float) -> str:
    """The caption: the sweeps in words, the bytes, the time at the memory limit, and how it was counted."""
    made = state.count
    loads, stores = made.passes("load"), made.passes("store")
    us = state.bytes(made) / bandwidth * 1e-3
    launches = "1 launch" if made.launches == 1 else f"{made.launches} launches"
    return (
        f"M = {state.M}, N = {state.N}, {state.dtype}, {launches}: {loads:g} {'pass' if loads == 1 else 'passes'} of reading, "
        f"{stores:g} of writing. That asks for {format_bytes(state.bytes(made))}, a copy for {format_bytes(state.bytes(state.copy))}; "
        f"at {bandwidth:g} GB/s {format_duration(us)}. Counted from a trace of {_TRACED_ROWS} rows in the interpreter, w and b left out. "
        "A GPU moves less where a cache answers."
    )
