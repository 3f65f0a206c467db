"""Run the stages of a check: read the file, run its code on every case, judge, write the verdict,
and check a pass a second time."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path

from course_lib.base import paths
from course_lib.base import runtime as course_runtime
from course_lib.base.text import make_visible_line
from course_lib.base.translation import gettext as _
from course_lib.base.translation import join_sentences
from course_lib.catalog import Exercise, texts
from course_lib.compiler import CompileReport
from course_lib.exercises import find_parts
from course_lib.grading import counting
from course_lib.grading.cases.case import Case
from course_lib.grading.cases.hidden import Secret
from course_lib.grading.cases.plan import Part, Plan
from course_lib.grading.execution import runner
from course_lib.grading.judging.causes import make_sentence
from course_lib.grading.judging.compiled import Compilation, CompilerFailure, start_report
from course_lib.grading.judging.judge import Judged
from course_lib.grading.kind import find_kind, find_mode
from course_lib.grading.plans import describe_left_out, make_plans, make_second_plans
from course_lib.grading.running import (
    FirstFailure,
    Running,
    forget_unwritten,
    judge_run,
    judge_shuffled,
)
from course_lib.grading.smaller import SmallCases
from course_lib.grading.submission import places, reader, source
from course_lib.grading.submission.source import Kernels, Unreadable
from course_lib.grading.verdict import ERROR, NOT_ATTEMPTED, Oddity, Verdict
from course_lib.grading.writer import VerdictWriter
from course_lib.tuning.clock import NoRoom


def grade(
    exercise: Exercise,
    path: Path,
    mode: str,
    seed: int,
    secret: Secret | None,
    limits: runner.ResourceLimits | None,
    tell_first_failure: Callable[[str], None] | None = None,
) -> tuple[Verdict, list[Judged]]:
    """Return the verdict on the file at ``path``, and the judged cases, or no cases if nothing was
    run.

    If the verdict shows a case that is none of the exercise's, a smaller one or one of the second
    run, it is the last. With a secret, ``tell_first_failure`` is not called and nothing is timed: a
    grade must not depend on the machine.

    Raises: EnvironmentFault or OSError if this machine cannot run the check. Any other exception is
    a bug in the grader.
    """
    text, name = "", make_visible_line(path.name)
    try:
        text = source.read_text(
            path, _describe_reset(exercise) if texts.is_learners_file(exercise, path) else ""
        )
        kernels = reader.read(exercise, text, name)
    except Unreadable as unreadable:
        return _write_unreadable(exercise, path, text, unreadable, mode), []
    if kernels is None:
        return _write_not_attempted(exercise, path, mode), []
    plans = make_plans(exercise, seed, secret)
    hidden = secret is not None
    if not hidden:
        plans = counting.mark_counted(exercise, plans)
    running = Running(kernels, mode, limits, len(places.split_lines(text)) if hidden else None)
    compilation = Compilation(kernels, plans, name) if find_mode(mode).asks_compiler else None
    # A person who is told of the first failure waits for the verdict.
    reports = {}
    if tell_first_failure is not None:
        if compilation:
            compilation.ask()
        if not hidden:
            reports = _start_reports(kernels, exercise, mode, name)
    tell = None if hidden else tell_first_failure
    run, judged, unchecked = _judge_plans(exercise, running, plans, tell, compilation)
    # No smaller case is shown with hidden cases: which one is found depends on them, and could tell
    # the learner about them.
    search = None if hidden else SmallCases(kernels, exercise, mode, limits)
    writer = VerdictWriter(
        exercise, paths.shown(path), text, judged, run, mode, hidden, search=search
    )
    verdict = writer.write()
    others = [] if writer.smaller is None else [writer.smaller]
    if verdict.passed:
        left_out = describe_left_out(exercise, plans)
        message = join_sentences(verdict.message, unchecked, left_out)
        verdict = replace(verdict, message=message)
        verdict, others = _look_again(
            verdict, running, exercise, plans, secret, writer, compilation
        )
    verdict = _note_oddities(verdict, kernels, exercise)
    if not hidden:
        compiled = {entry_point: coming.result() for entry_point, coming in reports.items()}
        counts = counting.list_counts(exercise, plans, run.counts, compiled)
        verdict = replace(verdict, counts=counts)
    return verdict, [*judged, *others]


def _judge_plans(
    exercise: Exercise,
    running: Running,
    plans: list[Plan],
    tell_first_failure: Callable[[str], None] | None,
    compilation: Compilation | None,
) -> tuple[runner.Run, list[Judged], str]:
    """Run and judge every case; a compilation of what does not pass is stopped."""
    take = None
    if tell_first_failure is not None:
        take = FirstFailure(plans, tell_first_failure, compilation).take
    shuffles = find_kind(exercise.kind).shuffles_cases
    judge = judge_shuffled if shuffles else Running.judge_all
    run, judged, unchecked = judge(running, plans, take)
    if compilation and not all(j.passed for j in judged):
        compilation.stop()
    return run, judged, unchecked


def _start_reports(
    kernels: Kernels, exercise: Exercise, mode: str, name: str
) -> dict[str, Future[CompileReport | None]]:
    """Begin to ask the compiler for the reports that the exercise counts in, by entry point, if
    this mode has a compiler."""
    way = find_mode(mode)
    if not (way.asks_compiler or way.compiles):
        return {}
    return {
        entry_point: start_report(kernels, launch, name)
        for entry_point, launch in counting.list_compiled(exercise).items()
    }


def _look_again(
    verdict: Verdict, running: Running, exercise: Exercise, plans: list[Plan],
    secret: Secret | None, writer: VerdictWriter,
    compilation: Compilation | None,
) -> tuple[Verdict, list[Judged]]:  # fmt: skip
    """Return the pass, or another verdict if a second run, the compiler or the timing contradicts
    it; and the case of the second run that the verdict shows, if it shows one."""
    if compilation:
        compilation.ask()
    if (again := _run_again(running, exercise, plans, secret, writer)) is not None:
        return again
    if compilation and (refused := _ask_compiler(compilation, writer)) is not None:
        return refused, []
    return _time(exercise, verdict, writer), []


def _describe_reset(exercise: Exercise) -> str:
    return _("`course reset {id}` writes it anew.").format(id=exercise.id)


def _write_unreadable(
    exercise: Exercise, path: Path, text: str, unreadable: Unreadable, mode: str
) -> Verdict:
    where = unreadable.span and places.make_place(paths.shown(path), text, unreadable.span)
    headline = make_sentence(unreadable.what)
    return Verdict(
        exercise.id,
        ERROR,
        unreadable.cause,
        str(unreadable),
        mode=mode,
        headline=headline,
        place=where,
    )


def _write_not_attempted(exercise: Exercise, path: Path, mode: str) -> Verdict:
    mark = "YOUR CODE" if "YOUR CODE" in texts.make_unsolved_text(exercise) else "REPAIR"
    message = _(
        "{file} is still as the course wrote it. Fill in the parts marked {mark}, then check again."
    )
    message = message.format(file=paths.shown(path), mark=mark)
    counts = counting.list_uncounted(exercise)
    return Verdict(exercise.id, NOT_ATTEMPTED, "not_attempted", message, mode=mode, counts=counts)


def _run_again(
    running: Running,
    exercise: Exercise,
    plans: list[Plan],
    secret: Secret | None,
    first: VerdictWriter,
) -> tuple[Verdict, list[Judged]] | None:
    """Return a verdict, and the case that it shows, if a second run shows a fault that the first
    did not; None if it agrees with the pass.

    With a secret, the second run's case and numbers are drawn from the secret alone, so that no
    file can influence them. Without one, the case is always the same and the submitted code
    determines the numbers: two checks of one file agree, and writing the numbers into the file
    changes them.
    """
    choice = numbers = f"again: {exercise.id}".encode()
    if secret is None:
        numbers += running.kernels.source.encode()
    else:
        choice, numbers = (
            secret.generator(f"again, {part}: {exercise.id}").bytes(32)
            for part in ("case", "numbers")
        )
    again = make_second_plans(exercise, plans, choice, numbers)
    run = running.run(again, mode=find_mode(running.mode).interpreted_by or None)
    judged = judge_run(again, run)
    if all(j.right for j in judged if j.ran):
        forget_unwritten(judged)
    verdict = VerdictWriter(
        exercise, first.file, first.text, judged, run, running.mode, first.hidden, first
    ).write()
    return None if verdict.passed else (verdict, [j for j in judged if j.is_shown])


def _ask_compiler(compilation: Compilation, writer: VerdictWriter) -> Verdict | None:
    """Return a verdict if the compiler refuses, or crashes on, kernels that passed in the
    interpreter; None if it accepts them."""
    try:
        refusal = compilation.find_refusal()
    except CompilerFailure as failure:
        return writer.write_compiler_failure(failure)
    return None if refusal is None else writer.write_refusal(refusal)


def _note_oddities(verdict: Verdict, kernels: Kernels, exercise: Exercise) -> Verdict:
    """Add to the verdict what is odd in the file. For a pass, also run the code outside of the
    entry points, which no case runs."""
    oddities = kernels.oddities
    finding = None
    if verdict.passed and kernels.rest:
        finding = runner.run_rest(kernels, find_kind(exercise.kind).base_mode.name)
    if finding is not None:
        line, words = finding
        oddities += (
            Oddity(line, _("code outside of what is checked {words}").format(words=words), True),
        )
        beside = _(
            "Beside this, the code at line {line}, outside of what is checked, {words}."
        ).format(line=line, words=words)
        verdict = replace(verdict, message=join_sentences(verdict.message, beside))
    return replace(verdict, oddities=oddities)


def _time(exercise: Exercise, verdict: Verdict, writer: VerdictWriter) -> Verdict:
    """Add to the pass of a timed exercise the times on this machine's GPU, or the reason why there
    are none. Too slow is a fail.

    Of the submission only the numbers that came back as bytes are used: the code that is launched
    and timed is the course's own.
    """
    clocks = {
        name: part.time for name, part in find_parts(exercise).items() if part.time is not None
    }
    if not clocks:
        return verdict
    gpu = course_runtime.current()
    if writer.hidden or gpu.interpreted:
        why = (
            _("a check with hidden cases times nothing")
            if writer.hidden
            else _("this machine has no GPU")
        )
        return writer.write_untimed(verdict, why)
    try:
        times = [
            clocks[j.plan.entry_point](j.plan, j.outputs)
            for j in writer.judged
            if j.plan.entry_point in clocks
        ]
    except NoRoom as full:
        return writer.write_untimed(
            verdict, _("{gpu} has no room for the inputs ({full})").format(gpu=gpu.name, full=full)
        )
    return writer.write_times(verdict, [timed for timed in times if timed is not None], gpu.name)


def grade_tries(
    exercise: Exercise,
    text: str,
    kernels: Kernels,
    plans: list[Plan],
    mode: str,
    limits: runner.ResourceLimits,
) -> tuple[Verdict, list[Judged]]:
    """Return the verdict on the code of a step, which has no cases, from a few tries with known
    results; and the judged tries.

    ``text`` is the text that the code was cut out of, ``exercise.file`` its name in messages. In
    GPU mode the interpreter runs the tries as well; in CPU mode the compiler is asked about kernels
    whose tries are all right.

    Raises: EnvironmentFault or OSError if this machine cannot run it. Any other exception is a bug
    in the grader.
    """
    compilation = (
        Compilation(kernels, plans, exercise.file) if find_mode(mode).asks_compiler else None
    )
    run, judged, _unchecked = Running(kernels, mode, limits).judge_all(plans)
    parts = {
        entry_point: Part((), _plan_nothing, unwritten={}) for entry_point in exercise.entry_points
    }
    writer = VerdictWriter(
        exercise, exercise.file, text, judged, run, mode, hidden=False, parts=parts
    )
    verdict = writer.write()
    if verdict.passed and compilation:
        verdict = _ask_compiler(compilation, writer) or verdict
    return verdict, judged


def _plan_nothing(case: Case, *_rest: object) -> Plan:
    raise TypeError(f"{case.name} has its plan already")
