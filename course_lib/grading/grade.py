"""What a check does: takes the file's code in, runs it, judges what came back, and puts it into words."""

from __future__ import annotations

import ast
import random
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from course_lib.base import background, paths
from course_lib.base import runtime as course_runtime
from course_lib.base.errors import EnvironmentFault
from course_lib.base.text import make_visible_line, shorten
from course_lib.catalog import Exercise, texts
from course_lib.compiler import CompileError
from course_lib.grading.cases.case import Case
from course_lib.grading.cases.hidden import Secret
from course_lib.grading.cases.plan import Part, Plan
from course_lib.grading.execution import child, runner
from course_lib.grading.families import find_parts
from course_lib.grading.families.plans import make_plans, make_second_plans
from course_lib.grading.judging import diagnosis, wording
from course_lib.grading.judging.causes import CAUSES, make_sentence
from course_lib.grading.judging.compiled import Compilation, CompilerFailure
from course_lib.grading.judging.judge import MINOR, Judged, forget_minor_fault, judge, judge_case
from course_lib.grading.smaller import SmallCases
from course_lib.grading.submission import extract_kernels, places, reader
from course_lib.grading.submission.extract_kernels import Kernels
from course_lib.grading.submission.places import Span
from course_lib.grading.verdict import (
    ERROR,
    FAIL,
    GRADER_FAULT,
    NOT_ATTEMPTED,
    PASS,
    CaseResult,
    Finding,
    Place,
    Verdict,
)
from course_lib.grading.withheld import round_error, withhold
from course_lib.tuning.clock import GOAL, NoRoom, Timed
from course_lib.tuning.launch import DEVICE

_LONGEST = 600  # characters of what an exception says
_REST_SECONDS = 2.0  # a case, of those after one that was stopped


def grade(
    exercise: Exercise,
    path: Path,
    mode: str,
    seed: int,
    secret: Secret | None,
    limits: runner.ResourceLimits | None,
    tell_first_failure: Callable[[str], None] | None = None,
) -> tuple[Verdict, list[Judged]]:
    """The verdict on the file at ``path``, and the judged cases; none where nothing was run. The last one may be a smaller case that was
    looked for, and is shown. ``tell_first_failure`` is not called with a secret, and nothing is timed: a grade is not to depend on the
    machine that gave it.

    Raises: EnvironmentFault or OSError if this machine cannot run it. Any other exception is a bug of the grader.
    """
    own = path == texts.find_file(exercise)
    name = make_visible_line(path.name)
    text = ""
    try:
        text = extract_kernels.read_text(path, f"`course reset {exercise.id}` writes it anew." if own else "")
        kernels = reader.read(exercise, text, name)
        if kernels is None:
            mark = "YOUR CODE" if "YOUR CODE" in texts.make_unsolved_text(exercise) else "REPAIR"
            message = f"{paths.shown(path)} is still as the course wrote it. Fill in the parts marked {mark}, then check again."
            return Verdict(exercise.id, NOT_ATTEMPTED, "not_attempted", message, mode=mode), []
    except extract_kernels.Unreadable as unreadable:
        where = unreadable.span and places.make_place(paths.shown(path), text, unreadable.span)
        headline = make_sentence(unreadable.what)
        return Verdict(
            exercise.id, ERROR, unreadable.cause, str(unreadable), mode=mode, headline=headline, place=where
        ), []
    concrete = make_plans(exercise, seed, secret)
    if mode == "gpu":  # where all programs cost nothing, all of them are judged
        concrete = [replace(plan, sample=()) for plan in concrete]
    compilation = Compilation(kernels, concrete, name) if mode == "cpu" else None  # a GPU has just compiled it
    # beside the GPU, because a right kernel needs both and a wrong one seldom waits for it
    interpreting = _Interpreting(kernels, concrete) if mode == "gpu" else None
    order = _shuffle(len(concrete), kernels) if exercise.kind == "tests" else list(range(len(concrete)))
    ordered = [concrete[number] for number in order]
    take = None if tell_first_failure is None or secret else _FirstFailure(ordered, tell_first_failure).take
    run = runner.run(kernels, ordered, mode, limits, take, interpreting and interpreting.found_a_deadlock)
    if run.ended == "timed out" and not (interpreting and interpreting.found_a_deadlock()):
        _run_rest(run, kernels, ordered, mode, limits)
    _restore_order(run, order)
    if secret is not None:
        run = withhold(run, concrete, len(places.split_lines(text)))
        if run.import_error and run.import_error["type"] == child.REFUSED:
            run = runner.run(
                kernels, [], mode, limits
            )  # asked once more where no inputs are, its words hold none of them
    if run.ended == "not started" and run.import_error is None:
        raise describe_not_started(run)
    judged = [judge_case(plan, run.data.get(n), run.errors.get(n)) for n, plan in enumerate(concrete)]
    # memory for rows 2^30 apart is the GPU's to give; without it the interpreter's answer has to do, never the child's word
    unplaced = [
        n
        for n, j in enumerate(judged)
        if mode == "gpu" and j.raised and j.raised["type"] == "Unplaceable" and j.plan.case.is_far
    ]
    for n in unplaced:
        judged[n].raised = None
    _judge_samples(judged, kernels, mode, limits, None if secret is None else len(places.split_lines(text)))
    unchecked = ""
    shared = any(plan.interleavings for plan in concrete)  # a race that a GPU ran has no name, and often no trace
    if interpreting and (shared or run.case is not None or all(j.passed or not (j.ran or j.raised) for j in judged)):
        interpreted = interpreting.result()
        if secret is not None:
            interpreted = withhold(interpreted, concrete, len(places.split_lines(text)))
        for n in set(unplaced) & interpreted.data.keys():
            judged[n] = judge(concrete[n], interpreted.data[n])
        unchecked = _add_faults(judged, interpreted)
    _forget_unwritten(judged)
    # of hidden cases the learner is told nothing more: no small one, either, whose kind could be chosen by them
    search = SmallCases(kernels, exercise, mode, limits) if secret is None else None
    writer = _VerdictWriter(exercise, paths.shown(path), text, judged, run, mode, secret is not None, search=search)
    verdict = writer.write()
    if verdict.passed and unchecked:
        verdict = replace(verdict, message=f"{verdict.message} {unchecked}")
    if verdict.passed:
        if compilation:
            compilation.ask()
        verdict = _run_again(exercise, kernels, concrete, mode, limits, secret, writer) or verdict
    if compilation and verdict.passed:
        verdict = _ask_compiler(compilation, verdict, writer)
    if verdict.passed:
        verdict = _time(exercise, verdict, writer)
    return verdict, judged if writer.smaller is None else [*judged, writer.smaller]


def _time(exercise: Exercise, verdict: Verdict, writer: _VerdictWriter) -> Verdict:
    """A pass of an exercise that has times, with those of this machine's GPU, or with why there are none. Too slow is a fail.

    Only numbers that came back as bytes are used here: what is launched and timed is the course's.
    """
    clocks = {name: part.time for name, part in find_parts(exercise).items() if part.time is not None}
    if not clocks:
        return verdict
    gpu = course_runtime.current()
    if writer.hidden or gpu.mode != "gpu":
        return writer.write_untimed(
            verdict, "a check with hidden cases times nothing" if writer.hidden else "this machine has no GPU"
        )
    try:
        times = [clocks[j.plan.entry_point](j.plan, j.outputs) for j in writer.judged if j.plan.entry_point in clocks]
    except NoRoom as full:
        return writer.write_untimed(verdict, f"{gpu.name} has no room for the inputs ({full})")
    return writer.write_times(verdict, [timed for timed in times if timed is not None], gpu.name)


class _Interpreting:
    """The interpreter's run of the plans, beside the GPU's."""

    def __init__(self, kernels: Kernels, plans: list[Plan]):
        self._run = background.start(lambda: runner.run(kernels, plans, "cpu"))
        self.result = self._run.result

    def found_a_deadlock(self) -> bool:
        """True once it is known that the programs wait for one another: on the GPU they would do so until the time is over."""
        if not self._run.done() or self._run.exception() is not None:
            return False
        faults = [error["fault"] for error in self._run.result().errors.values()]
        return any(fault is not None and fault["kind"] in ("deadlock", "livelock") for fault in faults)


def _shuffle(count: int, kernels: Kernels) -> list[int]:
    """Another order of the cases for each file, and the same for the same file: no test is to know which kernel it gets."""
    numbers = list(range(count))
    random.Random(kernels.source).shuffle(numbers)
    return numbers


def _restore_order(run: runner.Run, order: list[int]) -> None:
    """Number what came back as the cases are numbered; case ``order[n]`` ran as number n."""
    run.data = {order[n]: data for n, data in run.data.items()}
    run.errors = {order[n]: error for n, error in run.errors.items()}
    run.case = None if run.case is None else order[run.case]
    run.left_out = frozenset(order[n] for n in run.left_out)


def grade_tries(
    exercise: Exercise, text: str, kernels: Kernels, plans: list[Plan], mode: str, limits: runner.ResourceLimits
) -> tuple[Verdict, list[Judged]]:
    """The verdict on code that was read, from a few tries whose results are known, and the judged tries: of a step, which has no
    family. ``text`` is where the code comes from, ``exercise.file`` how a person knows it.

    On a GPU the interpreter runs the tries, too; on the CPU the compiler is asked about kernels whose tries are all right.

    Raises: EnvironmentFault or OSError if this machine cannot run it. Any other exception is a bug of the grader.
    """
    compilation = Compilation(kernels, plans, exercise.file) if mode == "cpu" else None
    interpreting = _Interpreting(kernels, plans) if mode == "gpu" else None
    run = runner.run(kernels, plans, mode, limits, is_over=interpreting and interpreting.found_a_deadlock)
    if run.ended == "not started" and run.import_error is None:
        raise describe_not_started(run)
    judged = [judge_case(plan, run.data.get(n), run.errors.get(n)) for n, plan in enumerate(plans)]
    if interpreting and all(j.passed or not (j.ran or j.raised) for j in judged):
        _add_faults(judged, interpreting.result())
    _forget_unwritten(judged)
    parts = {entry_point: Part((), _plan_nothing, unwritten={}) for entry_point in exercise.entry_points}
    writer = _VerdictWriter(exercise, exercise.file, text, judged, run, mode, hidden=False, parts=parts)
    verdict = writer.write()
    return _ask_compiler(compilation, verdict, writer) if compilation and verdict.passed else verdict, judged


def _ask_compiler(compilation: Compilation, verdict: Verdict, writer: _VerdictWriter) -> Verdict:
    """The pass, if a GPU's compiler takes the kernels, too."""
    try:
        refusal = compilation.find_refusal()
    except CompilerFailure as failure:
        return writer.write_compiler_failure(failure)
    return verdict if refusal is None else writer.write_refusal(refusal)


def _plan_nothing(case: Case, *_: object) -> Plan:
    raise TypeError(f"{case.name} has its plan already")


def _run_rest(
    run: runner.Run, kernels: Kernels, plans: list[Plan], mode: str, limits: runner.ResourceLimits | None
) -> None:
    """Run the cases after the one that was stopped, for a short time, and add what they left to ``run``.

    A loop that goes too far is slow in the case with the most steps, and wrong in another, which names it.
    """
    if run.case is None or not all(judge(plans[number], data).right for number, data in run.data.items()):
        return
    first, limits = run.case + 1, limits or runner.ResourceLimits.for_mode(mode)
    short = replace(limits, case=min(limits.case, _REST_SECONDS), total=min(limits.total, 4 * _REST_SECONDS))
    rest = runner.run(kernels, plans[first:], mode, short)
    run.data |= {first + number: data for number, data in rest.data.items()}
    run.errors |= {first + number: error for number, error in rest.errors.items()}


def _judge_samples(
    judged: list[Judged], kernels: Kernels, mode: str, limits: runner.ResourceLimits | None, lines_if_hidden: int | None
) -> None:
    """Where only samples of programs are wrong, all programs run, and are judged: a right kernel may deal out its rows in its own way."""
    wrong = [n for n, j in enumerate(judged) if j.ran and not j.right]
    if not wrong or not all(judged[n].plan.sample for n in wrong):
        return
    whole = [replace(judged[n].plan, sample=()) for n in wrong]
    run = runner.run(kernels, whole, mode, limits)
    if lines_if_hidden is not None:
        run = withhold(run, whole, lines_if_hidden)
    for number, n in enumerate(wrong):
        if number in run.data or number in run.errors:
            judged[n] = judge_case(whole[number], run.data.get(number), run.errors.get(number))


class _FirstFailure:
    """Judges results as they come, until one is wrong, and tells that one. The verdict judges them all, from what is left at the end."""

    def __init__(self, plans: list[Plan], tell: Callable[[str], None]):
        self.plans, self.tell, self.told = plans, tell, False

    def take(self, number: int, data: bytes) -> None:
        if self.told or self.plans[number].sample:  # what a sample shows is not certain
            return
        judged = judge(self.plans[number], data)
        if not judged.passed:
            self.told = True
            self.tell(wording.describe_first_failure(judged, number, len(self.plans)))


def _run_again(
    exercise: Exercise, kernels: Kernels, plans: list[Plan], mode: str, limits: runner.ResourceLimits | None,
    secret: Secret | None, first: _VerdictWriter,
) -> Verdict | None:  # fmt: skip
    """A verdict if a second run shows what the first one did not; None if it agrees with the pass.

    With a secret it is drawn from that alone, so that nothing in a file has a say in it. Without one the case is always the same, and
    the numbers come from what is handed in: two checks of one file agree, and to write the numbers into the file would change them.
    """
    choice = numbers = f"again: {exercise.id}".encode()
    if secret is None:
        numbers += kernels.source.encode()
    else:
        choice, numbers = (secret.generator(f"again, {what}: {exercise.id}").bytes(32) for what in ("case", "numbers"))
    again = make_second_plans(exercise, plans, choice, numbers)
    run = runner.run(kernels, again, "cpu" if mode == "gpu" else mode, None if mode == "gpu" else limits)
    if secret is not None:
        run = withhold(run, again, len(places.split_lines(first.text)))
    if run.ended == "not started" and run.import_error is None:
        raise describe_not_started(run)
    judged = [judge_case(plan, run.data.get(n), run.errors.get(n)) for n, plan in enumerate(again)]
    if all(j.right for j in judged if j.ran):
        _forget_unwritten(judged)
    verdict = _VerdictWriter(exercise, first.file, first.text, judged, run, mode, first.hidden, first).write()
    return None if verdict.passed else verdict


def _forget_unwritten(judged: list[Judged]) -> None:
    """Who reads an output before it is written may throw away what it finds. What came out of it, or a wrong second run, says otherwise;
    where nothing came out, the report of it is forged."""
    for j in judged:
        if j.outputs and j.fault and j.fault["kind"] == "unwritten" and not j.shows_what_was_held:
            j.fault = None


def describe_not_started(run: runner.Run) -> EnvironmentFault:
    """The machine's fault, for a run in which no case began."""
    said = (run.printed.strip().splitlines() or ["it printed nothing"])[-1]
    return EnvironmentFault(
        f"the process that runs your code did not start ({said}). `course doctor` says what is wrong with this machine.",
        run.printed,
    )


def _add_faults(judged: list[Judged], interpreted: runner.Run) -> str:
    """What only the interpreter sees: a compiled kernel that reads past the end of a tensor mostly gives the right values, and
    so does one whose masked lanes happen to hold 0; one that ends the GPU's context cannot say which lane did it. Returns, in
    words, what it could not look at."""
    for number, j in enumerate(judged):
        error = interpreted.errors.get(number)
        if error is not None and error["fault"] is not None:
            j.fault, j.ran = error["fault"] | {"words": error["text"]}, True
        elif error is None and j.passed and number in interpreted.data:
            judged[number] = judge(j.plan, interpreted.data[number])
    unseen = [
        error for error in interpreted.errors.values() if error["fault"] is None and error["type"] != "Unplaceable"
    ]
    if interpreted.ended == "finished" and not unseen:
        return ""
    why = f"{unseen[0]['type']}: {unseen[0]['text']}" if unseen else interpreted.ended
    return f"Whether it stays inside its tensors could not be looked at in the interpreter ({why})."


class _VerdictWriter:
    """Puts one run into a verdict. ``file`` is the learner's as a person knows it, ``text`` what it holds; ``first`` wrote the
    pass that this run is a second look at. ``parts`` are those of an exercise that has no family: then no wrong formula is looked for.
    ``search`` looks for a smaller case to show; None: none is looked for. ``smaller`` is the one that it found.

    Of ``hidden`` cases one wrong element is told, the first; of the others only that they are wrong.
    """

    def __init__(
        self, exercise: Exercise, file: str, text: str, judged: list[Judged], run: runner.Run, mode: str, hidden: bool,
        first: _VerdictWriter | None = None, parts: dict[str, Part] | None = None, search: SmallCases | None = None,
    ):  # fmt: skip
        self.hidden, self.parts = hidden, parts
        self.exercise, self.file, self.text, self.judged, self.run, self.mode = exercise, file, text, judged, run, mode
        self.first = first
        self.search, self.smaller = search, None

    def write(self) -> Verdict:
        run, judged = self.run, self.judged
        if run.ended in _FLOODS:
            return self._fail("output_flood", Finding("", _FLOODS[run.ended]))
        of_case = next((j for j in judged if j.raised), None)
        raised = run.import_error or (of_case and of_case.raised)
        if raised and raised["type"] == child.REFUSED:
            return self._write_refused(raised)
        if of_case and of_case.raised and run.import_error is None and of_case.raised["type"] == "WrongReturn":
            return self._write_wrong_return(of_case.plan, of_case.raised["text"])
        if raised and raised["type"] == "OSError" and "File too large" in raised["text"]:
            size = runner.ResourceLimits.file_bytes >> 20
            return self._fail("output_flood", Finding("", f"It wrote more than {size} MB to a file and was stopped."))
        if raised:
            return self._write_raised(raised, of_case)
        if run.case is not None or not all(j.right for j in judged if j.ran):
            for j in judged:  # how it came to its outputs matters only where these are right
                if self.first is None or j.fault is None or j.fault["kind"] != "unwritten":
                    forget_minor_fault(j)
        failed = [j for j in judged if j.ran and not j.passed]
        if run.case is not None and not failed:
            return self._write_stopped(judged[run.case].plan)
        if failed:
            return self._write_wrong(failed)
        left_out = sum(not j.ran for j in judged)
        if left_out > len(run.left_out) + sum(j.plan.case.is_far for j in judged if self.mode == "gpu" and not j.ran):
            raise RuntimeError("a case was neither run nor left out")  # never a pass for what nobody saw
        if left_out:
            raise EnvironmentFault(
                f"{len(judged) - left_out} cases are right, and {left_out} could not be run: their rows lie more than 2^30 elements apart, and "
                "this machine gives no address space for that. `ulimit -v unlimited` takes away a limit of this shell; "
                "otherwise check on another machine."
            )
        message = f"All {len(judged)} cases are right."
        if self.exercise.kind == "tests":
            message = f"{wording.count_caught(judged)}, and no right kernel is accused."
        return self._make(PASS, "none", message)

    def write_refusal(self, refusal: CompileError) -> Verdict:
        """A pass in the interpreter that the compiler refuses."""
        span = Span(refusal.line, refusal.column - 1, refusal.column) if refusal.column else Span(refusal.line)
        where = places.make_place(self.file, self.text, span)
        first = Finding("", make_sentence(refusal.sentence) if where else str(refusal))
        return self._fail("would_not_compile", first, where, evidence=str(refusal))

    def write_compiler_failure(self, failure: CompilerFailure) -> Verdict:
        """All cases are right, and nobody can say whether a GPU would take the kernel: no pass, and no fault of the learner's."""
        message = (
            f"all cases are right in the interpreter, but the compiler for a GPU did not survive the kernel, twice: {failure} "
            "This counts neither as a pass nor as a fail, and nothing is recorded. A simpler kernel may get through; "
            "please report this one."
        )
        return self._make(GRADER_FAULT, "grader_fault", message)

    def write_untimed(self, verdict: Verdict, why: str) -> Verdict:
        """A pass that rests on what can be known without a clock."""
        fits = f"What can be known without a clock fits an {DEVICE}. Whether it is fast was not measured: {why}."
        return replace(verdict, message=f"{verdict.message} {fits}")

    def write_times(self, verdict: Verdict, times: list[Timed], gpu: str) -> Verdict:
        """A pass with the times of its launches on ``gpu``; a fail if one of them is too far from the floor."""
        rows = tuple(
            CaseResult(f"time of {t.shape}", "pass" if t.passes else "fail", None, f"{t.launch}: {t}") for t in times
        )
        slow = sorted((t for t in times if not t.passes), key=lambda t: t.share)
        if not slow:
            shares = ", ".join(f"{t.share:.2f}" for t in times)
            verdict = replace(
                verdict,
                message=f"{verdict.message} Timed on {gpu}: {shares} of the floor's bandwidth; {GOAL} is asked for.",
            )
        else:
            first = Finding("", f"At {slow[0].shape}, {slow[0].launch} takes {slow[0]}; {GOAL} is asked for.")
            common = f"{len(slow)} of {len(times)} timed shapes on {gpu} {'is' if len(slow) == 1 else 'are'} below {GOAL} of the floor's bandwidth."
            verdict = self._fail("below_the_floor", first, common=common)
        return replace(verdict, cases=(*verdict.cases, *rows))

    def _write_wrong(self, failed: list[Judged]) -> Verdict:
        seen = [*(self.first.judged if self.first else ()), *self.judged]
        if self.exercise.kind == "tests":
            return self._write_wrong_tests(failed, seen)
        cause = self._find_cause(failed)
        if self.search is not None and self.run.case is None:
            self.smaller = self.search.find(self.judged, failed, cause)
        shown = self.smaller or wording.choose_shown(failed, cause)
        first = wording.describe_finding(shown)
        if self.smaller is not None:
            names = places.list_parameters(texts.make_unsolved_text(self.exercise), shown.plan.entry_point)
            first = replace(first, inputs=wording.list_inputs(shown.plan, names, bool(first.element)))
        given = "".join(f"{name} = {value}, " for name, value in first.inputs)
        smallest = f"{first.case}: {given}{first.words}" if first.case else first.words
        evidence = f"{wording.count_wrong(seen, failed)}; the smallest: {smallest.rstrip('.')}."
        return self._fail(
            cause, first,
            wording.find_place(shown, self.file, self.text, self.exercise.entry_points),
            wording.count_wrong(seen, failed, "is " if len(failed) == 1 else "are ") + ".", evidence,
        )  # fmt: skip

    def _write_wrong_tests(self, failed: list[Judged], seen: list[Judged]) -> Verdict:
        """What is wrong with the first of the tests that fail, of those that are written if there are any: they call their kernel."""
        shown = next((j for j in failed if j.outputs["called"].any()), failed[0])
        failed = [j for j in failed if j.plan.entry_point == shown.plan.entry_point]
        parts = find_parts(self.exercise)
        cause = diagnosis.find_cause(failed, parts) if self.first is None else "right_only_once"
        first = wording.describe_finding(failed[0])
        span = places.find_function(ast.parse(self.text), failed[0].plan.entry_point)
        where = span and places.make_place(self.file, self.text, span)
        count = wording.count_caught(seen)
        return self._fail(cause, first, where, f"{count}.", f"{first.words} {count}.")

    def _find_cause(self, failed: list[Judged]) -> str:
        if self.parts is not None:
            return diagnosis.find_plain_cause(self.judged, self.parts)
        if self.first is None or any(j.changes_input for j in failed):
            return diagnosis.find_cause(self.judged, find_parts(self.exercise))
        return next((MINOR[j.fault["kind"]] for j in failed if j.fault and j.has_minor_fault), "right_only_once")

    def _write_wrong_return(self, plan: Plan, words: str) -> Verdict:
        where = wording.find_return(plan.entry_point, self.file, self.text)
        if where is None:
            span = places.find_function_without_return(ast.parse(self.text), plan.entry_point)
            where = span and places.make_place(self.file, self.text, span)
        return self._fail("wrong_return", Finding(plan.case.describe(), f"{words}."), where)

    def _write_refused(self, raised: dict) -> Verdict:
        """It uses what the exercise is not open to."""
        cause = raised["fault"]["kind"] if raised["fault"] else "not_allowed"
        cause = cause if cause in ("not_allowed", "undefined_name") else "not_allowed"
        where = f"{Path(self.file).name}, line {raised['line']}: " if raised["line"] else f"{Path(self.file).name}: "
        text = shorten(" ".join(raised["text"].split()), _LONGEST)
        return self._make(
            ERROR,
            cause,
            f"{where}{text}",
            headline=make_sentence(text),
            place=wording.find_raise(raised, self.file, self.text),
        )

    def _write_raised(self, raised: dict, of_case: Judged | None) -> Verdict:
        if self.exercise.kind == "kernel":
            cause = "kernel_raised"
        else:
            cause = diagnosis.find_refusal(raised) or "function_raised"
        headline, question = CAUSES[cause].word_for(self.exercise.kind, self.exercise.entry_points)
        text = shorten(" ".join(raised["text"].split()), _LONGEST)
        first = Finding(of_case.plan.case.describe() if of_case else "", f"{raised['type']}: {text.rstrip('.')}.")
        where = f"{Path(self.file).name}, line {raised['line']}" if raised["line"] else Path(self.file).name
        place = wording.find_raise(raised, self.file, self.text)
        if cause == "gradients_misreturned":  # PyTorch says it when backward has returned
            place = wording.find_return("backward", self.file, self.text)
        question = question if place else ""  # it asks about the line
        return self._make(
            ERROR, cause, f"{where}: {_join_case(first)} {question}".rstrip(), headline=make_sentence(headline), first=first,
            place=place, question=question,
        )  # fmt: skip

    def _write_stopped(self, plan: Plan) -> Verdict:
        """The process ended, or was ended, in a case, and nothing else is wrong."""
        run, case = self.run, plan.case
        if run.ended == "timed out":
            return self._fail("time_limit", Finding(case.describe(), "It was stopped after the time limit."))
        if run.ended in _ENDED_FROM_OUTSIDE:
            raise EnvironmentFault(
                f"{_ENDED_FROM_OUTSIDE[run.ended]} That says nothing about your code: close other programs, then check again. "
                "`course doctor` says how much memory there is."
            )
        if run.ended.startswith("too "):
            return self._fail("crash", Finding(case.describe(), f"It took {run.ended} and was stopped."), asks=False)
        if run.reported:
            how, address = f"with `{run.reported}`", "address" in run.reported or "memory access" in run.reported
        elif run.signal:
            how, address = f"with signal {_name_signal(run.signal)}", run.signal in _OF_AN_ADDRESS
        else:
            how, address = "by itself, before it was done", False
        words = f"It ended {how}.{' That is what an address far outside a tensor does.' if address else ''}"
        far = address and case.is_far
        return self._fail(
            diagnosis.name_far_cause([case]) if far else "crash", Finding(case.describe(), words), asks=address
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
        """``asks``: whether the cause's question leads anywhere here."""
        headline, question = CAUSES[cause].word_for(self.exercise.kind, self.exercise.entry_points)
        evidence = evidence or _join_case(first)
        message = f"{make_sentence(headline)} {evidence}"
        if asks:
            message = wording.write_message(cause, evidence, self.exercise.kind, self.exercise.entry_points)
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
            _make_case_result(j, n, look.run, self.hidden) for look in looks for n, j in enumerate(look.judged)
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
_ENDED_FROM_OUTSIDE = {
    "killed": "the process that runs your code was killed from outside, twice: most often the machine runs out of memory.",
    "died": "the process that watches your code run ended, twice, before your code did.",
}
_FLOODS = {
    "flooded": f"It printed more than {runner.ResourceLimits.log_bytes >> 20} MB and was stopped.",
    "too many files": "It wrote more files, or larger ones, than a check has room for, and was stopped.",
}


def _name_signal(number: int) -> str:
    known = number in set(signal.Signals)
    return f"{number} ({signal.Signals(number).name})" if known else str(number)


def _join_case(first: Finding) -> str:
    return f"{first.words} In the case {first.case}." if first.case else first.words


def _make_case_result(judged: Judged, number: int, run: runner.Run, hidden: bool) -> CaseResult:
    case = judged.plan.case
    if hidden and judged.ran:
        status, words = ("pass", "") if judged.passed else ("fail", ": wrong")
        error = round_error(judged.ratio if judged.passed else judged.ratio or None)
        return CaseResult(case.name, status, error, f"{case.describe()}{words}")
    if judged.passed:
        more = case.describe_success(judged.outputs)
        return CaseResult(case.name, "pass", judged.ratio, f"{case.describe()}{': ' * bool(more)}{more}")
    if judged.ran:
        return CaseResult(
            case.name, "fail", judged.ratio or None, f"{case.describe()}: {wording.describe_finding(judged).words}"
        )
    if judged.raised:
        return CaseResult(case.name, "fail", None, f"{case.describe()}: {judged.raised['type']}")
    if number == run.case:
        return CaseResult(case.name, "fail", None, f"{case.describe()}: {run.ended}")
    return CaseResult(case.name, "not run", None, case.describe())
