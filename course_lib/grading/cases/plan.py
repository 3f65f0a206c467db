"""A concrete case: its tensors, the call of the learner's code, and the outputs that float64
arithmetic expects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from course_lib.grading.cases.buffers import Tensor
from course_lib.grading.cases.case import Case
from course_lib.grading.cases.counts import Count
from course_lib.launching.description import Launch, LaunchTensor

if TYPE_CHECKING:
    from course_lib.compiler import Specialisation
    from course_lib.tuning.clock import Timed


@dataclass(frozen=True)
class Expected:
    """The right values of an output and their allowed errors, element by element, in float64.

    Where ``allowed`` is NaN, any value is right; where it is infinite, also any value that is not
    finite. ``signed``: -0 is not 0. ``whole``: the values are counts, so a verdict shows a wrong
    one itself, not by how many allowed errors it is off.
    """

    values: np.ndarray
    allowed: np.ndarray
    signed: bool = False
    whole: bool = False


@dataclass(frozen=True)
class CaseTensor(LaunchTensor):
    """A tensor of a case as the child process knows it, without its values. The fields mean the
    same as in :class:`Tensor`. In the launch's memory it takes ``nbytes`` from ``offset`` on,
    guards included."""

    offset: int = 0
    nbytes: int = 0
    is_output: bool = False
    scratch: bool = False
    any_dtype: bool = False
    whole: bool = False
    in_place: bool = False


@dataclass(frozen=True)
class Batch:
    """A second launch of a case, with its first ``rows`` rows alone and one program for each."""

    rows: int
    arguments: tuple[Any, ...]
    constexprs: dict[str, int]


@dataclass(frozen=True)
class CaseLaunch(Launch):
    """A case as the child process knows it: the fields of a :class:`Plan` that do not judge the
    results."""

    tensors: tuple[CaseTensor, ...]
    num_warps: int = 4
    interleavings: int = 0
    resident: int = 8
    any_order: bool = False
    reads: dict[str, int] = field(default_factory=dict)
    reads_by_lane: bool = False
    spread: dict[str, int] = field(default_factory=dict)
    calls: dict[str, tuple[int, int | None]] = field(default_factory=dict)
    alike: tuple[str, ...] = ()
    batch: Batch | None = None
    empty_loads: int | None = None
    meetings: int | None = None
    counted: bool = False


C = TypeVar("C", bound=Case)


@dataclass(frozen=True)
class Plan(Generic[C]):
    """A concrete case. ``arguments`` are in the entry point's order: a text is the name of a
    tensor, a number or None a value.

    The outputs of a kernel are among the tensors that it is given. A function (``grid`` is empty)
    returns its outputs, in this order. The tensors lie one behind the other in the memory of the
    launch.
    """

    case: C
    entry_point: str
    grid: tuple[int, ...]
    tensors: tuple[Tensor, ...]
    arguments: tuple[str | int | float | None, ...]
    constexprs: dict[str, int]
    expected: dict[str, Expected]
    num_warps: int = 4
    inputs: dict[str, np.ndarray] = field(default_factory=dict)  # float64, for the diagnosis
    # number of orders of the programs' memory operations that are tried; above 0 only if programs
    # share memory
    interleavings: int = 0
    # the largest number of unfinished programs at one time in such an order, as in
    # interpreter/schedule.py
    resident: int = 8
    any_order: bool = False  # the outputs' bits may depend on the order of the memory operations
    # The exercise asks for these besides right outputs. reads: how often the elements of a tensor
    # may be read. If several lanes of one load read the same element, that is one read, or with
    # ``reads_by_lane`` as many as there are lanes. spread: over how many programs the work on a
    # tensor is spread. calls: the fewest and the most calls of another entry point, where None is
    # no limit. alike: outputs, (M, columns) in fp32 and packed, of which a row has the same bits in
    # all columns. batch: a launch with fewer rows, in which each of them has the same bits as here.
    reads: dict[str, int] = field(default_factory=dict)
    reads_by_lane: bool = False
    spread: dict[str, int] = field(default_factory=dict)
    calls: dict[str, tuple[int, int | None]] = field(default_factory=dict)
    alike: tuple[str, ...] = ()
    batch: Batch | None = None
    # The loads without an active lane may exceed those with one by at most this number; None allows
    # any number.
    empty_loads: int | None = None
    # The most reductions across lanes that the exercise allows for each row; None allows any
    # number.
    meetings: int | None = None
    counted: bool = False  # the child reports what the kernel did in this case: ``Part.counts``
    # The programs of a one-dimensional grid that CPU mode launches; only their rows are judged.
    # Empty means all programs.
    sample: tuple[int, ...] = ()
    # If many values of the outputs are right, this function computes from them further outputs that
    # can be judged; ``expected`` has those.
    derive: Callable[[dict[str, np.ndarray]], dict[str, np.ndarray]] | None = None
    # the kernel on which a learner's test runs; their process never gets this name
    kernel_under_test: str = ""

    def __post_init__(self) -> None:
        ends = accumulate(tensor.nbytes for tensor in self.tensors)
        placed = (
            replace(tensor, offset=end - tensor.nbytes)
            for tensor, end in zip(self.tensors, ends, strict=True)
        )
        object.__setattr__(self, "tensors", tuple(placed))

    @property
    def nbytes(self) -> int:
        """Return the size of the launch's memory."""
        return sum(tensor.nbytes for tensor in self.tensors)

    def tensor(self, name: str) -> Tensor:
        return next(tensor for tensor in self.tensors if tensor.name == name)

    @property
    def asked_rows(self) -> np.ndarray:
        """A boolean for each of the M rows: True if it belongs to a sampled program. Program p has
        the rows from p * ROWS on."""
        return np.isin(np.arange(self.case.M) // self.case.rows, self.sample)


Outputs = dict[str, np.ndarray]
Model = Callable[[Plan[C]], Outputs]
Symptom = Callable[[Plan[C], Outputs], bool]


def list_no_models() -> Iterable[tuple[str, Callable[[Any], Outputs]]]:
    return ()


@dataclass(frozen=True)
class Part(Generic[C]):
    """The grader's data about one entry point of an exercise.

    ``models`` gives wrong formulas with their causes, the likelier first. ``rare``: causes that
    hold if the symptom holds for every failed case. ``traits``: causes that hold if exactly the
    cases with the trait fail. Both are tried before the causes that all exercises share.
    ``unwritten``: the cause per output, if no element of it was written; "not_written" for an
    output that is not listed. ``minor``: per kind of minor fault another cause, which holds if all
    failed cases have the trait. ``partials``: outputs of which each program writes one row.
    ``time`` times the returned launch of a plan on a GPU; it returns None for a plan that is not
    timed. ``counts`` are what a check counts of the learner's kernel: accesses and reductions in
    the case named ``counted_case``, registers and instructions for the launch ``compiled``.
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
    counts: tuple[Count, ...] = ()
    counted_case: str = ""
    compiled: Specialisation | None = None
