"""Read a submission in a confined process: parsing a text can take any time and memory, and an
author may intend that."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from course_lib.base import paths
from course_lib.base.errors import CourseError, EnvironmentFault
from course_lib.base.translation import gettext as _
from course_lib.base.translation import mark as N_
from course_lib.base.worker import WorkerFailure
from course_lib.catalog import Exercise
from course_lib.catalog.texts import find_file, make_unsolved_text
from course_lib.grading.kind import load_kinds
from course_lib.grading.submission import attempt, source
from course_lib.grading.submission.places import Span
from course_lib.grading.submission.source import Kernels, Unreadable
from course_lib.grading.verdict import Oddity
from course_lib.sandbox import jobs
from course_lib.sandbox.jobs import JobFailure, ResourceLimits
from course_lib.sandbox.machine import Exchange, Machine, ServerKind
from course_lib.sandbox.stage import Stage

KIND = ServerKind("course_lib.grading.submission.reader:make_machine")
SECONDS = 2.0  # far more than the file of an exercise takes
_LIMITS = ResourceLimits(
    case=SECONDS,
    total=SECONDS,
    address_bytes=4 << 30,
    memory_bytes=1 << 30,
    resident_bytes=1 << 30,
    disk_bytes=32 << 20,
)


class NotAttempted(CourseError):
    """The learner's file is still as the course wrote it."""


def read(
    exercise: Exercise,
    text: str,
    name: str,
    *,
    unsolved: str | None = None,
    given: str | None = None,
) -> Kernels | None:
    """Return the code of the exercise's entry points out of the text of a file; None while the text
    is as the course wrote it.

    ``name`` is the file's, for messages. For a step of a lesson, ``unsolved`` is the text as the
    course wrote it, and ``given`` are the imports that are made for its cell.

    Raises: Unreadable if it cannot be parsed, or lacks an entry point; EnvironmentFault if this
    machine starts no process for it, or a package that it imports is missing though the course
    needs it.
    """
    unsolved = make_unsolved_text(exercise) if unsolved is None else unsolved
    job = {
        "exercise": asdict(exercise),
        "unsolved": unsolved,
        "text": text,
        "name": name,
        "given": given,
    }
    try:
        answer = jobs.ask(KIND, job, _LIMITS)
    except WorkerFailure as failed:
        raise jobs.describe_not_started(N_("reads your file"), failed) from None
    except JobFailure as failure:
        answer = failure.answer
        if answer.stage is Stage.STARTING:
            raise jobs.describe_not_started(N_("reads your file"), answer) from None
        raise Unreadable(
            "too_complex",
            _(
                "{name} cannot be read: it takes more than {seconds} s, or more memory than a file"
                " of an exercise should. Such a file is a page of code; take out what is nested"
                " deeply, or written out thousands of times."
            ).format(name=name, seconds=f"{SECONDS:g}"),
        ) from None
    if "unreadable" in answer:
        refusal = answer["unreadable"]
        span = Span(**refusal["span"]) if refusal["span"] else None
        raise Unreadable(refusal["cause"], refusal["message"], refusal["what"], span)
    if "fault" in answer:
        raise EnvironmentFault(answer["fault"])
    kernels = answer["kernels"]
    if kernels is None:
        return None
    oddities = tuple(Oddity(**oddity) for oddity in kernels["oddities"])
    return Kernels(
        kernels["source"],
        tuple(kernels["names"]),
        kernels["rules"],
        oddities,
        kernels["rest"],
        kernels["rest_line"],
    )


def read_own_attempt(exercise: Exercise) -> tuple[str, Kernels]:
    """Return the text of the learner's own file, and the code that is graded.

    Raises: NotAttempted while it is as the course wrote it; Unreadable and EnvironmentFault as
    :func:`read`.
    """
    path = find_file(exercise)
    text = source.read_text(path, _("`course reset {id}` writes it anew.").format(id=exercise.id))
    kernels = read(exercise, text, path.name)
    if kernels is None:
        raise NotAttempted(
            _("{file} is still as the course wrote it.").format(file=paths.shown(path))
        )
    return text, kernels


def make_machine(_argument: str) -> Machine:
    return _Reader()


class _Reader(Machine):
    """Parses a text, compares it with the unsolved one, and cuts the code out. Nothing of the text
    is run."""

    def __init__(self) -> None:
        load_kinds()

    def work(self, job: dict[str, Any], exchange: Exchange) -> None:
        exchange.begin_case(0)
        listed: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in job["exercise"].items()
        }
        try:
            exercise = Exercise(**listed)
            unsolved = job["unsolved"]
            text = job["text"]
            name = job["name"]
            kernels = attempt.read_attempt(exercise, unsolved, text, name, job["given"])
        except Unreadable as unreadable:
            exchange.write_answer({"unreadable": attempt.describe_refusal(unreadable)})
        except EnvironmentFault as fault:
            exchange.write_answer({"fault": str(fault)})
        else:
            exchange.write_answer({"kernels": None if kernels is None else asdict(kernels)})
