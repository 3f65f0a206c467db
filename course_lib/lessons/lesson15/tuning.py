"""Lesson 15: two kernels with launch settings that the learner chooses, their compiler reports, and
the bytes that they keep in flight.

The resident forward kernel is that of exercise 15b, whose grader times it. The persistent backward
kernel is timed here.

Registers, spills, shared memory and bytes loaded ahead are computed for an H100, on any machine.
The time is measured only on a GPU.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

import course_lib
from course_lib.base.errors import CourseError
from course_lib.base.translation import gettext as _
from course_lib.base.words import OR, list_words
from course_lib.bench import forward, grid, operations, timing
from course_lib.bench.operations import EPS, OPERATIONS, Values
from course_lib.compiler import Pointer, compile_report, residency
from course_lib.kernels.launch import device, tables
from course_lib.kernels.layer_norm import layer_norm_forward
from course_lib.kernels.norm_backward import norm_backward_persistent_kernel
from course_lib.tuning.launch import ARCH, ITEMSIZE, LaunchChoice, LaunchPrediction, predict

_LONGEST = 16384  # limit on the columns of the forward kernel
_ITEMSIZE, _MATRICES = 2, 2  # fp16; x and dy
# Any, because no type checker knows the parameters of a launch
_KERNEL: Any = norm_backward_persistent_kernel
_CONSTANTS = {"CENTRED": True, "HAS_W": True}


@dataclass(frozen=True)
class Tried:
    """One setting of the backward kernel, with its results.

    ``ahead`` are the bytes of x and dy that a multiprocessor loads ahead, besides the tiles at
    work. ``over_floor`` is the kernel's time, without the sum over its partial sums, divided by
    that of an elementwise pass of the same run; None if it was not measured.
    """

    N: int
    rows: int
    num_warps: int
    num_stages: int
    registers: int
    spill_bytes: int
    shared_bytes: int
    programs: int
    ahead: int
    over_floor: float | None

    def __str__(self) -> str:
        time = (
            _("time not measured: no GPU")
            if self.over_floor is None
            else _("{over:.2f} of the floor").format(over=self.over_floor)
        )
        return _(
            "rows {rows}, warps {num_warps}, stages {num_stages}: {registers} registers,"
            " {spill_bytes} bytes spilled, {shared:.0f} KB shared, {programs} on a multiprocessor,"
            " {ahead:.0f} KB ahead; {time}"
        ).format(
            **vars(self)
            | {"shared": self.shared_bytes / 1024, "ahead": self.ahead / 1024, "time": time}
        )


@dataclass(frozen=True)
class Predicted:
    """A launch of the resident forward kernel for rows of N columns, and the prediction for an
    H100's multiprocessor."""

    N: int
    launch: LaunchChoice
    made: LaunchPrediction

    @property
    def programs(self) -> int:
        return self.made.programs

    @property
    def under_way(self) -> int:
        return self.made.under_way

    def __str__(self) -> str:
        words = _("N = {N}, rows {rows}, warps {warps}: {held}")
        if self.made.spill_bytes:
            words = _("N = {N}, rows {rows}, warps {warps}: {held}, {spilled} bytes spilled")
        return words.format(
            N=self.N,
            rows=self.launch.rows,
            warps=self.launch.num_warps,
            held=self.made,
            spilled=self.made.spill_bytes,
        )


def predict_launch(N: int, rows: int, num_warps: int, dtype: str = "fp16") -> Predicted:
    """Compile the course's resident LayerNorm forward kernel for an H100 with these settings. BLOCK
    is the smallest that holds a row.

    Args:
        N: columns, 1 to 16384.
        rows: a power of two up to 64.
        num_warps: a power of two up to 32.
        dtype: "fp16" or "fp32".

    Raises: CourseError if a setting has another value, or the compiler fails.
    """
    if not 1 <= N <= _LONGEST:
        raise CourseError(
            _("{name} has to be from {least} to {most}; you chose {value}.").format(
                name="N", least=1, most=_LONGEST, value=N
            )
        )
    if dtype not in ITEMSIZE:
        raise CourseError(
            _("dtype has to be {dtypes}; you chose {dtype!r}.").format(
                dtypes=list_words(map(repr, ITEMSIZE), OR), dtype=dtype
            )
        )
    _require_power("rows", rows, 1, 64)
    _require_power("num_warps", num_warps, 1, 32)
    launch = LaunchChoice(rows, tables.next_power_of_2(N), num_warps)
    return Predicted(N, launch, predict(N, dtype, launch))


def _require_power(name: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most or value & (value - 1):
        raise CourseError(
            _("{name} has to be a power of two from {least} to {most}; you chose {value}.").format(
                name=name, least=least, most=most, value=value
            )
        )


def try_launch(N: int, rows: int, num_warps: int, num_stages: int) -> Tried:
    """Compile the course's persistent LayerNorm backward kernel for an H100 with these settings, in
    fp16. On a GPU, also time it.

    Args:
        N: columns, a power of two from 128 to 8192.
        rows: rows of a tile, a power of two up to 64.
        num_warps: a power of two up to 32.
        num_stages: 1 to 8.

    Raises: CourseError if a setting has another value, or the compiler refuses the kernel.
    """
    _require_power("N", N, 128, tables.PERSISTENT_LIMIT)
    _require_power("rows", rows, 1, 64)
    _require_power("num_warps", num_warps, 1, 32)
    if not 1 <= num_stages <= 8:
        raise CourseError(
            _("{name} has to be from {least} to {most}; you chose {value}.").format(
                name="num_stages", least=1, most=8, value=num_stages
            )
        )
    half, single = Pointer("fp16"), Pointer("fp32")
    arguments = [*[half] * 3, *[single] * 2, *[half] * 2, *[single] * 2, N, 1, N, 1, N, 32768, N]
    constants = {"ROWS": rows, "BLOCK": N, "FULL": True, "STAGES": num_stages, **_CONSTANTS}
    report = compile_report(
        norm_backward_persistent_kernel,
        arguments,
        constants,
        num_warps=num_warps,
        arch=ARCH,
        disassemble=False,
    )
    programs = residency(ARCH, report.registers, report.shared_bytes, num_warps).warps // num_warps
    tile = _MATRICES * rows * N * _ITEMSIZE
    over_floor = (
        _time_over_floor(N, rows, num_warps, num_stages, programs)
        if course_lib.MODE == "gpu"
        else None
    )
    return Tried(
        N, rows, num_warps, num_stages, report.registers, report.spill_bytes, report.shared_bytes,
        programs,
        programs * (num_stages - 1) * tile, over_floor,
    )  # fmt: skip


def _time_over_floor(
    N: int, rows: int, num_warps: int, num_stages: int, programs: int
) -> float | None:
    """Time the kernel and divide by an elementwise pass; None if not even one program fits on a
    multiprocessor."""
    if not programs:
        return None
    op, M = OPERATIONS["layer_norm_backward"], max(1, forward.ELEMENTS // N)
    count = grid.count_inputs(M, N, _ITEMSIZE)
    inputs = operations.make(M, N, torch.float16, course_lib.DEVICE, count, (op,))
    P = min(-(-M // rows), programs * device.count_multiprocessors(torch.device(course_lib.DEVICE)))

    def prepare(v: Values):
        _y, mean, rstd = layer_norm_forward(v.x, v.w, v.b, EPS)
        constants = {"ROWS": rows, "BLOCK": N, "FULL": True, "STAGES": num_stages, **_CONSTANTS}

        def call() -> torch.Tensor:
            dx = torch.empty_like(v.x)
            partials = [
                torch.empty((P, N), dtype=torch.float32, device=dx.device) for _ in range(2)
            ]
            _KERNEL[(P,)](
                v.dy,
                v.x,
                v.w,
                mean,
                rstd,
                v.dy,  # no dtotal
                dx,
                *partials,
                N,
                1,
                N,
                1,
                N,
                M,
                N,
                num_warps=num_warps,
                **constants,
            )
            return dx

        return call

    before = operations.floor_us(op, inputs)
    us = timing.device_us([prepare(v) for v in inputs])
    return us / min(before, operations.floor_us(op, inputs))
