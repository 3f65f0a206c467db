"""Checks one exercise file: the only entry to grading for the command line, the panels and the tests."""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from course_lib import paths, workspace
from course_lib import runtime as course_runtime
from course_lib.catalog import Exercise
from course_lib.grading import diagnosis, extract, extract_functions, runner
from course_lib.grading.causes import CAUSES
from course_lib.grading.compiled import Compilation
from course_lib.grading.families import parts
from course_lib.grading.hidden import Secret
from course_lib.grading.judge import Deviation, Judged, judge
from course_lib.grading.plan import Plan
from course_lib.grading.plans import plans
from course_lib.grading.verdict import ERROR, FAIL, GRADER_FAULT, NOT_ATTEMPTED, PASS, CaseResult, Verdict


def check(
    exercise: Exercise,
    path: Path | None = None,
    *,
    mode: str | None = None,
    seed: int = 0,
    secret: str | bytes | None = None,
    limits: runner.Limits | None = None,
) -> Verdict:
    """Grade ``path`` (the learner's own file if None) as a solution of ``exercise``.

    Args:
        mode: "cpu" (interpreter) or "gpu" (compiled), for kernels; None takes what this machine has. Functions run on the CPU.
        seed: of the inputs; a learner's check always uses 0, so that two checks of one file agree.
        secret: an instructor's. Its cases have other shapes and values than the learner's own check, the same ones each time.
        limits: time and memory; None takes those of the mode.

    Returns: the verdict. Nothing a learner's file holds makes this function raise; a fault of the grader or of the
    machine (no process can be started, the disk is full) is the verdict "grader fault", never the learner's.

    Raises: ValueError if the secret is empty.
    """
    return evidence(exercise, path, mode=mode, seed=seed, secret=secret, limits=limits)[0]


def evidence(
    exercise: Exercise,
    path: Path | None = None,
    *,
    mode: str | None = None,
    seed: int = 0,
    secret: str | bytes | None = None,
    limits: runner.Limits | None = None,
) -> tuple[Verdict, list[Judged]]:
    """As :func:`check`, with the judged cases and their outputs; no cases where nothing was run."""
    drawn_from = None if secret is None else Secret(secret)
    started = time.monotonic()
    judged: list[Judged] = []
    try:
        mode = exercise.kind if exercise.kind != "kernel" else mode or course_runtime.current().mode
        concrete = partial(plans, exercise, seed, drawn_from)
        verdict, judged = _check(exercise, path or workspace.file_of(exercise), mode, concrete, limits)
    except Exception as fault:
        verdict = _fault(exercise, mode or "unknown", fault)
    if drawn_from is not None:
        verdict = replace(verdict, hidden=drawn_from.fingerprint)
    return verdict.timed(time.monotonic() - started), judged


def _check(
    exercise: Exercise, path: Path, mode: str, plans: Callable[[], list[Plan]], limits: runner.Limits | None
) -> tuple[Verdict, list[Judged]]:
    kernel = exercise.kind == "kernel"
    shape = extract.shape if kernel else extract_functions.shape
    unsolved = shape(workspace.generated_text(exercise), exercise.file, exercise.entry_points)
    try:
        text = extract.read_text(path)
        if shape(text, path.name, exercise.entry_points) == unsolved:
            message = f"{paths.shown(path)} is still as the course wrote it. Fill in the parts marked YOUR CODE, then check again."
            return Verdict(exercise.id, NOT_ATTEMPTED, "not_attempted", message, mode=mode), []
        names = exercise.entry_points
        kernels = extract.extract(text, path.name, names) if kernel else extract_functions.extract(text, path.name, names, exercise.kind)
    except extract.Unreadable as unreadable:
        return Verdict(exercise.id, ERROR, unreadable.cause, str(unreadable), mode=mode), []
    concrete = plans()
    compilation = Compilation(kernels, concrete, path.name) if mode == "cpu" else None  # a GPU has just compiled it
    run = runner.run(kernels, concrete, mode, limits)
    if run.ended == "not started" and run.import_error is None:
        return _machine_fault(exercise, mode, run), []
    judged = [_judged(plan, run.data.get(n), run.errors.get(n)) for n, plan in enumerate(concrete)]
    # memory for rows 2^30 apart is the GPU's to give; without it the interpreter's answer has to do, never the child's word
    unplaced = [
        n for n, j in enumerate(judged) if mode == "gpu" and j.raised and j.raised["type"] == "Unplaceable" and j.plan.case.layout == "far"
    ]
    for n in unplaced:
        judged[n].raised = None
    unchecked = ""
    shared = any(plan.interleavings for plan in concrete)  # a race that a GPU ran has no name, and often no trace
    if mode == "gpu" and (shared or run.case is not None or all(j.passed or not (j.ran or j.raised) for j in judged)):
        interpreted = runner.run(kernels, concrete, "cpu")
        for n in set(unplaced) & interpreted.data.keys():
            judged[n] = judge(concrete[n], interpreted.data[n])
        unchecked = _add_faults(judged, interpreted)
    verdict = _verdict(exercise, path, judged, run, mode)
    if verdict.passed and unchecked:
        verdict = replace(verdict, message=f"{verdict.message} {unchecked}")
    return (_compiled(verdict, compilation) if compilation and verdict.passed else verdict), judged


def _compiled(verdict: Verdict, compilation: Compilation) -> Verdict:
    """A pass in the interpreter, unless the compiler would refuse the kernel."""
    refusal, unknown = compilation.answer()
    if refusal is not None:
        return replace(verdict, status=FAIL, cause="would_not_compile", message=_message("would_not_compile", str(refusal)))
    if unknown:
        return replace(verdict, message=f"{verdict.message} Whether a GPU's compiler takes the kernel could not be asked: {unknown}")
    return verdict


def _add_faults(judged: list[Judged], interpreted: runner.Run) -> str:
    """What only the interpreter sees: a compiled kernel that reads past the end of a tensor mostly gives the right values,
    and one that ends the GPU's context cannot say which lane did it. Returns, in words, what it could not look at."""
    for number, j in enumerate(judged):
        error = interpreted.errors.get(number)
        if error is not None and error["fault"] is not None:
            j.fault, j.ran = error["fault"] | {"words": error["text"]}, True
    unseen = [error for error in interpreted.errors.values() if error["fault"] is None and error["type"] != "Unplaceable"]
    if interpreted.ended == "finished" and not unseen:
        return ""
    why = f"{unseen[0]['type']}: {unseen[0]['text']}" if unseen else f"it {interpreted.ended}"
    return f"Whether it stays inside its tensors could not be looked at in the interpreter ({why})."


def _judged(plan: Plan, data: bytes | None, error: dict | None) -> Judged:
    if data is not None:
        judged = judge(plan, data)
        if error is not None:
            judged.fault = error["fault"] | {"words": error["text"]}
        return judged
    if error is not None and error["fault"] is not None:
        return Judged(plan, fault=error["fault"] | {"words": error["text"]})
    return Judged(plan, ran=False, raised=error)


def _verdict(exercise: Exercise, path: Path, judged: list[Judged], run: runner.Run, mode: str) -> Verdict:
    def verdict(status: str, cause: str, message: str) -> Verdict:
        cases = tuple(_case_result(j, n, run) for n, j in enumerate(judged))
        return Verdict(exercise.id, status, cause, message, cases, mode, run.tier, printed=run.printed.strip())

    over = {
        "flooded": f"It printed more than {runner.Limits.log_bytes >> 20} MB and was stopped.",
        "too many files": "It wrote more files, or larger ones, than a check has room for, and was stopped.",
    }
    if run.ended in over:
        return verdict(FAIL, "output_flood", _message("output_flood", over[run.ended]))
    raised = run.import_error or next((j.raised for j in judged if j.raised), None)
    if raised and raised["type"] == "WrongReturn" and run.import_error is None:
        case = next(j for j in judged if j.raised).plan.case.described()
        return verdict(FAIL, "wrong_return", _message("wrong_return", f"{raised['text']}. In the case {case}."))
    if raised and raised["type"] == "OSError" and "File too large" in raised["text"]:
        return verdict(
            FAIL,
            "output_flood",
            _message("output_flood", f"It wrote more than {runner.Limits.file_bytes >> 20} MB to a file and was stopped."),
        )
    if raised:
        cause = "kernel_raised" if exercise.kind == "kernel" else "function_raised"
        return verdict(ERROR, cause, _raised_message(cause, raised, path.name, next((j for j in judged if j.raised), None)))
    if run.case is not None or not all(j.right for j in judged if j.ran):
        for j in judged:  # how often memory is read matters only where all else is right
            j.fault = None if j.read_too_much else j.fault
    failed = [j for j in judged if j.ran and not j.passed]
    if run.case is not None and not failed:
        cause = "time_limit" if run.ended == "timed out" else _crash_cause(judged[run.case])
        return verdict(FAIL, cause, _message(cause, _ended_evidence(run, judged[run.case].plan)))
    if failed:
        cause = diagnosis.cause_of(judged, parts(exercise))
        return verdict(FAIL, cause, _message(cause, _evidence(judged, failed)))
    left_out = sum(not j.ran for j in judged)
    if left_out > len(run.left_out) + sum(j.plan.case.layout == "far" for j in judged if mode == "gpu" and not j.ran):
        raise RuntimeError("a case was neither run nor left out")  # never a pass for what nobody saw
    message = f"All {len(judged) - left_out} cases are right."
    if left_out:
        message += f" {left_out} could not be run on this machine: not enough memory for rows 2^30 elements apart."
    return verdict(PASS, "none", message)


def _crash_cause(judged: Judged) -> str:
    return "offset_32_bit" if judged.plan.case.layout == "far" else "crash"


def _message(cause: str, evidence: str) -> str:
    headline, question = CAUSES[cause]
    return f"{headline[0].upper()}{headline[1:]}. {evidence} {question}"


def _evidence(judged: list[Judged], failed: list[Judged]) -> str:
    ran = [j for j in judged if j.ran]
    trait = diagnosis.shared_trait(judged, failed)
    common = f", all {trait}" if trait and len(failed) > 1 else ""
    first = failed[0]
    return (
        f"{len(failed)} of {len(ran)} cases wrong{common}; the first: {first.plan.case.described()}: {_first_deviation(first).rstrip('.')}."
    )


def _first_deviation(judged: Judged) -> str:
    if judged.fault:
        return judged.fault["words"]
    if judged.changed:
        name, count = next(iter(judged.changed.items()))
        return f"{count} {'element' if count == 1 else 'elements'} of the input {name} changed"
    if judged.outside and not any(d.kind == "value" for d in judged.deviations):
        name, positions = next(iter(judged.outside.items()))
        shown = ", ".join(str(int(p)) for p in positions[:5]) + (", ..." if len(positions) > 5 else "")
        return f"{len(positions)} elements outside {name} were written, at {shown} from its start ({name} has shape {_shape(judged, name)})"
    return _described(judged.deviations[0])


def _shape(judged: Judged, name: str) -> str:
    return str(judged.plan.tensor(name).shape).replace(",)", ")")


def _described(deviation: Deviation) -> str:
    where = ", ".join(f"{deviation.output}[{', '.join(map(str, index))}]" for index in deviation.where)
    element = where.split("], ")[0].rstrip("]") + "]"
    if deviation.kind == "unwritten":
        what = "all of" if deviation.count == deviation.size else f"{deviation.count} of {deviation.size} elements of"
        return f"{what} {deviation.output} never written, from {element} on"
    also = f" (first: {where})" if deviation.count > 1 else ""
    numbers = f"{element} is {_number(deviation.got)}, it should be {_number(deviation.want)}"
    if deviation.kind == "nan":
        return f"{numbers}; {deviation.count} of {deviation.size} elements{also}"
    return f"{deviation.output} is off by up to {_times(deviation.ratio)} the allowed error in {deviation.count} of {deviation.size} elements{also}; {numbers}"


def _times(ratio: float) -> str:
    return f"{ratio:.1f} x" if ratio < 100 else f"{ratio:.3g} x" if ratio < 1e5 else f"{ratio:.1e} x"


def _number(value: float) -> str:
    return f"{value:.6g}"


def _ended_evidence(run: runner.Run, plan: Plan) -> str:
    at = plan.case.described()
    if run.ended == "timed out":
        return f"It was stopped after the time limit, in the case {at}."
    if run.ended.startswith("too "):
        return f"It took {run.ended} and was stopped, in the case {at}."
    how = f"with signal {run.signal}" if run.signal else f"with `{run.reported}`" if run.reported else "without a word"
    return f"It ended {how} in the case {at}. That is what an address far outside a tensor does."


def _raised_message(cause: str, raised: dict, file: str, judged: Judged | None) -> str:
    where = f"{file}, line {raised['line']}" if raised["line"] else file
    text = " ".join(raised["text"].split())
    text = text if len(text) <= 600 else text[:300] + " ... " + text[-300:]
    at = f" In the case {judged.plan.case.described()}." if judged else ""
    return f"{where}: {raised['type']}: {text}.{at} {CAUSES[cause].question}"


def _case_result(judged: Judged, number: int, run: runner.Run) -> CaseResult:
    case = judged.plan.case
    if judged.passed:
        return CaseResult(case.name, "pass", judged.ratio, case.described())
    if judged.ran:
        return CaseResult(case.name, "fail", judged.ratio or None, f"{case.described()}: {_first_deviation(judged)}")
    if judged.raised:
        return CaseResult(case.name, "fail", None, f"{case.described()}: {judged.raised['type']}")
    if number == run.case:
        return CaseResult(case.name, "fail", None, f"{case.described()}: {run.ended}")
    return CaseResult(case.name, "not run", None, case.described())


def _machine_fault(exercise: Exercise, mode: str, run: runner.Run) -> Verdict:
    last = run.printed.strip().splitlines()[-1:] or ["it printed nothing"]
    message = f"the process that runs kernels did not start ({last[0]}). This is not your kernel. Run `course doctor`, then check again."
    return Verdict(exercise.id, GRADER_FAULT, "not_started", message, mode=mode, printed=run.printed)


def _fault(exercise: Exercise, mode: str, fault: Exception) -> Verdict:
    if not isinstance(fault, OSError):  # a full disk explains itself; anything else is a bug of ours and must be findable
        traceback.print_exception(fault, file=sys.stderr)
    message = f"the grader itself failed ({type(fault).__name__}: {fault}). This is not your kernel. Run `course doctor`, then check again."
    return Verdict(exercise.id, GRADER_FAULT, "grader_fault", message, mode=mode)
