"""Check a step of a lesson: run the text of one cell on a few tries, in a process confined like
that of an exercise."""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from course_lib import compiler
from course_lib.base import background
from course_lib.base.errors import CourseError, EnvironmentFault
from course_lib.base.installation import environment_fault
from course_lib.base.translation import gettext as _
from course_lib.base.translation import join_sentences
from course_lib.catalog import Exercise
from course_lib.grading import warming
from course_lib.grading.cases.buffers import Tensor, compute_strides, size_guard
from course_lib.grading.cases.case import Case
from course_lib.grading.cases.plan import Expected, Plan
from course_lib.grading.check import report_grader_fault
from course_lib.grading.execution import runner
from course_lib.grading.grade import grade_tries
from course_lib.grading.judging.causes import make_sentence
from course_lib.grading.judging.judge import Judged
from course_lib.grading.kind import find_kind, find_mode
from course_lib.grading.running import judge_run
from course_lib.grading.submission import places, reader
from course_lib.grading.submission.source import Unreadable
from course_lib.grading.verdict import ERROR, FAIL, NOT_ATTEMPTED, Verdict

CELL = "this cell"
_CASE_SECONDS = 5.0  # far more than a try takes
# difference between two right orders of operations, as a part of the largest number
_ROUNDING = {"fp16": 2.0**-10, "bf16": 2.0**-7}
# relative difference between two ways to compute the same wrong number
_SAME = 1e-4
# Causes whose questions do not fit a step: a step has no docstring, and need not add numbers up in
# an order.
_WITHOUT_QUESTION = ("wrong_values", "wrong_return", "order_dependent")


@dataclass(frozen=True)
class KnownSlip:
    """A mistake that the author of the step foresaw: the whole cell with the mistake, and its cause
    as a verdict names it."""

    cell: str
    cause: str
    headline: str
    question: str


@dataclass(frozen=True)
class Task:
    """The task of a step: ``kind`` is "kernel", "torch" or "numpy"; ``unsolved`` is the cell as the
    course wrote it.

    ``given`` has the lines of the cell that the learner need not write. The verdict asks
    ``question`` if the values are wrong, no known slip explains them, and the cell still has all
    lines of ``given``.
    """

    id: str
    kind: str
    entry_point: str
    unsolved: str
    given: tuple[str, ...]
    question: str
    slips: tuple[KnownSlip, ...]


@dataclass(frozen=True)
class TryCase(Case):
    """A try, named by the words of its author. ``asked`` is True if the step's question helps when
    this try fails."""

    asked: bool = True

    def describe(self) -> str:
        return self.why


def make_try(
    case: TryCase, entry_point: str, arguments: Mapping[str, Tensor | int | float],
    expected: Mapping[str, np.ndarray], within: float,
    *, grid: tuple[int, ...] = (), constexprs: Mapping[str, int] | None = None, orders: int = 0,
) -> Plan:  # fmt: skip
    """Make the plan of a try.

    Args:
        arguments: tensors and numbers by name, in the order of the call.
        expected: what the outputs have to hold, in float64. One that is no argument is returned, in
            any dtype of real numbers.
        within: the allowed error, as a part of the largest value of an output.
        grid: the kernel's grid; empty for a function.
        orders: the number of orders that are tried, for programs that share memory.
    """
    constants = dict(constexprs or {})
    room = max([0, *(size for size in constants.values() if isinstance(size, int))])
    tensors = {name: value for name, value in arguments.items() if isinstance(value, Tensor)}
    for name, values in expected.items():
        tensors.setdefault(
            name, Tensor(name, "fp32", values.shape, compute_strides(values.shape), any_dtype=True)
        )
    placed = tuple(
        replace(tensor, guard=size_guard(tensor.elements + room)) for tensor in tensors.values()
    )
    wanted = {
        name: _expect(values, max(within, _ROUNDING.get(tensors[name].dtype, 0.0)))
        for name, values in expected.items()
    }
    ordered = tuple(
        name if isinstance(value, Tensor) else value for name, value in arguments.items()
    )
    return Plan(case, entry_point, grid, placed, ordered, constants, wanted, interleavings=orders)


def _expect(values: np.ndarray, within: float) -> Expected:
    largest = float(np.abs(values[np.isfinite(values)]).max(initial=0.0)) or 1.0
    return Expected(values, np.full(values.shape, within * largest))


def check_step(task: Task, text: str, plans: list[Plan], mode: str) -> Verdict:
    """Return the verdict on the ``text`` of a cell. No text makes this function raise.

    Args:
        plans: the tries.
        mode: "cpu" (interpreter) or "gpu" (compiled), for kernels; functions run on the CPU.

    Raises: EnvironmentFault if the machine or the installation prevents the check. There is no
    verdict then.
    """
    started = time.monotonic()
    mode = find_kind(task.kind).choose_mode(mode)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            verdict = _check(task, text, plans, mode)
    except Exception as error:
        if (fault := environment_fault(error)) is not None:
            raise EnvironmentFault(
                _("step {id} was not checked: {fault}").format(id=task.id, fault=fault)
            ) from error
        if isinstance(error, CourseError):
            raise
        verdict = report_grader_fault(task.id, mode, error, hidden=False)
    return verdict.timed(time.monotonic() - started)


def warm(kind: str, mode: str) -> None:
    """Start the processes that a check of this kind needs, so that the first check does not wait
    for them.

    Raises: EnvironmentFault or WorkerFailure if one of them does not start.
    """
    mode = find_kind(kind).choose_mode(mode)
    running = background.start(lambda: runner.warm(mode))
    reader.warm()
    if find_mode(mode).asks_compiler:
        compiler.warm()
    running.result()


def _check(task: Task, text: str, plans: list[Plan], mode: str) -> Verdict:
    warming.prepare(mode)
    step = _make_exercise(task)
    try:
        kernels = reader.read(
            step, text, CELL, unsolved=task.unsolved, given=find_kind(task.kind).step_imports
        )
    except Unreadable as unreadable:
        return _write_unreadable(task, text, unreadable, mode)
    if kernels is None:
        return Verdict(
            task.id,
            NOT_ATTEMPTED,
            "not_attempted",
            _("The cell is as the course wrote it."),
            mode=mode,
        )
    limits = find_mode(mode).limits
    limits = limits if find_mode(mode).compiles else replace(limits, case=_CASE_SECONDS)
    verdict, judged = grade_tries(step, text, kernels, plans, mode, limits)
    if verdict.status != FAIL:
        return verdict
    if slip := _find_slip(task, judged, plans, mode, limits):
        said = verdict.first.words if verdict.first else ""
        message = join_sentences(slip.headline, said, slip.question)
        return replace(
            verdict,
            cause=slip.cause,
            headline=slip.headline,
            question=slip.question,
            message=message,
        )
    if verdict.cause not in _WITHOUT_QUESTION:
        return verdict
    fits = (
        verdict.cause != "wrong_return"
        and _keeps_lines(task, text)
        and all(j.plan.case.asked for j in judged if not j.passed)
    )
    return replace(verdict, question=task.question if fits else "")


def _find_slip(
    task: Task, judged: list[Judged], plans: list[Plan], mode: str, limits: runner.ResourceLimits
) -> KnownSlip | None:
    """Return the known slip whose results are the same as those of the learner's code in every try;
    None if there is none."""
    return next(
        (
            slip
            for slip in task.slips
            if _is_same(judged, _run_slip(task, slip, plans, mode, limits))
        ),
        None,
    )


def _run_slip(
    task: Task, slip: KnownSlip, plans: list[Plan], mode: str, limits: runner.ResourceLimits
) -> list[Judged]:
    """Return the judged tries of the cell with the slip. They are always the same, so the cell is
    run once per process."""
    key = (mode, task.id, slip.cell)
    if key not in _slipped:
        kernels = reader.read(
            _make_exercise(task),
            slip.cell,
            CELL,
            unsolved="",
            given=find_kind(task.kind).step_imports,
        )
        assert kernels is not None, f"step {task.id}: a slip is no empty cell"
        run = runner.run(kernels, plans, mode, limits)
        _slipped[key] = judge_run(plans, run)
    return _slipped[key]


_slipped: dict[tuple[str, str, str], list[Judged]] = {}


def _is_same(judged: list[Judged], slipped: list[Judged]) -> bool:
    """Return True if every try left the same numbers except for rounding, did the same to memory
    and raised the same error."""
    for mine, known in zip(judged, slipped, strict=True):
        if mine.outputs.keys() != known.outputs.keys() or _describe_rest(mine) != _describe_rest(
            known
        ):
            return False
        for name, values in known.outputs.items():
            allowed = known.plan.expected[name].allowed
            if not np.isclose(
                mine.outputs[name], values, rtol=_SAME, atol=allowed, equal_nan=True
            ).all():
                return False
    return True


def _describe_rest(judged: Judged) -> tuple:
    """Return all results of a try except its numbers, without line numbers."""
    fault = re.sub(r"\bline \d+|第 \d+ 行", "", judged.fault.words) if judged.fault else ""
    raised = judged.raised and (judged.raised.type, judged.raised.text)
    return judged.ran, raised, fault, list(judged.outside), list(judged.changed)


def _keeps_lines(task: Task, text: str) -> bool:
    """Return True if the cell still has all lines that the course wrote. The mistake is then in the
    learner's own lines."""
    lines = {line.strip() for line in text.splitlines()}
    return {line.strip() for line in task.given} - {""} <= lines


def _write_unreadable(task: Task, text: str, unreadable: Unreadable, mode: str) -> Verdict:
    where = unreadable.span and places.make_place(CELL, text, unreadable.span)
    words = str(unreadable)
    if unreadable.cause in ("no_kernel", "no_function") and unreadable.span is None:
        words = _(
            "{cell} has no function named `{name}`, and the check calls it by that name. Give it"
            " back."
        )
        if find_kind(task.kind).is_of_kernels:
            words = _(
                "{cell} has no kernel named `{name}`, and the check calls it by that name. Give it"
                " back."
            )
        words = words.format(cell=_("this cell"), name=task.entry_point)
    headline = make_sentence(unreadable.what if where else words)
    return Verdict(
        task.id, ERROR, unreadable.cause, words, mode=mode, headline=headline, place=where
    )


def _make_exercise(task: Task) -> Exercise:
    return Exercise(
        id=task.id, lesson=task.id[:2], file=CELL, title="", objective="", kind=task.kind,
        entry_points=(task.entry_point,),
        difficulty=1, minutes=2, needs_gpu=False, prerequisites=(), hints=(), stretch="",
        debrief="",
    )  # fmt: skip
