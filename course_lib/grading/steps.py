"""Check a step of a lesson: run the text of one cell on a few tries, in a process confined like
that of an exercise."""

from __future__ import annotations

import ast
import re
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

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
from course_lib.grading.execution.runner import ResourceLimits
from course_lib.grading.grade import grade_tries
from course_lib.grading.judging.causes import make_sentence
from course_lib.grading.judging.judge import Judged
from course_lib.grading.kind import find_kind, find_mode
from course_lib.grading.running import judge_run
from course_lib.grading.step_lines import find_own_place
from course_lib.grading.step_slips import KnownSlip, list_common_slips
from course_lib.grading.submission import places, reader
from course_lib.grading.submission.source import Kernels, Unreadable
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
class Task:
    """The task of a step: ``kind`` is "kernel", "torch" or "numpy"; ``unsolved`` is the cell as the
    course wrote it, and ``solved`` has the course's answer.

    ``given`` has the lines of the cell that the learner need not write. The verdict asks
    ``question`` if the values are wrong, no known slip explains them, and the cell still has all
    lines of ``given``.
    """

    id: str
    kind: str
    entry_point: str
    unsolved: str
    solved: str
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
    verdict, judged = grade_tries(step, text, kernels, plans, mode, _limit_case(mode))
    if verdict.status != FAIL or verdict.cause == "would_not_compile":
        return verdict
    return _explain_failure(verdict, judged, task, text, kernels, plans, mode)


def _explain_failure(
    verdict: Verdict,
    judged: list[Judged],
    task: Task,
    text: str,
    kernels: Kernels,
    plans: list[Plan],
    mode: str,
) -> Verdict:
    """Return the verdict with the line and the question of a known slip that does the same; of the
    step, if there is none."""
    slip = _find_slip(task, kernels, judged, plans, mode, _limit_case(mode))
    ran_into = any(j.fault or j.raised for j in judged)
    slips = [
        known
        for known in (*task.slips, *list_common_slips(task.solved, task.kind))
        if slip is not None and known.headline == slip.headline
    ]
    place = find_own_place(
        CELL, text, verdict.place, slips, given=task.given, solved=task.solved, is_seen=ran_into
    )
    verdict = replace(verdict, place=place)
    if slip is not None:
        words = verdict.first.words if verdict.first else ""
        message = join_sentences(slip.headline, words, slip.question)
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
    task: Task,
    kernels: Kernels,
    judged: list[Judged],
    plans: list[Plan],
    mode: str,
    limits: ResourceLimits,
) -> KnownSlip | None:
    """Return the known slip whose results are the same as those of the learner's code in every try;
    None if there is none. Those of the step's author are asked first."""
    if interpreted := find_mode(mode).interpreted_by:
        # The interpreter compiles no slip, and what a masked lane holds is always the same there.
        mode, limits = interpreted, _limit_case(interpreted)
        judged = judge_run(plans, runner.run(kernels, plans, mode, limits))
        if all(j.passed for j in judged):
            return None
    # The words of an error, of a race or of an access outside a tensor fit many mistakes.
    has_results = all(j.ran and not j.fault and not j.outside for j in judged)
    for slips in (task.slips, list_common_slips(task.solved, task.kind) if has_results else ()):
        slipped = _run_slips(task, slips, plans, mode, limits)
        for slip in slips:
            if slipped[slip.cell] and _is_same(judged, slipped[slip.cell]):
                return slip
    return None


def _run_slips(
    task: Task, slips: tuple[KnownSlip, ...], plans: list[Plan], mode: str, limits: ResourceLimits
) -> dict[str, list[Judged]]:
    """Return the judged tries of each cell with a slip; no tries for one that does not finish.
    They are always the same, so they are run once per process, all in one."""
    results = _slipped.setdefault((mode, task.id), {})
    cells = [cell for cell in dict.fromkeys(slip.cell for slip in slips) if cell not in results]
    if not cells:
        return results
    names = [f"{task.entry_point}{_NUMBER.format(n)}" for n in range(len(cells))]
    text = "\n".join(_number_functions(cell, n) for n, cell in enumerate(cells))
    exercise = replace(_make_exercise(task), entry_points=tuple(names))
    kernels = reader.read(
        exercise, text, CELL, unsolved="", given=find_kind(task.kind).step_imports
    )
    assert kernels is not None, f"step {task.id}: a slip is no empty cell"
    numbered = [replace(plan, entry_point=name) for name in names for plan in plans]
    judged = _judge_to_the_end(kernels, numbered, mode, limits)
    for n, cell in enumerate(cells):
        tries = judged[n * len(plans) : (n + 1) * len(plans)]
        results[cell] = tries if all(j.ran or j.raised for j in tries) else []
    return results


_slipped: dict[tuple[str, str], dict[str, list[Judged]]] = {}
_NUMBER = "__slip{}"  # ends the names of a slip's functions, in a text with many slips


def _number_functions(cell: str, number: int) -> str:
    """Return the functions of the cell with a number in their names."""
    tree = ast.parse(cell)
    tree.body = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            node.name += _NUMBER.format(number)
        elif isinstance(node, ast.Name) and node.id in functions:
            node.id += _NUMBER.format(number)
    return ast.unparse(tree)


def _judge_to_the_end(
    kernels: Kernels, plans: list[Plan], mode: str, limits: ResourceLimits
) -> list[Judged]:
    """Judge all plans. One that does not finish has not run, and the next ones are run after it."""
    judged: list[Judged] = []
    while len(judged) < len(plans):
        rest = plans[len(judged) :]
        run = runner.run(kernels, rest, mode, limits)
        finished = len(rest) if run.case is None else run.case
        judged += judge_run(rest, run)[:finished]
        judged += [Judged(plan, ran=False) for plan in rest[finished : finished + 1]]
    return judged


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
    fault = re.sub(_PLACES, "", judged.fault.words) if judged.fault else ""
    raised = judged.raised and (judged.raised.type, judged.raised.text)
    return judged.ran, raised, fault, list(judged.outside), list(judged.changed)


# the line numbers in the words of a fault, and the numbers of slips
_PLACES = re.compile(r"\bline \d+|第 \d+ 行|" + _NUMBER.format(r"\d+"))


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


def _limit_case(mode: str) -> ResourceLimits:
    limits = find_mode(mode).limits
    return limits if find_mode(mode).compiles else replace(limits, case=_CASE_SECONDS)


def _make_exercise(task: Task) -> Exercise:
    return Exercise(
        id=task.id, lesson=task.id[:2], file=CELL, title="", objective="", kind=task.kind,
        entry_points=(task.entry_point,),
        difficulty=1, minutes=2, needs_gpu=False, prerequisites=(), hints=(), stretch="",
        debrief="",
    )  # fmt: skip
