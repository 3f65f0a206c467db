"""Lesson 15: the roofline's data: operations and passes of each kernel, and its time if one was
measured.

A pass is one load or store of a whole matrix, as a trace counts it; w, b, the statistics and
partial sums are left out. Times are from this machine's GPU, or stored ones from an H100. A
learner's kernel is traced on any machine, but timed only on a GPU, with new numbers in every
replay, and with its results compared after the last one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

import course_lib
from course_lib.base.errors import CourseError
from course_lib.base.translation import gettext as _
from course_lib.base.translation import mark as N_
from course_lib.base.words import list_words
from course_lib.bench import backward, forward, grid, operations, timing
from course_lib.bench.measurement import Measurement
from course_lib.bench.operations import OPERATIONS, Values
from course_lib.kernels.launch import device, tables
from course_lib.lessons import own_kernels, own_launch
from course_lib.lessons.lesson06.figures import H100
from course_lib.lessons.pictures.access_map.run import record

LENGTHS = (256, 1024, 2048, 4096, 8192, 16384, 32768)
ELEMENTS = forward.ELEMENTS  # elements of each timed matrix
ITEMSIZE = 2  # fp16


@dataclass(frozen=True)
class Kernel:
    """One of the course's kernels.

    ``op`` and ``provider`` are its names in a measurement. ``flop`` counts operations per element,
    ``passes`` those it makes, and ``least`` the passes that any kernel for this operation needs.
    """

    label: str
    op: str
    provider: str
    flop: int
    passes: int
    least: int


# Operations per element; a multiply-add counts as two. LayerNorm and RMSNorm as in lesson 06.
# Backward: 2 for xhat, 1 for wdy, 2 for c1, 1 for c2, 4 for dx, 2 for dw, 1 for db.
KERNELS = {
    "blocked": Kernel(N_("LayerNorm, blocked"), "layer_norm", "blocked", 7, 4, 2),
    "resident": Kernel(N_("LayerNorm, resident"), "layer_norm", "resident", 7, 2, 2),
    "rms": Kernel(N_("RMSNorm, resident"), "rms_norm", "resident", 4, 2, 2),
    "unfused": Kernel(N_("add, then RMSNorm"), "add_rms_norm", "unfused", 5, 5, 4),
    "fused": Kernel(N_("add + RMSNorm, fused"), "add_rms_norm", "resident", 5, 4, 4),
    "locked": Kernel(N_("backward, lock"), "layer_norm_backward", "locked", 13, 3, 3),
    "two_stage": Kernel(N_("backward, two stages"), "layer_norm_backward", "two-stage", 13, 5, 3),
    "persistent": Kernel(N_("backward, persistent"), "layer_norm_backward", "persistent", 13, 3, 3),
}


@dataclass(frozen=True)
class OwnKernel:
    """A learner's kernel: the operation ``op`` of a measurement that it computes, ``flop`` per
    element, the ``least`` passes that it can make; ``whole``: one block holds the whole row."""

    op: str
    flop: int
    least: int
    whole: bool = True
    persistent: bool = False


OWN = {
    "06a": OwnKernel("", 1, 1, whole=False),  # the sum of each row
    "07a": OwnKernel("layer_norm", 7, 2, whole=False),
    "08a": OwnKernel("layer_norm", 7, 2),
    "09a": OwnKernel("add_rms_norm", 5, 4),
    "11a": OwnKernel("layer_norm_backward", 10, 3),
    "13b": OwnKernel("layer_norm_backward", 13, 3, persistent=True),
}
# rows and columns of the traced matrix; the number of passes does not depend on them
_TRACED = (4, 256)
_TRACED_BLOCK, _TRACED_ROWS, _TRACED_PROGRAMS = 64, 2, 2


@dataclass(frozen=True)
class LearnerLaunch:
    """A learner's kernel of ``exercise`` on concrete tensors: ``arguments`` in its order,
    ``constants`` by name. ``values`` are inputs."""

    exercise: str
    grid: tuple[int, ...]
    values: Values
    tensors: Mapping[str, torch.Tensor]
    arguments: list[Any]
    constants: dict[str, Any]

    def renew(self) -> None:
        """Draw new matrices, with the mean and rstd of their rows for a backward kernel, and fill
        what the kernel writes with NaN."""
        values, op = self.values, OPERATIONS.get(OWN[self.exercise].op)
        values.x.normal_(1.0)
        for matrix in (values.residual, values.dy):
            if matrix is not values.x:  # as a matrix that the kernel does not read is
                matrix.normal_()
        saved = {}
        if op is not None and op.backward:
            var, saved["mean"] = torch.var_mean(values.x.float(), 1, correction=0)
            saved["rstd"] = torch.rsqrt(var + own_launch.EPS)
        for name, tensor in self.tensors.items():
            if name in saved:
                tensor.copy_(saved[name])
            elif not hasattr(values, name):
                tensor.fill_(torch.nan)

    def check(self) -> None:
        """Compare what the kernel wrote with float64.

        Raises: WrongValues.
        """
        op = OPERATIONS.get(OWN[self.exercise].op)
        if op is None:
            x = self.values.x.double()
            operations.compare_tensor(
                "y", self.tensors["y"], x.sum(1), x.abs().sum(1), self.values.x.dtype
            )
            return
        written = {
            name.removesuffix("_partial"): t.sum(0) if name.endswith("_partial") else t
            for name, t in self.tensors.items()
        }
        operations.compare(
            op, {name: written[name] for name in op.outputs if name in written}, self.values
        )


def make_launch(
    exercise: str, M: int, N: int, tile: tables.TileLaunch, programs: int = 0
) -> LearnerLaunch:
    """Make random fp16 matrices of M x N and the other arguments for the kernel of ``exercise``, a
    key of OWN.

    Args:
        programs: number of programs of a persistent kernel; others ignore it.
    """
    kernel_facts = OWN[exercise]
    op = OPERATIONS.get(kernel_facts.op)
    (values,) = operations.make(M, N, torch.float16, course_lib.DEVICE, 1, (op,) if op else ())
    rows = tile.rows if own_launch.has_constant(exercise, "ROWS") else 1
    count = programs if kernel_facts.persistent else -(-M // rows)
    kinds, tensors = own_launch.list_tensors(exercise), {}
    for name, shape in own_launch.list_shapes(exercise, M, N, count).items():
        dtype = torch.float16 if kinds[name] == "matrix" else torch.float32
        tensors[name] = (
            getattr(values, name)
            if hasattr(values, name)
            else torch.empty(shape, dtype=dtype, device=course_lib.DEVICE)
        )
    arguments, constants = own_launch.order_arguments(
        exercise, M, N, tensors | {"ROWS": rows, "BLOCK": tile.block}
    )
    launch = LearnerLaunch(exercise, (count,), values, tensors, arguments, constants)
    launch.renew()
    return launch


def count_passes(exercise: str, kernel: Any) -> float:
    """Count the passes of a kernel with the parameters of ``exercise``, reads and writes together,
    by a trace in the interpreter.

    Raises: CourseError if it cannot be traced.
    """
    M, N = _TRACED
    tile = tables.TileLaunch(_TRACED_ROWS, N if OWN[exercise].whole else _TRACED_BLOCK, 4)
    launch = make_launch(exercise, M, N, tile, _TRACED_PROGRAMS)
    recording = record(kernel, launch.grid, launch.arguments, launch.constants)
    if recording.fault:
        words = _("your kernel of {exercise} could not be traced. {fault}")
        raise CourseError(words.format(exercise=exercise, fault=recording.fault))
    matrices = {name for name, tensor in launch.tensors.items() if tensor.shape == (M, N)}
    names = dict(zip((tensor.name for tensor in recording.tensors), launch.tensors, strict=False))
    moved = sum(
        access.bytes for access in recording.accesses if names.get(access.tensor or "") in matrices
    )
    return moved / (M * N * ITEMSIZE)


def time_own(exercise: str, kernel: Any, N: int) -> float | None:
    """Time a learner's kernel on this machine's GPU, in microseconds, over inputs larger than the
    cache; None if its rows are too long.

    Raises: CourseError if what the kernel wrote while it was timed is wrong; any exception of the
    kernel or the device.
    """
    kernel_facts = OWN[exercise]
    limit = (
        tables.PERSISTENT_LIMIT
        if kernel_facts.persistent
        else tables.RESIDENT_LIMIT
        if kernel_facts.whole
        else N
    )
    if limit < N:
        return None
    M = ELEMENTS // N
    wide = (
        tables.persistent(N)
        if kernel_facts.persistent
        else tables.resident(N)
        if kernel_facts.whole
        else tables.blocked(N)
    )
    tile = tables.TileLaunch(wide.rows, wide.block, wide.num_warps)
    programs = 0
    if isinstance(wide, tables.PersistentLaunch):
        each = wide.programs_per_multiprocessor
        programs = min(
            -(-M // wide.rows), each * device.count_multiprocessors(torch.device(course_lib.DEVICE))
        )
    count = max(2, grid.TOUCHED // (kernel_facts.least * ELEMENTS * ITEMSIZE))
    launches = [make_launch(exercise, M, N, tile, programs) for _ in range(count)]

    def call(launch: LearnerLaunch) -> Any:
        return lambda: kernel[launch.grid](
            *launch.arguments, **launch.constants, num_warps=tile.num_warps
        )

    def renew() -> None:
        for launch in launches:
            launch.renew()

    def judge() -> None:
        for launch in launches:
            launch.check()

    try:
        return timing.device_us([call(launch) for launch in launches], renew=renew, judge=judge)
    except operations.WrongValues as wrong:
        words = _(
            "your kernel of {exercise} has no time: what it wrote while it was timed, for {rows}"
            " rows of {columns} columns, is wrong: {wrong}. It has to compute everything in each"
            " launch, from the numbers that its tensors hold at that time."
        )
        raise CourseError(
            words.format(exercise=exercise, rows=M, columns=N, wrong=wrong)
        ) from wrong


def read_times() -> tuple[dict[tuple[str, str, int], dict], str]:
    """Return the measured rows by operation, provider and N, and a label that says where they were
    measured.

    Raises: CourseError if nothing is stored.
    """
    measured: list[Measurement] = [forward.latest(LENGTHS), backward.latest(LENGTHS)]
    return {
        (row["op"], row["provider"], row["N"]): row for part in measured for row in part.rows
    }, measured[0].label()


def make_data(exercise: str = "") -> dict[str, Any]:
    """Return the data for ``picture.js``. ``exercise`` is the exercise of a learner's kernel to
    draw with the course's, or "".

    Raises: CourseError if nothing is stored, or the learner's kernel does not pass its check.
    """
    times, source = read_times()
    kernels: dict[str, dict[str, Any]] = {}
    for key, kernel in KERNELS.items():
        us = [times.get((kernel.op, kernel.provider, N), {}).get("us") for N in LENGTHS]
        kernels[key] = {
            "label": _(kernel.label),
            "flop": kernel.flop,
            "asked": kernel.passes,
            "least": kernel.least,
            "us": us,
        }
    if exercise:
        if exercise not in OWN:
            words = _("the roofline takes the kernels of {known}; you asked for {own!r}.")
            raise CourseError(words.format(known=list_words(OWN), own=exercise))
        module = own_kernels.load_passing(exercise)
        kernel = getattr(module, own_launch.name_kernel(exercise))
        us = [time_own(exercise, kernel, N) if course_lib.MODE == "gpu" else None for N in LENGTHS]
        kernel_facts = OWN[exercise]
        kernels["own"] = {
            "label": _("yours, {exercise}").format(exercise=exercise),
            "flop": kernel_facts.flop,
            "asked": count_passes(exercise, kernel),
            "least": kernel_facts.least,
            "us": us,
        }
    floors = [times["layer_norm", "resident", N] for N in LENGTHS]
    copies = [2 * ELEMENTS * ITEMSIZE / (row["us"] / row["over_floor"]) / 1e3 for row in floors]
    return {
        "start": {"n": 8192, "counted": "least", "chosen": "own" if exercise else "resident"},
        "lengths": LENGTHS, "elements": ELEMENTS, "itemsize": ITEMSIZE, "kernels": kernels,
        "copies": copies, "source": source,
        "roof": {"name": H100.name, "gbps": H100.bandwidth / 1e9, "tflops": H100.peak / 1e12,
            "ridge": H100.ridge},
        "gpu": course_lib.MODE == "gpu",
    }  # fmt: skip
