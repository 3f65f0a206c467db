"""Compare the buffers that came back with the float64 results: inputs and guards byte by byte,
outputs element by element."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from course_lib.grading.cases.plan import Plan
from course_lib.grading.judging.elements import Element, Elements, judge_elements
from course_lib.launching.faults import Fault, FaultKind, Group, Raised

_SHOWN = 5


@dataclass(frozen=True)
class Deviation:
    """The elements of one output of one case that are wrong in one way.

    ``kind`` says in which way, and ``count`` of the output's ``size`` elements are wrong in this
    way. ``where`` has their first indices. ``ratio`` is their largest error over the allowed one;
    None if that says nothing. ``got``, ``want`` and ``first_ratio`` belong to the first of them.
    """

    output: str
    kind: Element
    count: int
    size: int
    where: tuple[tuple[int, ...], ...]
    ratio: float | None
    got: float
    want: float
    first_ratio: float | None


@dataclass
class Judged:
    """One case after its run. ``outputs`` are float64, for the diagnosis. ``elements`` says which
    elements of each output are wrong. ``ratio`` is the largest error over the allowed one.
    ``is_shown`` is true for the case that the verdict shows."""

    plan: Plan
    ran: bool = True
    is_shown: bool = False
    ratio: float = 0.0
    deviations: list[Deviation] = field(default_factory=list)
    # tensor -> positions outside it that changed
    outside: dict[str, np.ndarray] = field(default_factory=dict)
    changed: dict[str, int] = field(default_factory=dict)  # input -> elements that changed
    outputs: dict[str, np.ndarray] = field(default_factory=dict)
    elements: dict[str, Elements] = field(default_factory=dict)
    raised: Raised | None = None
    fault: Fault | None = None

    @property
    def passed(self) -> bool:
        return self.right and not self.fault

    @property
    def right(self) -> bool:
        """True if nothing is wrong except, perhaps, a fault of :attr:`Group.MINOR`."""
        return self.ran and not (
            self.deviations
            or self.outside
            or self.changed
            or self.raised
            or (self.fault and not self.has_minor_fault)
        )

    @property
    def has_minor_fault(self) -> bool:
        """True if the fault is minor. Without outputs it never is: the case did not finish,
        whatever the child reports."""
        return (
            self.fault is not None and self.fault.kind.group is Group.MINOR and bool(self.outputs)
        )

    @property
    def wrong_outputs(self) -> list[str]:
        return list(dict.fromkeys(d.output for d in self.deviations))

    @property
    def kinds(self) -> set[Element]:
        """The ways in which elements of outputs are wrong."""
        return {d.kind for d in self.deviations}

    @property
    def shows_what_was_held(self) -> bool:
        """True if an output was read before it was written, and its poison, a NaN, is in a result
        where a number belongs."""
        return (self.fault is not None and self.fault.kind is FaultKind.UNWRITTEN) and any(
            d.output == self.fault.tensor and d.kind is Element.WRONG_KIND and np.isnan(d.got)
            for d in self.deviations
        )

    @property
    def changes_input(self) -> bool:
        """True if the code wrote to an input, also if it wrote the same bytes again."""
        return bool(self.changed) or (self.fault is not None and self.fault.kind is FaultKind.INPUT)


def judge(plan: Plan, data: bytes) -> Judged:
    """Judge one finished case from the bytes of its buffers."""
    result = Judged(plan)
    for tensor in plan.tensors:
        piece = data[tensor.offset : tensor.offset + tensor.nbytes]
        outside = tensor.find_changed_outside(piece)
        if outside.size:
            result.outside[tensor.name] = outside
        if tensor.scratch and tensor.name not in plan.expected:
            continue
        if not (tensor.is_output or tensor.scratch):
            if piece != tensor.initial_bytes() and not outside.size:
                result.changed[tensor.name] = int(
                    np.sum(
                        _view_bits(tensor.read(piece))
                        != _view_bits(tensor.read(tensor.initial_bytes()))
                    )
                )
            continue
        with np.errstate(invalid="ignore"):  # NumPy would warn of a signalling NaN that it converts
            actual = tensor.read(piece).astype(np.float64)
        unwritten = tensor.find_unwritten(piece)
        size = actual.size
        # only the rows of the sampled programs are judged; the others count as right
        if plan.sample:
            asked = plan.asked_rows
            size = actual[asked].size
            unwritten[~asked], actual[~asked] = False, plan.expected[tensor.name].values[~asked]
        _add_output(result, tensor.name, actual, unwritten, size)
    if plan.derive is not None and Element.UNWRITTEN not in result.kinds:
        for name, derived in plan.derive(result.outputs).items():
            _add_output(result, name, derived, False, derived.size)
    return result


def judge_case(plan: Plan, data: bytes | None, error: Raised | None) -> Judged:
    """Judge one case from the bytes of its buffers and the error that it raised; either may be
    missing."""
    if data is not None:
        judged = judge(plan, data)
        if error is not None:
            judged.fault = error.fault
        return judged
    if error is not None and error.fault is not None:
        return Judged(plan, fault=error.fault)
    return Judged(plan, ran=False, raised=error)


def forget_minor_fault(judged: Judged) -> None:
    """Remove a minor fault from a case that has other errors, unless the fault made a result wrong:
    an output was read too early."""
    if judged.has_minor_fault and not judged.shows_what_was_held:
        judged.fault = None


def _add_output(
    result: Judged, name: str, actual: np.ndarray, unwritten: np.ndarray | bool, size: int
) -> None:
    """Judge an output and add what is wrong with it to ``result``; ``size`` is how many of its
    elements are judged."""
    expected = result.plan.expected[name]
    result.outputs[name] = actual
    elements = result.elements[name] = judge_elements(actual, expected, unwritten)
    result.ratio = max(result.ratio, float(elements.ratio.max(initial=0.0)))
    for kind in Element:
        indices = np.argwhere(elements.kinds == kind)
        if kind is Element.RIGHT or not len(indices):
            continue
        first_index = tuple(indices[0])
        worst, of_first = None, None
        if kind is Element.OFF and not expected.whole:
            worst, of_first = float(elements.ratio.max()), float(elements.ratio[first_index])
        result.deviations.append(
            Deviation(
                name, kind, len(indices), size,
                tuple(tuple(int(i) for i in index) for index in indices[:_SHOWN]),
                worst, float(actual[first_index]), float(expected.values[first_index]), of_first,
            )
        )  # fmt: skip


def _view_bits(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array).view({2: np.uint16, 4: np.uint32}[array.itemsize])
