"""The data of the schedule explorer: a kernel's lines, the memory its programs share, and the
effect of every order of the programs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from course_lib.base.errors import CourseError
from course_lib.base.translation import gettext as _
from course_lib.lessons import second_process
from course_lib.lessons.kit.code import list_code
from course_lib.lessons.pictures.schedule.automaton import explore, is_integer
from course_lib.lessons.pictures.schedule.run import SECONDS, Interleaving, read_tensor

MOST_PROGRAMS = 8
SEEDS = range(20)
_NEAR = 4  # largest distance in lines, see _find_beginning


@dataclass(frozen=True)
class ScheduleLaunch:
    """A launch to explore. ``kernel`` is a @triton.jit function, a KernelSource, or a function that
    returns one at each call."""

    kernel: Any
    grid: Sequence[int]
    arguments: Sequence[Any]
    named: Mapping[str, Any] = field(default_factory=dict)


def make_data(launch: ScheduleLaunch, seeds: Sequence[int], rooms: Sequence[int]) -> dict[str, Any]:
    """Run one launch and return the data for ``picture.js``. This takes a second or two; if
    necessary, a second process runs the kernel.

    ``rooms``: limits on the number of unfinished programs at a time; every seed is run with each
    limit.

    Raises: CourseError if the launch has more than MOST_PROGRAMS programs, cannot be run, or its
    shared memory is too large.
    """
    kernel = launch.kernel
    if callable(kernel) and not hasattr(kernel, "fn"):
        kernel = kernel()
    why = second_process.find_reason(kernel, False)
    job = second_process.make_job(kernel, launch.grid, launch.arguments, launch.named)
    programs = math.prod(job.grid)
    if programs > MOST_PROGRAMS:
        words = _(
            "the schedule explorer has a row for each of {most} programs; this launch has"
            " {programs}. Use a smaller grid."
        )
        raise CourseError(words.format(most=MOST_PROGRAMS, programs=programs))
    options = {"seeds": list(seeds), "rooms": list(rooms)}
    exploration = (
        second_process.interpret_apart(explore, kernel, job, SECONDS, **options)
        if why
        else explore(kernel, job, **options)
    )
    source = second_process.read_source_lines(kernel)
    with second_process.expect_sense():
        lines = {node[1] for nodes in exploration["nodes"] for node in nodes if node}
        tensors = [
            tensor
            for name in exploration["shared"]
            for tensor in job.tensors
            if tensor.name == name
        ]
    return exploration | {
        "kernel": job.entry_point,
        "tensors": [
            {
                "name": tensor.name,
                "integers": is_integer(tensor.dtype),
                "columns": tensor.shape[-1],
                "values": read_tensor(tensor, job.memory).ravel().tolist(),
            }
            for tensor in tensors
        ],
        "source": list_code(source, lines | _find_beginning(source, min(lines, default=0))),
        "barriers": exploration["barriers"][:1],
    }


def _find_beginning(source: Mapping[int, str], first_line: int) -> set[int]:
    """Return the first line of the kernel's body if it is near ``first_line``, the first line with
    an operation, to show the lines between."""
    body = next(
        (number + 1 for number, line in source.items() if line.rstrip().endswith("):")), first_line
    )
    return {body} if first_line - _NEAR <= body < first_line else set()


def list_shown(run: Interleaving) -> list[int]:
    """Return the numbers of the operations of ``run`` that the picture shows: barriers, and
    operations on memory that programs share."""
    programs: dict[str, set[int]] = {}
    written = set()
    for operation in run.operations:
        programs.setdefault(operation.tensor, set()).add(operation.program)
        if operation.kind not in ("load", "barrier"):
            written.add(operation.tensor)
    shared = {name for name in written if len(programs[name]) > 1}
    return [
        i
        for i, operation in enumerate(run.operations)
        if operation.kind == "barrier" or operation.tensor in shared
    ]
