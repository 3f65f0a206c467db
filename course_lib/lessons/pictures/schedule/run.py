"""Run a kernel with its programs interleaved, on copies of its tensors, and record memory before
and after each operation.

:mod:`course_lib.interpreter.schedule` makes the schedule and finds races and deadlocks. In CPU mode
the kernel runs in this process, else in a second one (:mod:`course_lib.lessons.second_process`). A
learner's file always runs in the second process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from course_lib.base.errors import CourseError
from course_lib.base.translation import gettext as _
from course_lib.base.words import list_words
from course_lib.launching.description import LaunchTensor
from course_lib.lessons import second_process
from course_lib.lessons.second_process import LaunchJob

SECONDS = 90.0  # time limit of the second process, for its start and all seeds together
MOST_STEPS = 20_000  # limit per seed; a lesson's kernel takes a few hundred


@dataclass(frozen=True)
class Operation:
    """One memory operation, in the order of the schedule.

    ``elements`` are the flat indices of ``tensor`` that its lanes touch; ``found`` and ``left`` are
    their values before and after it. ``changed`` and ``shared`` as in
    :class:`course_lib.interpreter.findings.ScheduledStep`. A barrier has no tensor.
    """

    program: int
    kind: str  # "load", "store", "barrier", "cas", "xchg", "add", ...
    line: int
    tensor: str
    elements: tuple[int, ...]
    found: tuple[float | bool, ...]
    left: tuple[float | bool, ...]
    changed: bool
    sem: str = ""  # an atomic's memory order; "relaxed" for a volatile load
    shared: bool = False

    @property
    def is_atomic(self) -> bool:
        return self.kind not in ("load", "store", "barrier")


@dataclass(frozen=True)
class Clash:
    """A race: the numbers of its two operations in the schedule, the element that both touch, and
    the finding in words."""

    first: int
    second: int
    where: str
    message: str


@dataclass(frozen=True, eq=False)
class Interleaving:
    """The run of one seed. ``deadlock`` and ``limit`` are findings in words, or ""; ``finished`` is
    in the order of finishing.

    ``waits`` has an entry for each program that waits forever: the program, the element that it
    waits for, and the program that last changed this element (None if no program did).
    """

    kernel: str
    seed: int
    programs: int
    indices: tuple[tuple[int, int, int], ...]  # of the programs, in the grid
    tensors: tuple[LaunchTensor, ...]
    operations: tuple[Operation, ...]
    races: tuple[Clash, ...]
    barriers: tuple[str, ...]  # findings of missing barriers, in words
    deadlock: str
    waits: tuple[tuple[int, str, int | None], ...]
    limit: str
    finished: tuple[int, ...]
    memory: bytes  # the launch's memory after the run
    before: bytes = b""
    source: dict[int, str] = field(default_factory=dict)
    apart: str = ""  # why a second process interpreted it; "" if this one did

    @property
    def complete(self) -> bool:
        """Return whether every program finished."""
        return len(self.finished) == self.programs

    @property
    def findings(self) -> tuple[str, ...]:
        """Return all findings in words."""
        return (
            *(race.message for race in self.races),
            *(words for words in (self.deadlock, self.limit) if words),
        )

    def result(self, name: str) -> np.ndarray:
        """Return the content of the tensor after the run. ``name`` is its parameter, with or
        without ``_ptr``.

        Raises: CourseError if the kernel has no such tensor.
        """
        return read_tensor(self.tensor(name), self.memory)

    def first(self, name: str) -> np.ndarray:
        """Return the content of the tensor before the run."""
        return read_tensor(self.tensor(name), self.before)

    def tensor(self, name: str) -> LaunchTensor:
        short_name = name.removesuffix("_ptr")
        for tensor in self.tensors:
            if tensor.name == short_name:
                return tensor
        names = list_words(tensor.name for tensor in self.tensors)
        raise CourseError(
            _("`{kernel}` was given no tensor `{name}`; it has {known}.").format(
                kernel=self.kernel, name=name, known=names
            )
        )


def interleaved(
    kernel: Any,
    grid: Any,
    *arguments: Any,
    seeds: Iterable[int] = range(10),
    resident: int = 8,
    apart: bool = False,
    **named: Any,
) -> list[Interleaving]:
    """Run ``kernel[grid](*arguments, **named)`` once per seed; the seed decides how its programs
    interleave.

    Args:
        kernel: a @triton.jit function, interpreted or compiled, or a KernelSource.
        seeds: each draws the order in which programs start, and the program that makes each next
            step.
        resident: limit on the number of unfinished programs at a time.
        apart: use a second process even if this one interprets. A KernelSource always runs there.

    The tensors do not change, because every run gets copies. Results are in
    :meth:`Interleaving.result`.

    Raises: CourseError if the launch does not fit the kernel, is too large, stops with an error, or
        the second process fails; TypeError if ``kernel`` is not a kernel.
    """
    why = second_process.find_reason(kernel, apart)
    job = second_process.make_job(kernel, grid, arguments, named)
    of_all = {"seeds": [int(seed) for seed in seeds], "resident": resident}
    runs = (
        second_process.interpret_apart(run_all, kernel, job, SECONDS, **of_all)
        if why
        else run_all(kernel, job, **of_all)
    )
    source = second_process.read_source_lines(kernel)
    return [replace(run, before=job.memory, source=source, apart=why) for run in runs]


def run_all(kernel: Any, job: LaunchJob, seeds: Sequence[int], resident: int) -> list[Interleaving]:
    """Return the result of :func:`run` for every seed."""
    return [run(kernel, job, seed, resident) for seed in seeds]


def run(
    kernel: Any,
    job: LaunchJob,
    seed: int,
    resident: int,
    *,
    order: Sequence[int] = (),
    most_steps: int = MOST_STEPS,
    watch: Callable[[Any], None] = lambda access: None,
) -> Interleaving:
    """Run one seed. Needs Triton's interpreter mode. The result lacks the memory before the run and
    the source.

    Args:
        order: the programs that make the first steps; the seed draws the later ones.
        watch: each program's thread calls it with its next access, see
            :func:`course_lib.interpreter.hooks.observing`.

    Raises: CourseError that says what stopped the kernel.
    """
    from course_lib.interpreter import hooks
    from course_lib.interpreter.lock import LOCK
    from course_lib.launching.interpreted import PlacedLaunch

    placed = PlacedLaunch(job, job.memory)
    accesses: dict[tuple[int, int, int], list[hooks.MemoryAccess]] = {}

    def keep(access: hooks.MemoryAccess) -> None:
        # Called before the scheduler may suspend the program. So the order is right within a
        # program, and only that is used.
        accesses.setdefault(access.program, []).append(access)

    try:
        with LOCK, hooks.observing(keep), hooks.observing(watch):
            outcome = placed.interleave(
                kernel, seed=seed, resident=resident, max_steps=most_steps, order=order
            )
    except CourseError:
        raise
    except Exception as raised:
        words = _("`{kernel}` was stopped: {exception}.")
        raise CourseError(
            words.format(
                kernel=job.entry_point, exception=second_process.describe_exception(raised)
            )
        ) from raised
    replay = _Replay(job, placed.memory.ctypes.data)
    queues = {
        number: iter(accesses.get(index, ())) for number, index in enumerate(outcome.programs)
    }
    operations = tuple(replay.apply(step, next(queues[step.program])) for step in outcome.steps)
    numbers = {id(step): number for number, step in enumerate(outcome.steps)}
    races = tuple(
        Clash(
            numbers[id(race.first)],
            numbers[id(race.second)],
            race.where.replace("_ptr[", "["),
            race.message,
        )
        for race in outcome.races
    )
    waits = tuple(
        (
            wait.step.program,
            wait.where.replace("_ptr[", "["),
            wait.holder.program if wait.holder else None,
        )
        for wait in (outcome.deadlock.waits if outcome.deadlock else ())
    )
    return Interleaving(
        job.entry_point, seed, len(outcome.programs), outcome.programs, job.tensors, operations,
        races,
        tuple(finding.message for finding in outcome.no_barrier),
        outcome.deadlock.message if outcome.deadlock else "", waits,
        outcome.limit or "", tuple(outcome.finished), placed.read_memory(),
    )  # fmt: skip


class _Replay:
    """A copy of the initial memory, at ``address`` in the run, on which the operations are repeated
    to find the values before and after."""

    def __init__(self, job: LaunchJob, address: int):
        self.job = job
        self.address = address
        self.memory = np.frombuffer(bytearray(job.memory), np.uint8)

    def apply(self, step: Any, access: Any) -> Operation:
        live = access.addresses[access.mask].astype(np.int64) - self.address
        tensor = self._tensor(int(live.min())) if step.lanes else None
        if tensor is None:
            return Operation(
                step.program,
                step.kind,
                step.line,
                "",
                (),
                (),
                (),
                step.changed,
                access.sem,
                step.shared,
            )
        lanes = live[:, None] + np.arange(access.itemsize)
        raw = np.ascontiguousarray(self.memory[lanes])
        values_found = _decode(raw, tensor)
        if access.writes:
            self.memory[lanes] = self._read_what_is_left(access, raw)
        values_left = _decode(np.ascontiguousarray(self.memory[lanes]), tensor)
        elements = ((live - tensor.start) // tensor.itemsize).tolist()
        return Operation(
            step.program, step.kind, step.line, tensor.name, tuple(elements),
            tuple(values_found.tolist()), tuple(values_left.tolist()), step.changed,
            access.sem, step.shared,
        )  # fmt: skip

    def _read_what_is_left(self, access: Any, raw: np.ndarray) -> np.ndarray:
        """Return the bytes that the operation leaves in its active lanes, shape (lanes,
        itemsize)."""
        brought = np.ascontiguousarray(
            np.broadcast_to(access.values, access.addresses.shape)[access.mask]
        )
        old = raw.view(brought.dtype)[:, 0]
        if access.kind in ("store", "xchg"):
            new = brought
        elif access.kind == "cas":
            new = np.where(
                old == np.broadcast_to(access.expected, access.addresses.shape)[access.mask],
                brought,
                old,
            )
        else:
            with np.errstate(over="ignore"):
                new = _ARITHMETIC[access.kind](old, brought)
        return np.ascontiguousarray(new.astype(brought.dtype)).view(np.uint8).reshape(raw.shape)

    def _tensor(self, place: int) -> LaunchTensor | None:
        """Return the tensor that starts last at or before this place in the memory."""
        return max(
            (tensor for tensor in self.job.tensors if tensor.start <= place),
            key=lambda tensor: tensor.start,
            default=None,
        )


_ARITHMETIC = {
    "add": np.add, "fadd": np.add, "and": np.bitwise_and, "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "max": np.maximum, "umax": np.maximum, "min": np.minimum, "umin": np.minimum,
}  # fmt: skip


def _decode(raw: np.ndarray, tensor: LaunchTensor) -> np.ndarray:
    values = raw.view(_dtype(tensor))[:, 0]
    return values.astype(np.float64) if values.dtype.kind not in "iub" else values


def _dtype(tensor: LaunchTensor) -> np.dtype:
    import ml_dtypes

    names = {
        "fp64": np.float64,
        "fp32": np.float32,
        "fp16": np.float16,
        "bf16": ml_dtypes.bfloat16,
        "int1": np.bool_,
    }
    return np.dtype(names.get(tensor.dtype, tensor.dtype))


def read_tensor(tensor: LaunchTensor, memory: bytes) -> np.ndarray:
    return view_tensor(tensor, memory).copy()


def view_tensor(tensor: LaunchTensor, memory: bytes | bytearray) -> np.ndarray:
    """Return the tensor in ``memory``, which it shares."""
    strides = tuple(stride * tensor.itemsize for stride in tensor.strides)
    return np.ndarray(tensor.shape, _dtype(tensor), memory, tensor.start, strides)
