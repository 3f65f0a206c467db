"""Run a kernel once in Triton's interpreter, on copies of its tensors, and record every access for
the access map.

In CPU mode the kernel runs in this process, else in a second one
(:mod:`course_lib.lessons.second_process`). A learner's file always runs in the second process.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from course_lib.base.translation import gettext as _
from course_lib.launching.description import LaunchTensor
from course_lib.lessons import second_process
from course_lib.lessons.second_process import LaunchJob

SECONDS = 60.0  # for the second process, start and kernel together


@dataclass(frozen=True, eq=False)
class RecordedAccess:
    """One memory operation of one program. ``offsets`` has one value per active lane, in elements
    from element 0 of ``tensor``.

    ``tensor`` is None if the memory belongs to none of the tensors.
    """

    program: int
    kind: str  # "load", "store", or an atomic's name
    tensor: str | None
    offsets: np.ndarray
    masked: int
    itemsize: int
    line: int | None

    @property
    def bytes(self) -> int:
        return self.offsets.size * self.itemsize


@dataclass(frozen=True, eq=False)
class Recording:
    """The accesses of a launch, in the order in which the interpreter ran them. ``fault`` says what
    stopped the launch, or is ""."""

    kernel: str
    grid: tuple[int, ...]
    tensors: tuple[LaunchTensor, ...]
    accesses: tuple[RecordedAccess, ...]
    source: Mapping[int, str] = field(default_factory=dict)  # lines of the kernel by line number
    fault: str = ""
    apart: str = ""  # why a second process interpreted it; "" if this one did

    @property
    def programs(self) -> int:
        return int(np.prod(self.grid, dtype=np.int64))


def record(
    kernel: Any,
    grid: Any,
    arguments: Sequence[Any],
    named: Mapping[str, Any],
    *,
    apart: bool = False,
) -> Recording:
    """Run ``kernel[grid](*arguments, **named)`` in the interpreter, on copies.

    Args:
        kernel: a @triton.jit function, interpreted or compiled, or a KernelSource.
        apart: use a second process even if this one interprets. A KernelSource always runs there.

    Raises: CourseError if the launch does not fit the kernel, is too large, or the second process
        fails; TypeError if ``kernel`` is not a kernel.
    """
    why = second_process.find_reason(kernel, apart)
    job = second_process.make_job(kernel, grid, arguments, named)
    accesses, problem = (
        second_process.interpret_apart(run, kernel, job, SECONDS) if why else run(kernel, job)
    )
    fault = _("The launch was stopped there: {problem}.").format(problem=problem) if problem else ""
    return Recording(
        job.entry_point,
        job.grid,
        job.tensors,
        tuple(accesses),
        second_process.read_source_lines(kernel),
        fault,
        why,
    )


def run(kernel: Any, job: LaunchJob) -> tuple[list[RecordedAccess], str]:
    """Return the accesses of the launch, and what stopped it in words, or "". Needs Triton's
    interpreter mode."""
    from course_lib.interpreter.bounds import OutOfBounds
    from course_lib.interpreter.trace import tracing
    from course_lib.launching.interpreted import PlacedLaunch

    placed, problem = PlacedLaunch(job, job.memory), ""
    with tracing(placed.regions) as trace:
        try:
            placed.run(kernel)
        except OutOfBounds as outside:
            problem = str(outside)
        except Exception as raised:
            problem = second_process.describe_exception(raised)
    sizes = (*job.grid, 1, 1)
    accesses = [
        RecordedAccess(
            event.program[0] + sizes[0] * (event.program[1] + sizes[1] * event.program[2]),
            event.kind, event.tensor, event.offsets, event.masked, event.itemsize, event.line,
        )
        for event in trace.events
        if event.kind != "barrier"
    ]  # fmt: skip
    return accesses, problem
