"""Lesson 06: the passes over the matrix that each way to normalise a row makes, counted from a
trace of real kernels, as plain data.

The kernels here are reduced to the algorithms: packed rows, one row per program, no w and b. They
run in Triton's interpreter, because its accesses can be traced.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from course_lib.base.errors import CourseError
from course_lib.base.translation import gettext as _
from course_lib.base.translation import mark as N_
from course_lib.base.words import list_words
from course_lib.lessons.own_launch import list_shapes, order_arguments
from course_lib.lessons.pictures.access_map.run import record
from course_lib.lessons.pictures.compiled_kernel.model import learners_kernel

ALGORITHMS = {
    "copy": N_("copy"),
    "naive": N_("op by op"),
    "one_pass": N_("one-pass"),
    "two_pass": N_("two-pass, blocked"),
    "welford": N_("Welford, blocked"),
    "resident": N_("two-pass, resident"),
}
ITEMSIZE = {"fp16": 2, "fp32": 4}
ROWS = (1, 16, 256, 4096, 65536)
COLUMNS = (100, 1024, 4096, 8192)
BLOCK = 1024
RESIDENT_LIMIT = 32768  # columns; a longer row does not fit the registers of one program
OWN = ("06a", "05a", "05b", "07a", "08a", "09a")  # exercises whose kernels can be counted
WHOLE_ROWS = ("08a", "09a")  # those whose kernels hold the whole row in one block
LAUNCH_US = 10.0  # microseconds per launch, as lesson 06 assumes
_TRACED_ROWS = 2  # enough, because every row causes the same accesses
_EPS = 1e-5


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
def add_eps_kernel(var_ptr, sum_ptr, eps):
    row = tl.program_id(0).to(tl.int64)
    tl.store(sum_ptr + row, tl.load(var_ptr + row) + eps)


@triton.jit
def rsqrt_kernel(sum_ptr, rstd_ptr):
    row = tl.program_id(0).to(tl.int64)
    tl.store(rstd_ptr + row, tl.rsqrt(tl.load(sum_ptr + row)))


@triton.jit
def scale_kernel(d_ptr, rstd_ptr, y_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    rstd = tl.load(rstd_ptr + row)
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
        y = ((x - mean) * rstd).to(y_ptr.dtype.element_ty)
        tl.store(y_ptr + row * N + cols, y, mask=cols < N)


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
        y = ((x - mean) * rstd).to(y_ptr.dtype.element_ty)
        tl.store(y_ptr + row * N + cols, y, mask=cols < N)


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
        y = ((x - mean) * rstd).to(y_ptr.dtype.element_ty)
        tl.store(y_ptr + row * N + cols, y, mask=cols < N)


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
class MatrixSweep:
    """One sweep over a matrix. ``kind`` is "load" or "store"; ``amount`` is 1.0 if it touches every
    element once."""

    launch: int  # number of its kernel launch, from 0
    tensor: str
    kind: str
    amount: float
    code: str  # the kernel's line with the load or store


@dataclass(frozen=True)
class Count:
    """The memory accesses of an algorithm. ``a_row`` counts bytes per row of single numbers (mean,
    variance), loads and stores.

    ``order`` has for each access of the first row, in order, the index of its sweep.
    """

    algorithm: str
    N: int
    launches: int
    sweeps: tuple[MatrixSweep, ...]
    a_row: int
    order: tuple[int, ...]

    def passes(self, kind: str | None = None) -> float:
        """Count passes over a matrix of M x N elements: the loads, the stores, or both."""
        return sum(sweep.amount for sweep in self.sweeps if kind in (None, sweep.kind))

    def bytes(self, M: int, itemsize: int) -> float:
        """Count the bytes of all accesses for M rows."""
        return self.passes() * M * self.N * itemsize + self.a_row * M


def run(algorithm: str, x: Tensor, BLOCK: int = BLOCK) -> Tensor:
    """Normalise ``x`` row by row (or copy it) with the kernels of this module. x has shape (M, N)
    and is packed.

    Returns: shape and dtype of x.

    Raises: CourseError if the algorithm is unknown, or the row is too long for the resident kernel.
    """
    _require_known(algorithm, x.shape[1])
    tensors = _make_tensors(x)
    for launch in _list_launches(algorithm, x.shape[1], BLOCK):
        arguments = [tensors[name] for name in launch.tensors]
        launch.kernel[x.shape[:1]](*arguments, *launch.numbers, **launch.constants)
    return tensors["y"]


@dataclass(frozen=True)
class _Launch:
    """One launch, a program per row: its arguments are the named ``tensors``, then ``numbers``,
    then ``constants``."""

    kernel: Any
    tensors: tuple[str, ...]
    numbers: tuple[float, ...] = ()
    constants: Mapping[str, Any] = field(default_factory=dict)


def _list_launches(algorithm: str, N: int, block: int) -> list[_Launch]:
    in_blocks = {"BLOCK": block}
    if algorithm == "naive":
        return [
            _Launch(mean_kernel, ("x", "mean"), (N,), in_blocks),
            _Launch(centre_kernel, ("x", "mean", "d"), (N,), in_blocks),
            _Launch(square_kernel, ("d", "s"), (N,), in_blocks),
            _Launch(mean_kernel, ("s", "var"), (N,), in_blocks),
            _Launch(add_eps_kernel, ("var", "sum"), (_EPS,)),
            _Launch(rsqrt_kernel, ("sum", "rstd")),
            _Launch(scale_kernel, ("d", "rstd", "y"), (N,), in_blocks),
        ]
    if algorithm == "copy":
        return [_Launch(copy_kernel, ("x", "y"), (N,), in_blocks)]
    if algorithm == "resident":
        whole_row = {"BLOCK": triton.next_power_of_2(N)}
        return [_Launch(resident_kernel, ("x", "y"), (N, _EPS), whole_row)]
    kernels = {"one_pass": one_pass_kernel, "two_pass": two_pass_kernel, "welford": welford_kernel}
    return [_Launch(kernels[algorithm], ("x", "y"), (N, _EPS), in_blocks)]


def _make_tensors(x: Tensor) -> dict[str, Tensor]:
    """Return x, what stands between two launches, and y, by the names of ``_Launch.tensors``."""
    matrices = {name: torch.full_like(x, float("nan")) for name in ("y", "d", "s")}
    columns = {
        name: torch.empty(len(x), dtype=torch.float32, device=x.device)
        for name in ("mean", "var", "sum", "rstd")
    }
    return {"x": x} | matrices | columns


def _require_known(algorithm: str, N: int) -> None:
    """Raise CourseError if the algorithm is unknown, or the row is too long for it."""
    if algorithm not in ALGORITHMS:
        words = _("the pass counter knows {known}; you asked for {algorithm!r}.")
        raise CourseError(words.format(known=list_words(ALGORITHMS), algorithm=algorithm))
    if algorithm == "resident" and N > RESIDENT_LIMIT:
        words = _(
            "a row of {columns} columns does not stay in the registers of one program; {limit} is"
            " the limit."
        )
        raise CourseError(words.format(columns=N, limit=RESIDENT_LIMIT))


def count(algorithm: str, N: int, BLOCK: int = BLOCK) -> Count:
    """Trace the algorithm on two fp32 rows of N columns, and count its passes: the bytes of all
    accesses over the bytes of the matrix.

    The count does not depend on the number of rows or the dtype.

    Raises: CourseError if the algorithm is unknown, N is below 1, BLOCK is not a power of two, or
    the second process fails.
    """
    if algorithm not in ALGORITHMS or N < 1 or BLOCK < 1 or BLOCK & (BLOCK - 1):
        words = _(
            "the pass counter knows {known}, N >= 1 and a BLOCK that is a power of two; you asked"
            " for {algorithm!r}, N={columns}, BLOCK={block}."
        )
        raise CourseError(
            words.format(known=list_words(ALGORITHMS), algorithm=algorithm, columns=N, block=BLOCK)
        )
    _require_known(algorithm, N)
    return _count(algorithm, N, BLOCK)


def list_fitting(N: int) -> list[str]:
    return [name for name in ALGORITHMS if name != "resident" or N <= RESIDENT_LIMIT]


@functools.lru_cache(maxsize=256)
def _count(algorithm: str, N: int, block: int) -> Count:
    tensors = _make_tensors(torch.randn(_TRACED_ROWS, N))
    launches = _list_launches(algorithm, N, block)

    def list_accesses() -> Iterable[tuple[int, bool, Any, str]]:
        for number, launch in enumerate(launches):
            arguments = [tensors[name] for name in launch.tensors]
            recording = record(
                launch.kernel, (_TRACED_ROWS,), [*arguments, *launch.numbers], launch.constants
            )
            # a kernel has names of its own for its tensors
            names = {
                tensor.name: name
                for tensor, name in zip(recording.tensors, launch.tensors, strict=True)
            }
            for access in recording.accesses:
                named = replace(access, tensor=names[access.tensor or ""])
                code = recording.source[access.line or 0].strip()
                yield number, access.program == 0, named, code

    used = {name for launch in launches for name in launch.tensors}
    sizes = _measure_matrices({name: tensors[name] for name in used})
    return _gather(algorithm, N, sizes, list_accesses())


def _measure_matrices(tensors: Mapping[str, Tensor]) -> dict[str, int]:
    """Return the bytes of each tensor with two dimensions."""
    return {
        name: tensor.numel() * tensor.element_size()
        for name, tensor in tensors.items()
        if tensor.ndim == 2
    }


def _gather(
    algorithm: str, N: int, sizes: Mapping[str, int], accesses: Iterable[tuple[int, bool, Any, str]]
) -> Count:
    """Make one MatrixSweep for each line of a kernel that loads or stores a matrix, in the order in
    which program 0 reaches it.

    Args:
        sizes: bytes of each matrix.
        accesses: (launch, whether it belongs to the first row, the access, its line of code).
    """
    sweeps: dict[tuple[int, str, str, int | None], int] = {}
    codes: list[str] = []
    order, numbers, launches = [], 0, 0
    for launch, is_first, access, code in accesses:
        launches = launch + 1
        if access.tensor not in sizes:
            numbers += access.bytes
            continue
        key = (launch, access.tensor, access.kind, access.line)
        if key not in sweeps:
            codes.append(code)
        sweeps[key] = sweeps.get(key, 0) + access.bytes
        if is_first:
            order.append(list(sweeps).index(key))
    passes = tuple(
        MatrixSweep(launch, tensor, kind, moved / sizes[tensor], code)
        for ((launch, tensor, kind, _), moved), code in zip(sweeps.items(), codes, strict=True)
    )
    return Count(algorithm, N, launches, passes, numbers // _TRACED_ROWS, tuple(order))


def count_own(exercise_id: str, N: int) -> Count:
    """Count the passes of the learner's kernel of an exercise, one of OWN, from the current file; w
    and b are left out.

    Raises: CourseError if the file is missing, is unchanged, or its kernel fails.
    """
    kernel = learners_kernel(exercise_id)
    block = triton.next_power_of_2(N) if exercise_id in WHOLE_ROWS else BLOCK
    tensors = {
        name: torch.randn(shape)
        for name, shape in list_shapes(exercise_id, _TRACED_ROWS, N).items()
    }
    arguments, constants = order_arguments(
        exercise_id, _TRACED_ROWS, N, tensors | {"ROWS": 1, "BLOCK": block}
    )
    recording = record(kernel, (_TRACED_ROWS,), arguments, constants)
    if recording.fault:
        words = _("your kernel of {exercise} could not be counted. {fault}")
        raise CourseError(words.format(exercise=exercise_id, fault=recording.fault))
    accesses = (
        (0, access.program == 0, access, recording.source.get(access.line or 0, "").strip())
        for access in recording.accesses
        if access.tensor not in ("w", "b")
    )
    return _gather(exercise_id, N, _measure_matrices(tensors), accesses)


def make_data(algorithm: str, M: int, N: int, dtype: str, exercise_id: str = "") -> dict[str, Any]:
    """Return every count of the picture. ``exercise_id`` is the exercise of a learner's kernel to
    count as well, or "".

    Raises: CourseError if :func:`count` refuses an argument, M is below 1, or the dtype is unknown.
    """
    if M < 1 or dtype not in ITEMSIZE:
        words = _(
            "the pass counter takes M >= 1 and the dtypes {dtypes}; you asked for M={rows},"
            " dtype={dtype!r}."
        )
        raise CourseError(words.format(dtypes=list_words(ITEMSIZE), rows=M, dtype=dtype))
    count(algorithm, N)
    columns = sorted({*COLUMNS, N})
    names = {
        key: _(label) for key, label in ALGORITHMS.items() if key in list_fitting(max(columns))
    }
    counts = {size: {name: count(name, size) for name in names} for size in columns}
    if exercise_id:
        names[exercise_id] = _("your {exercise}").format(exercise=exercise_id)
        for size in columns:
            counts[size][exercise_id] = count_own(exercise_id, size)
    return {
        "start": {"algorithm": exercise_id or algorithm, "m": M, "n": N, "dtype": dtype,
            "bandwidth": 2800, "at": 0},
        "names": names, "rows": sorted({*ROWS, M}), "columns": columns, "itemsize": ITEMSIZE,
        "launch_us": LAUNCH_US,
        "block": BLOCK, "traced": _TRACED_ROWS,
        "counts": {size: {name: asdict(passes) for name, passes in by_name.items()} for size,
            by_name in counts.items()},
    }  # fmt: skip
