"""Launches of the course's resident LayerNorm kernel, chosen by a function of the shape and the
bytes per number.

Many launches are right, so no number is expected for ROWS, BLOCK and num_warps. The judged output
is computed from them by ``course_lib/tuning/launch.py``: 0 if the launch has no fault, else the
number of the first fault.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from course_lib.base.translation import gettext as _
from course_lib.grading.cases.buffers import Tensor
from course_lib.grading.cases.case import Case
from course_lib.grading.cases.plan import Expected, Outputs, Part, Plan, Symptom
from course_lib.tuning.clock import MatrixShape, Timed, time_launch
from course_lib.tuning.launch import (
    ITEMSIZE,
    NAMES,
    LaunchChoice,
    LaunchFault,
    find_illegal,
    find_misfit,
    predict,
    suggest,
)

_FAULT = "fault"
# the causes of the faults, in the order in which the faults are looked for
CAUSES = (
    "launch_not_legal",
    "columns_left_out",
    "lanes_idle",
    "too_few_programs",
    "tile_spills",
    "too_little_under_way",
)
# columns; above this, the kernel comes near the floor only for powers of two
_THREE_QUARTERS = 3072
_LONGEST = 16384


@dataclass(frozen=True)
class LaunchCase(Case):
    """A launch for M rows of N columns. ``timed``: a machine with a GPU compares the time of the
    launch with the floor."""

    timed: bool = False

    def describe_outcome(self, entry_point: str, outputs: Outputs) -> str:
        if _FAULT not in outputs:  # the function returned nothing
            return ""
        fault = find_fault(self, outputs)
        if fault is None:
            return ""
        call = f"`{entry_point}({self.M}, {self.N}, {ITEMSIZE[self.dtype]})`"
        return _("{call} returned {launch}: {words}").format(
            call=call, launch=_write(outputs), words=fault.words
        )

    def describe_success(self, outputs: Outputs) -> str:
        launch = _read(outputs)
        return f"{launch}: {predict(self.N, self.dtype, launch)}"


CASES = (
    LaunchCase("256 columns", 131072, 256, 0, "short rows: one is far too little for a program",
        "a program has one row of 512 bytes", dtype="fp16", timed=True),
    LaunchCase("1024 columns", 32768, 1024, 0, "2 KB a row", "a program has one row of 2 KB",
        dtype="fp16", timed=True),
    LaunchCase("4096 columns", 8192, 4096, 0, "8 KB a row", "a long row has few warps",
        dtype="fp16", timed=True),
    LaunchCase("8192 columns", 4096, 8192, 0, "16 KB a row: as much as Little's law asks for",
        "a long row has few warps", dtype="fp16", timed=True),
    LaunchCase("16384 columns", 2048, 16384, 0, "the longest rows",
        "the tile does not fit the registers", dtype="fp16"),
    LaunchCase("128 columns", 262144, 128, 0, "the shortest rows",
        "a program has one row of 256 bytes", dtype="fp16"),
    LaunchCase("768 columns", 43690, 768, 0, "three quarters of a block",
        "BLOCK is N, which is no power of two", dtype="fp16"),
    LaunchCase("3072 columns", 10922, 3072, 0, "three quarters of a long block",
        "BLOCK is N, or less than N", dtype="fp16"),
    LaunchCase("fp32", 16384, 2048, 0, "numbers of 4 bytes", "the bytes per number are ignored",
        timed=True),
    LaunchCase("short rows in fp32", 174762, 192, 0,
        "numbers of 4 bytes, three quarters of a short block", "the bytes per number are ignored"),
    LaunchCase("few rows", 300, 1024, 0, "about two rows for each multiprocessor",
        "tiles of many rows leave multiprocessors without work", dtype="fp16"),
    LaunchCase("fewer rows than multiprocessors", 40, 512, 0, "not even one row for each",
        "a program has more than one row", dtype="fp16"),
)  # fmt: skip


def _write(outputs: Outputs) -> str:
    return ", ".join(f"{name} = {float(outputs[name]):g}" for name in NAMES)


def _read(outputs: Outputs) -> LaunchChoice:
    return LaunchChoice(*(int(outputs[name]) for name in NAMES))


def find_fault(case: Case, outputs: Outputs) -> LaunchFault | None:
    """Find the first fault of the launch that was returned for a case, as far as it can be found
    without timing.

    Raises: EnvironmentFault if this machine has no compiler to ask.
    """
    illegal = find_illegal(case.N, tuple(float(outputs[name]) for name in NAMES))
    return illegal or find_misfit(case.M, case.N, case.dtype, _read(outputs))


def _fit(N: int) -> int:
    """Return the nearest row length to N that the exercise asks about: a power of two, or three
    quarters of a short one."""
    powers = [1 << n for n in range(7, _LONGEST.bit_length())]
    return min(
        [*powers, *(3 * p // 4 for p in powers if 192 <= 3 * p // 4 <= _THREE_QUARTERS)],
        key=lambda length: abs(length - N),
    )


def _plan(case: LaunchCase, entry_point: str, rng: np.random.Generator) -> Plan[LaunchCase]:
    case = replace(case, N=_fit(case.N))
    tensors = tuple(Tensor(name, "fp32", (), (), any_dtype=True, whole=True) for name in NAMES)
    free = {
        name: Expected(np.array(float(value)), np.array(np.nan))
        for name, value in zip(NAMES, suggest(case.M, case.N), strict=True)
    }
    expected = free | {_FAULT: Expected(np.array(0.0), np.array(0.25))}

    def derive(outputs: Outputs) -> Outputs:
        fault = find_fault(case, outputs)
        return {_FAULT: np.array(0.0 if fault is None else 1.0 + CAUSES.index(fault.cause))}

    arguments = (case.M, case.N, ITEMSIZE[case.dtype])
    return Plan(case, entry_point, (), tensors, arguments, {}, expected, derive=derive)


def _time(plan: Plan[LaunchCase], outputs: Outputs) -> Timed | None:
    case = plan.case
    return (
        time_launch(MatrixShape(case.M, case.N, case.dtype), _read(outputs)) if case.timed else None
    )


def _shows(number: int) -> Symptom[LaunchCase]:
    return lambda plan, outputs: float(outputs.get(_FAULT, 0)) == number


_RARE: tuple[tuple[str, Symptom[LaunchCase]], ...] = (
    *((cause, _shows(number)) for number, cause in enumerate(CAUSES, start=1)),
    ("launch_unfit", lambda plan, outputs: _FAULT in outputs),
)
PARTS = {"choose_launch": Part(CASES, _plan, rare=_RARE, time=_time)}
