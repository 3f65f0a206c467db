"""Checks one exercise file: the only entry to grading for the command line, the panels and the tests."""

from __future__ import annotations

import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from course_lib.base import runtime as course_runtime
from course_lib.base.errors import CourseError, EnvironmentFault, environment_fault
from course_lib.catalog import Exercise, texts
from course_lib.grading import faults
from course_lib.grading.verdict import GRADER_FAULT, Verdict

if TYPE_CHECKING:
    from course_lib.grading.judging.judge import Judged
    from course_lib.sandbox.jobs import ResourceLimits


def check(
    exercise: Exercise,
    path: Path | None = None,
    *,
    mode: str | None = None,
    seed: int = 0,
    secret: str | bytes | None = None,
    limits: ResourceLimits | None = None,
    required_tier: str | None = None,
    tell_first_failure: Callable[[str], None] | None = None,
) -> Verdict:
    """Grade ``path`` (the learner's own file if None) as a solution of ``exercise``.

    Args:
        mode: "cpu" (interpreter) or "gpu" (compiled), for kernels; None takes what this machine has. Functions run on the CPU.
        seed: of the inputs; a learner's check always uses 0, so that two checks of one file agree.
        secret: an instructor's. Its cases have other shapes and values than the learner's own check, the same ones each time.
        limits: time and memory; None takes those of the mode.
        required_tier: of isolation, as ``course_lib.sandbox.isolation.TIERS`` names them; a machine that cannot shut the
            submission in at least so well does not run it. None takes the best that the machine has.
        tell_first_failure: called at most once, in the caller's thread, as soon as the first case is judged wrong and others may
            still run: with one line that says which case, which output and by how much. The cause comes with the verdict. Of
            hidden cases nothing is told.

    Returns: the verdict. Nothing a learner's file holds makes this function raise; a bug of the grader is the verdict
    "grader fault", never the learner's.

    Raises: EnvironmentFault if the machine, the installation or a setting does not let the file be checked (no GPU although
    ``COURSE_DEVICE`` asks for one, a package that cannot be imported, a full disk, no process can be started, no isolation as good as ``required_tier``): there is no
    verdict then, and nothing to record. CourseError if Triton was imported before the course. ValueError if the secret is
    empty.
    """
    return check_with_cases(
        exercise,
        path,
        mode=mode,
        seed=seed,
        secret=secret,
        limits=limits,
        required_tier=required_tier,
        tell_first_failure=tell_first_failure,
    )[0]


def check_with_cases(
    exercise: Exercise,
    path: Path | None = None,
    *,
    mode: str | None = None,
    seed: int = 0,
    secret: str | bytes | None = None,
    limits: ResourceLimits | None = None,
    required_tier: str | None = None,
    tell_first_failure: Callable[[str], None] | None = None,
) -> tuple[Verdict, list[Judged]]:
    """As :func:`check`, with the judged cases and their outputs; no cases where nothing was run."""
    if secret is not None and not secret:
        raise ValueError("the secret is empty")
    started = time.monotonic()
    judged: list[Judged] = []
    fingerprint = ""
    try:
        # here, not above: where NumPy cannot be imported, that is said like everything else that is wrong with a machine
        from course_lib.grading.cases.hidden import Secret
        from course_lib.grading.grade import grade
        from course_lib.sandbox.isolation import LIMITS
        from course_lib.sandbox.jobs import require_tier

        drawn_from = None if secret is None else Secret(secret)
        fingerprint = drawn_from.fingerprint if drawn_from else ""
        mode = exercise.kind if exercise.kind != "kernel" else mode or course_runtime.current().mode
        with require_tier(required_tier or LIMITS), warnings.catch_warnings():
            # what Python thinks of the file's style is no part of the verdict; the second is the first's name before Python 3.12
            warnings.simplefilter("ignore", SyntaxWarning)
            warnings.filterwarnings("ignore", "invalid escape sequence", DeprecationWarning)
            verdict, judged = grade(
                exercise, path or texts.find_file(exercise), mode, seed, drawn_from, limits, tell_first_failure
            )
    except Exception as error:
        if (fault := environment_fault(error)) is not None:
            file = fault.printed and faults.keep_fault(exercise.id, fault.printed)[0]
            kept = f" All that it printed is in {file}." if file else ""
            raise EnvironmentFault(f"{exercise.id} was not checked: {fault}{kept}") from error
        if isinstance(error, CourseError):
            raise
        verdict = report_grader_fault(exercise.id, mode or "unknown", error, hidden=secret is not None)
    return replace(verdict, hidden=fingerprint).timed(time.monotonic() - started), judged


def report_grader_fault(exercise_id: str, mode: str, bug: Exception, hidden: bool) -> Verdict:
    """A bug of the course's. Its traceback is kept, and does not flood the terminal; of hidden cases it could hold values."""
    what = type(bug).__name__ if hidden else f"{type(bug).__name__}: {bug}"
    file, last = faults.keep_fault(exercise_id, "".join(traceback.format_exception(bug)))
    message = (
        f"the grader itself failed ({what}). This is not your kernel, and nothing is recorded. "
        f"Please report it with {file or 'the lines below'}; `course doctor` says whether something is wrong with this machine."
    )
    return Verdict(exercise_id, GRADER_FAULT, "grader_fault", message, mode=mode, printed="" if hidden else last)
