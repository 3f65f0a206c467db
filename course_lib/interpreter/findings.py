"""The steps and findings of an interleaved run (races, missing barriers, deadlocks), as plain data
and in words."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from course_lib.base.translation import gettext as _


class ScheduledStep(NamedTuple):
    """One memory operation of one program, in the order of the schedule.

    ``kind`` is a :class:`~course_lib.interpreter.hooks.MemoryAccess`'s. ``address`` is the lowest
    byte of the live lanes (0 if there are none), ``size`` the number of bytes up to the end of the
    last lane. ``changed``: the operation wrote to memory; it is False for loads, barriers, a failed
    compare-and-swap, and an atomic that left memory unchanged. ``shared``: one thread does an
    atomic on a single number, and all threads of the program get its result, because the program
    reads it.
    """

    program: int
    kind: str
    line: int
    file: str
    address: int
    size: int
    lanes: int
    changed: bool
    shared: bool


@dataclass(frozen=True)
class Race:
    """Two operations on the same bytes, whose order nothing determines; ``first`` came first in
    this schedule.

    ``address`` is the lowest byte that they share, ``where`` its name. ``same_value``: both stored
    the same bits there, which is a race as well. ``times`` counts the pairs of operations of the
    same two lines, on the same argument.
    """

    first: ScheduledStep
    second: ScheduledStep
    address: int
    where: str
    same_value: bool
    times: int
    message: str


@dataclass(frozen=True)
class NoBarrier:
    """A race between the threads of programs, or of one program: no barrier makes one thread wait
    for another.

    ``first`` and ``second`` are the two operations on the same bytes; in one program, one thread
    writes a number that each thread loads. ``line`` is the one to look at: that of the atomic that
    one thread does for all, or of the load that each thread does for itself. ``times`` as in
    :class:`Race`.
    """

    first: ScheduledStep
    second: ScheduledStep
    line: int
    address: int
    where: str
    times: int
    message: str


@dataclass(frozen=True)
class Wait:
    """A program that repeats ``step`` forever. ``holder``: the last step that changed the bytes for
    which it waits; None if no step did."""

    step: ScheduledStep
    where: str
    holder: ScheduledStep | None
    message: str


@dataclass(frozen=True)
class GivenUp:
    """A program that repeated the atomic ``step`` ``tries`` times without any effect, and then
    stored to other bytes."""

    step: ScheduledStep
    tries: int
    message: str


@dataclass(frozen=True)
class Deadlock:
    """Every resident program waits. ``not_started`` are the programs for which no place was
    free."""

    waits: tuple[Wait, ...]
    not_started: tuple[int, ...]
    message: str


@dataclass
class Schedule:
    """The record of one interleaved run. Programs are numbered as ``programs`` lists them.

    ``started`` and ``finished`` list the programs in the order in which they started and finished.
    ``limit`` says in words that the step limit ended the run; else it is None. ``given_up`` is no
    finding: a program that goes on without a lock need not touch the data that the lock protects.
    ``arguments`` are the pointer arguments: name, address, bytes per element.
    """

    kernel: str
    seed: int
    resident: int
    programs: tuple[tuple[int, int, int], ...]
    arguments: tuple[tuple[str, int, int], ...]
    steps: list[ScheduledStep] = field(default_factory=list)
    races: list[Race] = field(default_factory=list)
    no_barrier: list[NoBarrier] = field(default_factory=list)
    deadlock: Deadlock | None = None
    limit: str | None = None
    given_up: list[GivenUp] = field(default_factory=list)
    started: list[int] = field(default_factory=list)
    finished: list[int] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        """Return True if every program finished."""
        return len(self.finished) == len(self.programs)

    @property
    def findings(self) -> tuple[str, ...]:
        """Return all findings in words."""
        messages = [finding.message for finding in (*self.races, *self.no_barrier)]
        return (
            *messages,
            *((self.deadlock.message,) if self.deadlock else ()),
            *((self.limit,) if self.limit else ()),
        )

    def name(self, program: int) -> str:
        """Name the program: by one index on a grid of one dimension, by three on a larger grid."""
        index = self.programs[program]
        return _("program {program}").format(
            program=index[0] if self.programs[-1][1:] == (0, 0) else index
        )

    def place(self, address: int) -> str:
        """Name ``address`` as an element of the nearest pointer argument below it:
        "partial_ptr[12]"."""
        below = [argument for argument in self.arguments if argument[1] <= address]
        if not below:
            return hex(address)
        name, start, width = max(below, key=lambda argument: argument[1])
        return f"{name}[{(address - start) // width}]"


def verb(step: ScheduledStep) -> str:
    """Return the name of the operation in Triton: "load", "atomic_add"."""
    if step.kind in ("load", "store"):
        return step.kind
    return "atomic_" + {"fadd": "add", "umax": "max", "umin": "min"}.get(step.kind, step.kind)
