"""``step``: the last line of a cell in which the learner repairs, writes or chooses something. It
checks that cell at once.

The cell's text is read and run in confined processes, like an exercise's file. The outcome is plain
HTML, which needs no kernel when the notebook is opened again. The steps are defined in
``lessonNN/steps.py``, their answers in the lessons' scripts.
"""

from __future__ import annotations

import ast
import html
import linecache
import sys
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from IPython.core.getipython import get_ipython
from IPython.display import display

import course_lib
from course_lib.base import background, runtime
from course_lib.base.errors import CourseError
from course_lib.base.installation import name_command
from course_lib.base.text import make_visible_line, shorten
from course_lib.base.translation import gettext as _
from course_lib.base.translation import join_sentences
from course_lib.base.words import format_count, format_number
from course_lib.catalog import step_cells
from course_lib.grading.public import (
    FAIL,
    GRADER_FAULT,
    NOT_ATTEMPTED,
    PASS,
    SIGNS,
    KnownSlip,
    Plan,
    Task,
    Tensor,
    TryCase,
    Verdict,
    check_step,
    compute_strides,
    make_sentence,
    make_try,
    quote_line,
    warm_checks,
)
from course_lib.learner import progress
from course_lib.lessons import steps
from course_lib.lessons.panel_page import write_box, write_inline
from course_lib.lessons.steps.step import In, Out, Step, Try, WrongForm
from course_lib.lessons.stylesheets import BOX_STYLE

_LOOKS = {PASS: "good", NOT_ATTEMPTED: "open"}
_SHOW_ANSWER_AFTER = 2  # failed runs after which the answer is offered
_VALUE = 120  # characters of a value that are shown

_failed: Counter[str] = Counter()  # failed runs of each step in this session
_passed: dict[str, bool] = {}  # did the step's last run pass?
_warmed: set[str] = set()  # lessons whose checking processes were started


@dataclass(frozen=True)
class StepOutcome:
    """The output of a step, in HTML and in text."""

    passed: bool
    page: str
    text: str

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/html": self.page, "text/plain": self.text}


def step(step_id: str) -> None:
    """Check the cell that contains this call, and show the outcome. Whatever the learner writes, it
    does not raise.

    Raises: CourseError if there is no such step, or this is not a notebook.
    """
    lesson_step = steps.find(step_id)
    frame = sys._getframe(1)
    text = _read_cell(frame.f_code.co_filename)
    if not text:
        raise CourseError(
            _(
                "step({id!r}) checks the cell of a notebook in which it stands, and this is no"
                " notebook. `{command}` opens the lessons."
            ).format(id=step_id, command=name_command("lab"))
        )
    display(check_cell(lesson_step, text, frame.f_globals))


def show_unsolved(step_id: str) -> StepOutcome:
    """Return the output of a step whose cell is as the course wrote it.

    Raises: CourseError if there is no such step.
    """
    lesson_step = steps.find(step_id)
    return _write(lesson_step, Verdict(step_id, NOT_ATTEMPTED, "not_attempted", ""), "")


def _read_cell(file: str) -> str:
    """Return the text of the running cell; ``file`` is the file name of its code. Return "" outside
    of a notebook."""
    shell = get_ipython()
    text = "".join(linecache.getlines(file))
    if shell is None or shell.history_manager is None or not text:
        return ""
    # IPython drops empty lines at the top before it runs a cell. Prefer the typed text: its line
    # numbers are those that the learner sees.
    typed = shell.history_manager.input_hist_raw[-1]
    return typed if typed.strip().splitlines() == text.strip().splitlines() else text


def check_cell(lesson_step: Step, text: str, names: dict[str, Any]) -> StepOutcome:
    """Check a cell's ``text``. ``names`` are the notebook's variables, for steps that ask for a
    value."""
    try:
        verdict = (
            _check_value(lesson_step, text, names)
            if lesson_step.kind == "value"
            else _check_code(lesson_step, text)
        )
    except CourseError as problem:  # a problem of the machine or the installation
        return _write_unchecked(lesson_step, str(problem))
    if verdict.status == GRADER_FAULT:
        return _write_unchecked(lesson_step, verdict.message, verdict.printed)
    _passed[lesson_step.id] = verdict.passed
    problem_note = ""
    if verdict.passed:
        try:
            progress.note_step(lesson_step.id, _failed[lesson_step.id] + 1)
        except OSError as problem:
            problem_note = _("It could not be kept in your progress ({problem}).").format(
                problem=problem
            )
    elif verdict.status != NOT_ATTEMPTED:
        _failed[lesson_step.id] += 1
    return _write(lesson_step, verdict, problem_note)


def assert_passed(step_id: str) -> None:
    """Assert, in a lesson's check cells, that the last run of the step in this session passed.

    Raises: AssertionError if it did not.
    """
    assert _passed.get(step_id), f"step {step_id}: the course's own answer does not pass"


def warm_lesson(lesson: str) -> None:
    """Start the processes that check a lesson's steps in the background, so that the first check is
    fast. Do nothing outside of a notebook."""
    if lesson in _warmed or not runtime.in_notebook():
        return
    _warmed.add(lesson)
    for kind in dict.fromkeys(
        lesson_step.kind
        for lesson_step in steps.read_lesson(lesson).values()
        if lesson_step.kind != "value"
    ):
        background.start(lambda kind=kind: warm_checks(kind, course_lib.MODE))


def make_plan(lesson_step: Step, attempt: Try) -> Plan:
    """Convert a try to the grader's form."""
    arguments, is_function = attempt.arguments, isinstance(attempt.arguments, tuple)
    if isinstance(arguments, tuple):
        parameters = step_cells.list_parameters(lesson_step.id, lesson_step.entry_point)
        names = [
            *parameters,
            *(f"argument {number + 1}" for number in range(len(parameters), len(arguments))),
        ]
        arguments = dict(zip(names, arguments, strict=False))
    return make_try(
        TryCase(attempt.what, 1, 1, 0, attempt.what, asked=attempt.asked), lesson_step.entry_point,
        {name: _place(name, argument) if isinstance(argument, In | Out) else argument for name,
            argument in arguments.items()},
        attempt.outputs, attempt.within, grid=() if is_function else attempt.grid,
        constexprs=attempt.constexprs, orders=attempt.orders,
    )  # fmt: skip


def _place(name: str, argument: In | Out) -> Tensor:
    strides = (argument.stride, 1) if argument.stride else compute_strides(argument.shape)
    if isinstance(argument, In):
        return Tensor(name, argument.dtype, argument.shape, strides, argument.numbers)
    start = None if argument.start is None else np.full(argument.shape, argument.start)
    return Tensor(name, argument.dtype, argument.shape, strides, start, scratch=start is not None)


def _check_code(lesson_step: Step, text: str) -> Verdict:
    solved, given_names = (
        step_cells.make_solved(lesson_step.id),
        step_cells.list_given(lesson_step.id),
    )
    # A slip without a cause is left out: the run itself shows what is wrong, such as an address
    # outside of a tensor or a deadlock.
    slips = tuple(
        KnownSlip(solved.replace(slip.right, slip.wrong), *slip.word_for(lesson_step.kind))
        for slip in lesson_step.slips
        if slip.cause
    )
    unsolved, question = (
        step_cells.make_unsolved(lesson_step.id),
        make_visible_line(lesson_step.question),
    )
    task = Task(
        lesson_step.id, lesson_step.kind, lesson_step.entry_point, unsolved, solved, given_names,
        question, slips,
    )  # fmt: skip
    return check_step(
        task,
        text,
        [make_plan(lesson_step, attempt) for attempt in lesson_step.tries],
        course_lib.MODE,
    )


def _check_value(lesson_step: Step, text: str, names: dict[str, Any]) -> Verdict:
    """Judge the value that the cell assigned. This happens in the notebook's process, where the
    cell ran."""
    name = lesson_step.entry_point
    if _is_unchanged(text, step_cells.make_unsolved(lesson_step.id), name):
        return Verdict(
            lesson_step.id,
            NOT_ATTEMPTED,
            "not_attempted",
            _("The cell is as the course wrote it."),
            mode="value",
        )
    if name not in names or not any(_binds(node, name) for node in ast.parse(text).body):
        return _fail_value(
            lesson_step,
            _("This cell gives `{name}` no value. The check looks at it by that name.").format(
                name=name
            ),
            "",
        )
    assert lesson_step.accepts is not None  # Step.__post_init__ checks this
    value_text = _describe_value(name, names[name])
    try:
        why_not = lesson_step.accepts(names[name])
    except WrongForm as unfit:
        return _fail_value(lesson_step, join_sentences(value_text, make_sentence(str(unfit))), "")
    # `accepts` expects a number, and the value may be a text, a list or a tensor
    except Exception as unfit:
        kind = type(names[name]).__name__
        return _fail_value(
            lesson_step,
            _("{shown} This step cannot use a value of type `{kind}`: {error}").format(
                shown=value_text, kind=kind, error=f"{type(unfit).__name__}: {unfit}"
            ),
            "",
        )
    if why_not:
        return _fail_value(
            lesson_step,
            join_sentences(value_text, make_sentence(why_not)),
            "" if why_not.endswith(("?", "？")) else lesson_step.question,
        )
    return Verdict(
        lesson_step.id, PASS, "none", _("The value is right."), mode="value",
        headline=lesson_step.write_debrief(names[name]),
    )  # fmt: skip


def _fail_value(lesson_step: Step, words: str, question: str) -> Verdict:
    return Verdict(
        lesson_step.id, FAIL, "wrong_values", words, mode="value", headline=words, question=question
    )


def _describe_value(name: str, value: Any) -> str:
    """Say what the variable holds; of a tensor its layout, because its numbers fill lines."""
    strides = getattr(value, "stride", None)
    if callable(strides) and hasattr(value, "shape"):
        return _("`{name}` has the shape {shape} and the strides {strides}.").format(
            name=name, shape=tuple(value.shape), strides=strides()
        )
    return _("`{name}` is `{value}`.").format(name=name, value=_show(value))


def _show(value: Any) -> str:
    try:
        return shorten(make_visible_line(repr(value)), _VALUE)
    except Exception as broken:
        return _("a {kind} whose repr raises {error}").format(
            kind=type(value).__name__, error=type(broken).__name__
        )


def _is_unchanged(text: str, unsolved: str, name: str) -> bool:
    """Return whether all of the course's statements are there and no other assigns ``name``.
    Comments and layout do not count."""
    course_statements = {ast.dump(node) for node in ast.parse(unsolved).body}
    statements = {ast.dump(node): node for node in ast.parse(text).body}
    return course_statements <= statements.keys() and not any(
        _binds(statements[dump], name) for dump in statements.keys() - course_statements
    )


def _binds(statement: ast.stmt, name: str) -> bool:
    """Return whether the statement assigns ``name``."""
    return any(
        isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id == name
        for node in ast.walk(statement)
    )


def _write(lesson_step: Step, verdict: Verdict, problem_note: str) -> StepOutcome:
    words = {PASS: _("passed"), NOT_ATTEMPTED: _("not yet"), FAIL: _("not right yet")}.get(
        verdict.status, _("it does not run")
    )
    headline = _write_headline(lesson_step, verdict.status, words)
    if verdict.passed:
        debrief = verdict.headline or lesson_step.debrief
        parts, lines = [f"<p>{write_inline(debrief)}</p>"], [debrief]
    elif verdict.status == NOT_ATTEMPTED:
        mark = "REPAIR" if "# REPAIR" in step_cells.make_unsolved(lesson_step.id) else "YOUR CODE"
        instruction = _(
            "The part marked {mark} is as the course wrote it. Change it, then run this cell: it is"
            " checked at once."
        ).format(mark=mark)
        parts, lines = [f"<p>{instruction}</p>"], [instruction]
    else:
        parts, lines = _write_failure(lesson_step, verdict)
    if problem_note:
        parts.append(f"<p>{html.escape(problem_note)}</p>")
        lines.append(problem_note)
    if verdict.passed:
        parts.append(_write_answer(lesson_step, _("One answer")))
    elif _failed[lesson_step.id] >= _SHOW_ANSWER_AFTER and verdict.status != NOT_ATTEMPTED:
        parts.append(_write_answer(lesson_step, _("Show one answer")))
    return _make_outcome(
        headline, parts, lines, _LOOKS.get(verdict.status, "bad"), passed=verdict.passed
    )


def _write_headline(lesson_step: Step, status: str, words: str) -> str:
    step_name = _("Step {id}").format(id=lesson_step.id)
    return f"{SIGNS[status]} {_('{name}: {what}').format(name=step_name, what=words)}"


def _write_failure(lesson_step: Step, verdict: Verdict) -> tuple[list[str], list[str]]:
    parts = [f"<p><b>{write_inline(verdict.headline)}</b></p>"]
    lines = [verdict.headline]
    if (first_failure := verdict.first) is not None:
        if first_failure.case:
            parts.append(
                f"<div>{_('Tried: {what}.').format(what=write_inline(first_failure.case))}</div>"
            )
            lines.append(_("Tried: {what}.").format(what=first_failure.case))
        if first_failure.element:
            numbers = {
                _("expected {element}").format(element=first_failure.element): first_failure.want,
                _("got"): first_failure.got,
            }
            rows = "".join(
                f"<tr><td>{html.escape(name)}</td><td><code>{_show_number(value)}</code></td></tr>"
                for name, value in numbers.items()
            )
            parts.append(f"<table>{rows}</table>")
            lines += [
                _("{name}: {what}").format(name=name, what=_show_number(value))
                for name, value in numbers.items()
            ]
        words = (
            _count_wrong(first_failure.element, first_failure.wrong, first_failure.size)
            if first_failure.element
            else _make_sentence(first_failure.words)
        )
        if words:
            parts.append(f"<p>{write_inline(words)}</p>")
            lines.append(words)
    if verdict.place is not None:
        quotation = quote_line(verdict.place)
        marked = html.escape(quotation.source[quotation.start : quotation.end])
        code = f"{html.escape(quotation.source[: quotation.start])}<u>{marked}</u>{html.escape(quotation.source[quotation.end :])}"  # noqa: E501
        below = (
            f"{quotation.below}{quotation.carets} {quotation.label}".rstrip()
            if quotation.carets
            else ""
        )
        elsewhere = bool(verdict.place.label)
        where = _("The error shows in line {line}:") if elsewhere else _("Line {line}:")
        on_page = (
            _("The error shows in line {line} of this cell:")
            if elsewhere
            else _("Line {line} of this cell:")
        )
        where, on_page = (words.format(line=verdict.place.line) for words in (where, on_page))
        lines += [where, f"{quotation.gutter}{quotation.source}", *([below] if below else [])]
        parts.append(
            f"<div>{on_page}</div><pre>{quotation.gutter}{code}\n{html.escape(below)}</pre>"
        )
    if verdict.question:
        parts.append(f"<p>{write_inline(verdict.question)}</p>")
        lines.append(verdict.question)
    if verdict.printed:
        parts.append(
            f"<details><summary>{_('What it printed in the check')}</summary><pre>{html.escape(verdict.printed)}</pre></details>"  # noqa: E501
        )
    return parts, lines


def _make_sentence(words: str) -> str:
    return make_sentence(words) if words else ""


def _show_number(value: float | None) -> str:
    return "" if value is None else format_number(value, 6)


def _count_wrong(element: str, wrong: int, size: int) -> str:
    """Write "3 of 5 elements of `y_ptr` are wrong."; return "" if there is only one element."""
    if size == 1:
        return ""
    words = (
        _("{wrong} of {size} elements of `{name}` is wrong.")
        if wrong == 1
        else _("{wrong} of {size} elements of `{name}` are wrong.")
    )
    return words.format(wrong=wrong, size=size, name=element.split("[")[0])


def _write_answer(lesson_step: Step, title: str) -> str:
    code = html.escape(step_cells.read_answer(lesson_step.id))
    return f"<details><summary>{title}</summary><pre>{code}</pre></details>"


def _write_unchecked(lesson_step: Step, words: str, printed: str = "") -> StepOutcome:
    """Write the outcome of a step that could not be checked. It counts neither as passed nor as
    failed."""
    headline = _write_headline(lesson_step, GRADER_FAULT, _("not checked"))
    parts = [
        f"<p>{write_inline(words)}</p>",
        f"<pre>{html.escape(printed)}</pre>" if printed else "",
    ]
    return _make_outcome(headline, parts, [words], "open", passed=False)


def _make_outcome(
    headline: str, parts: list[str], lines: list[str], look: str, *, passed: bool
) -> StepOutcome:
    box = write_box(f'<b class="course-status">{html.escape(headline)}</b>{"".join(parts)}', look)
    page = f'{BOX_STYLE}<div class="course-exercise">{box}</div>'
    return StepOutcome(passed, page, "\n".join([headline, *(line for line in lines if line)]))


def count_passed(lesson: str) -> str:
    """Write "2 of 4 steps passed"; return "" for a lesson without steps."""
    lesson_steps = steps.read_lesson(lesson)
    passed = progress.read_steps().keys() & lesson_steps.keys()
    return (
        _("{passed} of {steps} passed").format(
            passed=len(passed),
            steps=format_count(len(lesson_steps), "step"),
            step_count=len(lesson_steps),
        )
        if lesson_steps
        else ""
    )
