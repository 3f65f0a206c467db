"""Check one exercise file. This is the only entry to grading for the command line, the panels and
the tests."""

from __future__ import annotations

import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from course_lib.base.errors import CourseError, EnvironmentFault
from course_lib.base.installation import environment_fault
from course_lib.base.tab import IN_TAB
from course_lib.base.translation import gettext as _
from course_lib.catalog import Exercise, texts
from course_lib.grading import faults, warming
from course_lib.grading.kind import find_kind
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
    take_cases: Callable[[list[Judged]], None] | None = None,
) -> Verdict:
    """Grade ``path`` (the learner's own file if None) as a solution of ``exercise``.

    Args:
        mode: "cpu" (interpreter) or "gpu" (compiled), for kernels; None takes what this machine
            has. Functions run on the CPU.
        seed: determines the inputs. A learner's check always uses 0, so that two checks of one file
            agree.
        secret: an instructor's secret. Its cases have other shapes and values than the learner's
            own check, the same ones each time.
        limits: time and memory; None takes those of the mode.
        required_tier: the weakest isolation that is accepted, a name from
            ``course_lib.sandbox.isolation.TIERS``. A machine without a tier at least as strong does
            not run the submission. None takes the best tier that the machine has.
        tell_first_failure: called at most once, in the caller's thread, as soon as the first case
            is judged wrong; other cases may still run. It gets one line that says which case, which
            output and by how much. The cause comes with the verdict. It is not called for hidden
            cases. Whoever gives it waits for the verdict: the check then does more at the same
            time.
        take_cases: called with the judged cases and their outputs before the verdict is returned;
            with an empty list if nothing was run. The case that the verdict shows is among them.

    Returns: the verdict. No content of a learner's file makes this function raise. A bug in the
    grader gives the verdict "grader fault", which is not counted against the learner.

    Raises: EnvironmentFault if the machine, the installation or a setting prevents the check (no
    GPU although ``COURSE_DEVICE`` asks for one, a package that cannot be imported, a full disk, no
    process can be started, no isolation as good as ``required_tier``): there is no verdict then,
    and nothing to record. CourseError if Triton was imported before the course. ValueError if the
    secret is empty.
    """
    if secret is not None and not secret:
        raise ValueError("the secret is empty")
    started = time.monotonic()
    judged: list[Judged] = []
    fingerprint = ""
    try:
        # imported here so that a NumPy that cannot be imported is reported like any other fault of
        # the machine
        from course_lib.grading.cases.hidden import Secret
        from course_lib.grading.grade import grade
        from course_lib.sandbox.isolation import LIMITS
        from course_lib.sandbox.jobs import require_tier

        drawn_from = None if secret is None else Secret(secret)
        fingerprint = drawn_from.fingerprint if drawn_from else ""
        kind = find_kind(exercise.kind)
        if IN_TAB and kind.needs_pytorch:
            raise EnvironmentFault(
                _(
                    "it is graded with PyTorch, which a browser tab does not have. Open this lesson"
                    " on your machine to check it."
                )
            )
        mode = kind.choose_mode(mode)
        warming.prepare(mode)
        with require_tier(required_tier or LIMITS), warnings.catch_warnings():
            # Python's warnings about the file are not part of the verdict. Before 3.12 the category
            # was DeprecationWarning.
            warnings.simplefilter("ignore", SyntaxWarning)
            warnings.filterwarnings("ignore", "invalid escape sequence", DeprecationWarning)
            verdict, judged = grade(
                exercise,
                path or texts.find_file(exercise),
                mode,
                seed,
                drawn_from,
                limits,
                tell_first_failure,
            )
    except Exception as error:
        if (fault := environment_fault(error)) is not None:
            file = fault.printed and faults.keep_fault(exercise.id, fault.printed)[0]
            where_kept = _(" All that it printed is in {file}.").format(file=file) if file else ""
            words = _("{id} was not checked: {fault}").format(id=exercise.id, fault=fault)
            raise EnvironmentFault(f"{words}{where_kept}") from error
        if isinstance(error, CourseError):
            raise
        verdict = report_grader_fault(
            exercise.id, mode or "unknown", error, hidden=secret is not None
        )
    if take_cases is not None:
        take_cases(judged)
    return replace(verdict, hidden=fingerprint).timed(time.monotonic() - started)


def report_grader_fault(exercise_id: str, mode: str, bug: Exception, hidden: bool) -> Verdict:
    """Write the verdict for a bug in the course. The traceback goes to a file, not to the terminal.

    With hidden cases the verdict leaves out the exception's words, which could hold values of a
    case.
    """
    bug_text = type(bug).__name__ if hidden else f"{type(bug).__name__}: {bug}"
    file, last = faults.keep_fault(exercise_id, "".join(traceback.format_exception(bug)))
    message = _(
        "the grader itself failed ({what}). This is not your kernel, and nothing is recorded."
        " Please report it with {file}; `course doctor` says whether something is wrong with this"
        " machine."
    ).format(what=bug_text, file=file or _("the lines below"))
    return Verdict(
        exercise_id,
        GRADER_FAULT,
        "grader_fault",
        message,
        mode=mode,
        printed="" if hidden else last,
    )
