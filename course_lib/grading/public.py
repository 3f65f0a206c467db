"""The part of the grader that lessons, panels and pictures use. They import no other module of
it."""

from __future__ import annotations

from course_lib import catalog
from course_lib.exercises import find_parts
from course_lib.grading.cases.buffers import Tensor, compute_strides, size_guard
from course_lib.grading.cases.case import Case, SharedCase, describe_name
from course_lib.grading.cases.plan import Plan
from course_lib.grading.check import check
from course_lib.grading.counting import list_uncounted
from course_lib.grading.execution.runner import Run, run
from course_lib.grading.judging.causes import CAUSES, make_sentence
from course_lib.grading.judging.elements import Element
from course_lib.grading.judging.judge import Judged
from course_lib.grading.kind import find_kind, find_mode
from course_lib.grading.report import (
    SIGNS,
    Report,
    describe_count,
    describe_count_place,
    describe_status,
    format_count_value,
    list_count_rows,
    make_report,
    quote_line,
)
from course_lib.grading.step_slips import KnownSlip
from course_lib.grading.steps import Task, TryCase, check_step, make_try
from course_lib.grading.submission.reader import NotAttempted, read_own_attempt
from course_lib.grading.submission.source import Kernels, Unreadable, read_text
from course_lib.grading.trials import run_cases
from course_lib.grading.verdict import (
    ERROR,
    FAIL,
    GRADER_FAULT,
    NOT_ATTEMPTED,
    PASS,
    KernelCount,
    Verdict,
    from_dict,
)
from course_lib.grading.warming import warm as warm_checks
from course_lib.sandbox.jobs import ResourceLimits

__all__ = [
    "ERROR", "FAIL", "GRADER_FAULT", "NOT_ATTEMPTED", "PASS", "SIGNS", "Case", "Element", "Judged",
    "KernelCount", "Kernels", "KnownSlip",
    "NotAttempted", "Plan", "Report", "ResourceLimits", "Run", "SharedCase", "Task", "Tensor",
    "TryCase", "Unreadable", "Verdict",
    "check", "check_step", "compute_strides", "describe_count",
    "describe_count_place", "describe_name", "describe_status", "find_kind", "find_mode",
    "format_count_value", "from_dict", "list_cases", "list_count_rows", "list_uncounted",
    "make_report",
    "make_sentence", "make_try", "name_cause", "quote_line", "read_own_attempt", "read_text", "run",
    "run_cases", "size_guard",
    "warm_checks",
]  # fmt: skip


def list_cases(exercise_id: str) -> tuple[Case, ...]:
    """Return the cases that a learner's check of an exercise runs, in order.

    Raises: CourseError, which lists the exercises, if there is none of this name.
    """
    return tuple(
        case for part in find_parts(catalog.get(exercise_id)).values() for case in part.battery
    )


def name_cause(cause: str, exercise: catalog.Exercise) -> tuple[str, str]:
    """Return the headline of a cause, and the question that leads to the remedy, as a verdict on
    this exercise words them."""
    return CAUSES[cause].word_for(exercise.kind, exercise.entry_points)
