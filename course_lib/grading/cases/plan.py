"""A case made concrete: the tensors, the call that the course does, and what float64 says must come out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from course_lib.grading.cases.buffers import Tensor
from course_lib.grading.cases.case import Case

if TYPE_CHECKING:
    from course_lib.tuning.clock import Timed


@dataclass(frozen=True)
class Expected:
    """What an output must be, and how far it may be off, element by element, in float64.

    Where ``allowed`` is NaN, anything goes; where it is infinite, any value that is not finite does. ``signed``: -0 is not 0.
    ``whole``: numbers that are counted, so that a wrong one is told by itself, and not by how many allowed errors it is off.
    """

    values: np.ndarray
    allowed: np.ndarray
    signed: bool = False
    whole: bool = False


C = TypeVar("C", bound=Case)


@dataclass(frozen=True)
class Plan(Generic[C]):
    """A concrete case: ``arguments`` are ("tensor", name), ("int", value) or ("float", value), in the entry point's order.

    For a kernel the outputs are tensors it is given; for a function (no grid) they are what it returns, in that order.
    """

    case: C
    entry_point: str
    grid: tuple[int, ...]
    tensors: tuple[Tensor, ...]
    arguments: tuple[tuple[str, Any], ...]
    constexprs: dict[str, int]
    expected: dict[str, Expected]
    num_warps: int = 4
    inputs: dict[str, np.ndarray] = field(default_factory=dict)  # float64, for the diagnosis
    interleavings: int = (
        0  # how many orders of the programs' memory operations are tried; more than 0 where programs share memory
    )
    any_order: bool = False  # the outputs' bits may depend on that order
    # where the exercise asks for it: how often a tensor's elements may be read; over how many programs the work on it is spread;
    # how often another entry point is called, at least, and with 0 never
    reads: dict[str, int] = field(default_factory=dict)
    spread: dict[str, int] = field(default_factory=dict)
    calls: dict[str, int] = field(default_factory=dict)
    # how many loads may have no lane at all, beyond as many as those that have one; None: any number
    empty_loads: int | None = None
    # of a grid of one dimension: the programs that CPU mode launches, whose rows alone are judged; none: all
    sample: tuple[int, ...] = ()
    # outputs that are worked out from those that came back, where many of these are right: ``expected`` has them, too
    derive: Callable[[dict[str, np.ndarray]], dict[str, np.ndarray]] | None = None

    def tensor(self, name: str) -> Tensor:
        return next(tensor for tensor in self.tensors if tensor.name == name)

    @property
    def asked_rows(self) -> np.ndarray:
        """True for each of the M rows that the sampled programs have, if each program takes its rows in order."""
        return np.isin(np.arange(self.case.M) // self.case.rows, self.sample)


Outputs = dict[str, np.ndarray]
Model = Callable[[Plan[C]], Outputs]
Symptom = Callable[[Plan[C], Outputs], bool]


def list_no_models() -> Iterable[tuple[str, Callable[[Any], Outputs]]]:
    return ()


@dataclass(frozen=True)
class Part(Generic[C]):
    """All that the grader knows of one entry point of an exercise.

    ``models`` gives wrong formulas with their causes, the likelier first. ``rare`` are causes that follow where every failed case is
    of a kind that is there for this alone, and its outputs say so; ``traits`` those where exactly the cases of a common kind fail;
    both are asked before those that hold for every family. ``unwritten`` names the cause where an output is never written at all;
    for outputs that are not in it that is "not_written". ``minor`` names the cause of a minor kind of fault, where
    another one fits the cases with a trait better. ``partials`` are outputs of which each program writes one row. ``time`` times on a
    GPU what came back for a plan; None where the plan is not timed.
    """

    battery: tuple[C, ...]
    planner: Callable[[C, str, np.random.Generator], Plan[C]]
    models: Callable[[], Iterable[tuple[str, Model[C]]]] = list_no_models
    traits: tuple[tuple[str, Callable[[C], bool]], ...] = ()
    rare: tuple[tuple[str, Symptom[C]], ...] = ()
    unwritten: Mapping[str, str] = field(
        default_factory=lambda: dict.fromkeys(("mean", "rstd", "var"), "statistics_not_saved")
    )
    minor: Mapping[str, tuple[str, Callable[[C], bool]]] = field(default_factory=dict)
    partials: tuple[str, ...] = ()
    time: Callable[[Plan[C], Outputs], Timed | None] | None = None
