"""Write the verdict on a run: choose its case, its line and its words."""

from __future__ import annotations

import ast
import signal
from dataclasses import replace
from pathlib import Path

from course_lib.base.errors import EnvironmentFault
from course_lib.base.text import shorten
from course_lib.base.translation import gettext as _
from course_lib.base.translation import join_sentences
from course_lib.base.translation import mark as N_
from course_lib.base.words import list_words
from course_lib.catalog import Exercise, texts
from course_lib.compiler import CompileError
from course_lib.exercises import find_parts
from course_lib.grading.cases.plan import Part, Plan
from course_lib.grading.execution import child, runner
from course_lib.grading.judging import diagnosis, wording
from course_lib.grading.judging.causes import CAUSES, make_sentence
from course_lib.grading.judging.compiled import CompilerFailure
from course_lib.grading.judging.judge import Judged, forget_minor_fault
from course_lib.grading.kind import find_kind, find_mode
from course_lib.grading.smaller import SmallCases
from course_lib.grading.submission import places
from course_lib.grading.submission.places import Span
from course_lib.grading.verdict import (
    ERROR,
    FAIL,
    GRADER_FAULT,
    PASS,
    CaseResult,
    Finding,
    Place,
    Verdict,
)
from course_lib.grading.withheld import round_error
from course_lib.launching.faults import Fault, FaultKind, Group, Raised
from course_lib.tuning.clock import GOAL, Timed
from course_lib.tuning.launch import DEVICE

_LONGEST = 600  # characters of an exception's text that are shown


class VerdictWriter:
    """The writer of the verdict on one run.

    Attributes:
        file: the path of the learner's file, as messages show it.
        text: the text of that file.
        first: the writer of the pass that this run checks a second time; None for a first run.
        parts: the parts of what has no folder, whose wrong formulas are not known; None takes the
            parts of the exercise.
        search: the search for a smaller case to show; None if no smaller case is looked for.
        smaller: the case that the search found.
        hidden: True if the cases are hidden. The verdict then shows only the first wrong element,
            and says of other cases only that they are wrong.
    """

    def __init__(
        self, exercise: Exercise, file: str, text: str, judged: list[Judged], run: runner.Run,
        mode: str, hidden: bool,
        first: VerdictWriter | None = None, parts: dict[str, Part] | None = None,
        search: SmallCases | None = None,
    ):  # fmt: skip
        self.hidden, self.parts = hidden, parts
        self.exercise, self.kind = exercise, find_kind(exercise.kind)
        self.file = file
        self.text = text
        self.judged = judged
        self.run = run
        self.mode = mode
        self.first = first
        self.search, self.smaller = search, None
        # cases with what other orders of their programs have left, if another case is wrong
        self.stale: list[tuple[Judged, Fault]] = []

    def write(self) -> Verdict:
        if flood := _describe_flood(self.run.ended):
            cause = "output_flood" if self.run.ended == "flooded" else "writes_files"
            return self._fail(cause, Finding("", flood))
        of_case = next((j for j in self.judged if j.raised), None)
        if self.run.import_error is not None:
            return self._write_exception(self.run.import_error, None)
        if of_case is not None and of_case.raised is not None:
            return self._write_exception(of_case.raised, of_case)
        if self.run.case is not None or not all(j.right for j in self.judged if j.ran):
            self._forget_minor_faults()
        failed = [j for j in self.judged if j.ran and not j.passed]
        if failed:
            return self._write_wrong(failed)
        if self.run.case is not None:
            return self._write_stopped(self.judged[self.run.case])
        self._require_all_cases()
        return self._make(PASS, "none", self.kind.describe_pass(self.judged))

    def _write_exception(self, raised: Raised, of_case: Judged | None) -> Verdict:
        if of_case is not None:
            of_case.is_shown = True
        if raised.type == child.REFUSED:
            return self._write_refused(raised)
        if raised.type == "WrongReturn" and of_case is not None:
            return self._write_wrong_return(of_case.plan, raised.text)
        if raised.type == "OSError" and "File too large" in raised.text:
            size = runner.ResourceLimits.file_bytes >> 20
            return self._fail(
                "writes_files",
                Finding(
                    "",
                    _("It wrote more than {size} MB to a file and was stopped.").format(size=size),
                ),
            )
        return self._write_raised(raised, of_case)

    def _forget_minor_faults(self) -> None:
        """Remove the minor faults: they count only if all outputs are right.

        In a second run, keep the fault that an output was read before it was written: this is what
        makes the second run differ.
        """
        for j in self.judged:
            if j.fault is not None and j.fault.kind is FaultKind.STALE_IN_AN_ORDER:
                self.stale.append((j, j.fault))
            if self.first is None or j.fault is None or j.fault.kind is not FaultKind.UNWRITTEN:
                forget_minor_fault(j)

    def _require_all_cases(self) -> None:
        """Require that every case was run, because a pass needs all of them.

        Raises: EnvironmentFault if this machine has no room for a case; RuntimeError if a case is
        missing without a known reason.
        """
        missing = [j for j in self.judged if not j.ran]
        far_on_gpu = (
            sum(j.plan.case.is_far for j in missing) if find_mode(self.mode).compiles else 0
        )
        if len(missing) > len(self.run.left_out) + far_on_gpu:
            raise RuntimeError("a case was neither run nor left out")
        if missing:
            raise EnvironmentFault(
                _(
                    "{right} cases are right, and {missing} could not be run: their rows lie more"
                    " than 2^30 elements apart, and this machine gives no address space for that."
                    " `ulimit -v unlimited` takes away a limit of this shell; otherwise check on"
                    " another machine."
                ).format(right=len(self.judged) - len(missing), missing=len(missing))
            )

    def write_refusal(self, refusal: CompileError) -> Verdict:
        """Write the verdict on kernels that pass in the interpreter and that the compiler
        refuses."""
        span = (
            Span(refusal.line, refusal.column - 1, refusal.column)
            if refusal.column
            else Span(refusal.line)
        )
        where = places.make_place(self.file, self.text, span)
        finding = Finding("", make_sentence(refusal.sentence) if where else str(refusal))
        return self._fail("would_not_compile", finding, where, evidence=str(refusal))

    def write_compiler_failure(self, failure: CompilerFailure) -> Verdict:
        """Write the verdict if all cases are right and the compiler crashed: neither a pass nor a
        fault of the learner."""
        message = _(
            "all cases are right in the interpreter, but the compiler for a GPU did not survive the"
            " kernel, twice: {failure} This counts neither as a pass nor as a fail, and nothing is"
            " recorded. A simpler kernel may get through; please report this one."
        ).format(failure=failure)
        return self._make(GRADER_FAULT, "grader_fault", message)

    def write_untimed(self, verdict: Verdict, why: str) -> Verdict:
        """Write the pass of a timed exercise whose launches were not timed. ``why`` is the
        reason."""
        fits = _(
            "What can be known without a clock fits an {device}. Whether it is fast was not"
            " measured: {why}."
        )
        return replace(
            verdict, message=join_sentences(verdict.message, fits.format(device=DEVICE, why=why))
        )

    def write_times(self, verdict: Verdict, times: list[Timed], gpu: str) -> Verdict:
        """Write a pass with the times of the launches on ``gpu``, or a fail if one of them is too
        far from the floor."""
        rows = tuple(
            CaseResult(
                f"time of {t.shape}", "pass" if t.passes else "fail", None, f"{t.launch}: {t}"
            )
            for t in times
        )
        slow = sorted((t for t in times if not t.passes), key=lambda t: t.share)
        if not slow:
            timed = _(
                "Timed on {gpu}: {shares} of the floor's bandwidth; {goal} is asked for."
            ).format(gpu=gpu, shares=list_words(f"{t.share:.2f}" for t in times), goal=GOAL)
            verdict = replace(verdict, message=join_sentences(verdict.message, timed))
        else:
            words = _("At {shape}, {launch} takes {time}; {goal} is asked for.")
            finding = Finding(
                "",
                words.format(shape=slow[0].shape, launch=slow[0].launch, time=slow[0], goal=GOAL),
            )
            words = _(
                "{slow} of {shapes} timed shapes on {gpu} are below {goal} of the floor's"
                " bandwidth."
            )
            if len(slow) == 1:
                words = _(
                    "{slow} of {shapes} timed shapes on {gpu} is below {goal} of the floor's"
                    " bandwidth."
                )
            common = words.format(slow=len(slow), shapes=len(times), gpu=gpu, goal=GOAL)
            verdict = self._fail("below_the_floor", finding, common=common)
        return replace(verdict, cases=(*verdict.cases, *rows))

    def _write_wrong(self, failed: list[Judged]) -> Verdict:
        seen = [*(self.first.judged if self.first else ()), *self.judged]
        if self.kind.counts_parts:
            return self._write_wrong_tests(failed, seen)
        cause = self._find_cause(failed)
        if cause == "wrong_values" and self.stale:
            # the first order of another case was unlucky at once
            for judged, fault in self.stale:
                judged.fault = fault
            failed = [j for j in self.judged if j.ran and not j.passed]
            cause = self.stale[0][1].kind.cause
        if self.search is not None and self.run.case is None:
            self.smaller = self.search.find(self.judged, failed, cause)
        shown = self.smaller or wording.choose_shown(failed, cause)
        shown.is_shown = True
        finding = wording.describe_finding(shown)
        if self.smaller is not None:
            names = places.list_parameters(
                texts.make_unsolved_text(self.exercise), shown.plan.entry_point
            )
            finding = replace(
                finding, inputs=wording.list_inputs(shown.plan, names, bool(finding.element))
            )
        given = "".join(f"{name} = {value}, " for name, value in finding.inputs)
        smallest = (
            f"{finding.case}{_(': ')}{given}{finding.words}" if finding.case else finding.words
        )
        evidence = _("{count}; the smallest: {case}.").format(
            count=wording.count_wrong(seen, failed, shown), case=smallest.rstrip(".。")
        )
        return self._fail(
            cause,
            finding,
            wording.find_place(shown, cause, self.file, self.text, self.exercise),
            wording.count_wrong(seen, failed, shown, as_sentence=True),
            evidence,
        )

    def _write_wrong_tests(self, failed: list[Judged], seen: list[Judged]) -> Verdict:
        """Write the verdict on the first failing test. A test that calls its kernel goes first: the
        others are probably not written yet."""
        shown = next((j for j in failed if j.outputs["called"].any()), failed[0])
        failed = [j for j in failed if j.plan.entry_point == shown.plan.entry_point]
        parts = find_parts(self.exercise)
        cause = diagnosis.find_cause(failed, parts) if self.first is None else "right_only_once"
        failed[0].is_shown = True
        finding = wording.describe_finding(failed[0])
        span = places.find_function(ast.parse(self.text), failed[0].plan.entry_point)
        where = span and places.make_place(self.file, self.text, span)
        count = make_sentence(wording.count_caught(seen))
        return self._fail(cause, finding, where, count, join_sentences(finding.words, count))

    def _find_cause(self, failed: list[Judged]) -> str:
        if self.parts is not None:
            return diagnosis.find_plain_cause(self.judged, self.parts)
        interleaved = any(j.fault and j.fault.kind.group is Group.INTERLEAVED for j in failed)
        if self.first is None or interleaved or any(j.changes_input for j in failed):
            return diagnosis.find_cause(self.judged, find_parts(self.exercise))
        return next(
            (j.fault.kind.cause for j in failed if j.fault and j.has_minor_fault), "right_only_once"
        )

    def _write_wrong_return(self, plan: Plan, words: str) -> Verdict:
        where = wording.find_return(plan.entry_point, self.file, self.text)
        if where is None:
            span = places.find_function_without_return(ast.parse(self.text), plan.entry_point)
            where = span and places.make_place(self.file, self.text, span)
        return self._fail("wrong_return", Finding(plan.case.describe(), f"{words}{_('.')}"), where)

    def _write_refused(self, raised: Raised) -> Verdict:
        """Write the verdict on a file that uses what the exercise does not allow."""
        cause = (
            raised.fault.kind.cause
            if raised.fault and raised.fault.kind.group is Group.REFUSED
            else "not_allowed"
        )
        where = f"{self._name_line(raised)}{_(': ')}"
        text = shorten(" ".join(raised.text.split()), _LONGEST)
        return self._make(
            ERROR,
            cause,
            f"{where}{text}",
            headline=make_sentence(text),
            place=wording.find_raise(raised, self.file, self.text),
        )

    def _write_raised(self, raised: Raised, of_case: Judged | None) -> Verdict:
        cause = diagnosis.find_refusal_of_system(raised) or self.kind.find_cause_of_exception(
            raised
        )
        headline, question = CAUSES[cause].word_for(self.exercise.kind, self.exercise.entry_points)
        text = shorten(" ".join(raised.text.split()), _LONGEST)
        words = f"{raised.type}{_(': ')}{text.rstrip('.。')}{_('.')}"
        if cause == "shapes_differ":
            words = diagnosis.explain_shapes(raised)
        finding = Finding(of_case.plan.case.describe() if of_case else "", words)
        where = self._name_line(raised)
        place = wording.find_raise(raised, self.file, self.text)
        # PyTorch raises this error after backward has returned
        if cause == "gradients_misreturned":
            place = wording.find_return("backward", self.file, self.text)
        question = question if place else ""  # the question is about the line
        status = ERROR if self.run.import_error else FAIL  # a file whose import fails has no cases
        return self._make(
            status, cause, f"{where}{_(': ')}{_join_case(finding)} {question}".rstrip(),
            headline=make_sentence(headline), first=finding,
            place=place, question=question,
        )  # fmt: skip

    def _name_line(self, raised: Raised) -> str:
        file = Path(self.file).name
        return _("{file}, line {line}").format(file=file, line=raised.line) if raised.line else file

    def _write_stopped(self, stopped: Judged) -> Verdict:
        """Write the verdict if the process ended, or was stopped, in a case, and nothing else is
        wrong."""
        stopped.is_shown = True
        run, case = self.run, stopped.plan.case
        if run.ended in ("timed out", "waited"):
            return self._fail("time_limit", Finding(case.describe(), _describe_time(run.ended)))
        if ended := _describe_end_from_outside(run.ended):
            raise EnvironmentFault(
                _(
                    "{ended} That says nothing about your code: close other programs, then check"
                    " again. `course doctor` says how much memory there is."
                ).format(ended=ended)
            )
        if run.ended in _EXCESSES:
            cause, words = _EXCESSES[run.ended]
            return self._fail(cause, Finding(case.describe(), _(words)))
        if run.reported:
            words = _("It ended with `{report}`.")
            address = "address" in run.reported or "memory access" in run.reported
        elif run.signal:
            words, address = _("It ended with signal {signal}."), run.signal in _OF_AN_ADDRESS
        else:
            words, address = _("It ended by itself, before it was done."), False
        words = words.format(
            report=run.reported, signal=_name_signal(run.signal) if run.signal else ""
        )
        words += _(" That is what an address far outside a tensor does.") if address else ""
        far = address and case.is_far
        return self._fail(
            diagnosis.name_far_cause([case]) if far else "crash",
            Finding(case.describe(), words),
            asks=address,
        )

    def _fail(
        self,
        cause: str,
        first: Finding,
        where: Place | None = None,
        common: str = "",
        evidence: str = "",
        asks: bool = True,
    ) -> Verdict:
        """Make the verdict of a failure. ``asks`` is False if the cause's question would not help
        here."""
        headline, question = CAUSES[cause].word_for(self.exercise.kind, self.exercise.entry_points)
        evidence = evidence or _join_case(first)
        message = join_sentences(make_sentence(headline), evidence)
        if asks:
            message = wording.write_message(
                cause, evidence, self.exercise.kind, self.exercise.entry_points
            )
        else:
            question = ""
        return self._make(
            FAIL,
            cause,
            message,
            headline=make_sentence(headline),
            first=first,
            place=where,
            question=question,
            common=common,
        )

    def _make(self, status: str, cause: str, message: str, **pieces) -> Verdict:
        looks = (self,) if self.first is None else (self.first, self)
        cases = tuple(
            _make_case_result(j, n, look.run, self.hidden)
            for look in looks
            for n, j in enumerate(look.judged)
        )
        return Verdict(
            self.exercise.id,
            status,
            cause,
            message,
            cases,
            self.mode,
            self.run.tier,
            printed=self.run.printed.strip(),
            **pieces,
        )


_OF_AN_ADDRESS = (signal.SIGSEGV, signal.SIGBUS)


def _describe_end_from_outside(ended: str) -> str:
    if ended == "killed":
        return _(
            "the process that runs your code was killed from outside, twice: most often the machine"
            " runs out of memory."
        )
    return (
        _("the process that watches your code run ended, twice, before your code did.")
        if ended == "died"
        else ""
    )


def _describe_time(ended: str) -> str:
    if ended == "timed out":
        return _("It was stopped after the time limit: it used up its processor time.")
    return _(
        "It was stopped after the time limit: it waits or sleeps, and its time by the clock is"
        " over."
    )


def _describe_flood(ended: str) -> str:
    if ended == "flooded":
        return _("It printed more than {size} MB and was stopped.").format(
            size=runner.ResourceLimits.log_bytes >> 20
        )
    return (
        _("It wrote more files, or larger ones, than a check has room for, and was stopped.")
        if ended == "too many files"
        else ""
    )


# how a run ended -> its cause, and the words for it
_EXCESSES = {
    "too much memory": ("too_much_memory", N_("It took too much memory and was stopped.")),
    "too many processes": (
        "too_many_processes",
        N_("It took too many processes or threads and was stopped."),
    ),
}


def _name_end(ended: str) -> str:
    return {"timed out": _("timed out"), "waited": _("timed out"), "crashed": _("crashed")}.get(
        ended, ended
    )


def _name_signal(number: int) -> str:
    is_known = number in set(signal.Signals)
    return f"{number} ({signal.Signals(number).name})" if is_known else str(number)


def _join_case(finding: Finding) -> str:
    return (
        _("{words} In the case {case}.").format(words=finding.words, case=finding.case)
        if finding.case
        else finding.words
    )


def _make_case_result(judged: Judged, number: int, run: runner.Run, hidden: bool) -> CaseResult:
    case = judged.plan.case
    if hidden and judged.ran:
        status, words = ("pass", "") if judged.passed else ("fail", _(": wrong"))
        error = round_error(judged.ratio if judged.passed else judged.ratio or None)
        return CaseResult(case.name, status, error, f"{case.describe()}{words}")
    if judged.passed:
        more = case.describe_success(judged.outputs)
        return CaseResult(
            case.name, "pass", judged.ratio, f"{case.describe()}{_(': ') * bool(more)}{more}"
        )
    if judged.ran:
        return CaseResult(
            case.name,
            "fail",
            judged.ratio or None,
            f"{case.describe()}{_(': ')}{wording.describe_finding(judged).words}",
        )
    if judged.raised:
        return CaseResult(
            case.name, "fail", None, f"{case.describe()}{_(': ')}{judged.raised.type}"
        )
    if number == run.case:
        return CaseResult(
            case.name, "fail", None, f"{case.describe()}{_(': ')}{_name_end(run.ended)}"
        )
    return CaseResult(case.name, "not run", None, case.describe())
