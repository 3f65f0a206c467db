"""What follows a verdict on the learner's own file, for panel, command line and watch: it is saved,
and after a pass another exercise comes next."""

from __future__ import annotations

from dataclasses import dataclass

from course_lib import catalog
from course_lib.base import paths
from course_lib.base.translation import gettext as _
from course_lib.catalog import Exercise
from course_lib.grading.verdict import Verdict
from course_lib.learner import progress
from course_lib.learner.progress import ExerciseProgress


@dataclass(frozen=True)
class Followup:
    """What follows a verdict.

    ``complaint`` says why the verdict could not be saved; empty if it was. After a pass that was
    saved, ``upcoming`` is the exercise that comes next, and ``all_passed`` is True if there is
    none.
    """

    complaint: str = ""
    upcoming: Exercise | None = None
    all_passed: bool = False


def take_verdict(verdict: Verdict) -> Followup:
    """Save a verdict, and say what follows it. It stands, and is shown, even where the progress
    file cannot be written."""
    try:
        progress.note_verdict(verdict)
    except OSError as error:
        words = _("this verdict could not be saved in {file}: {error}.")
        return Followup(
            words.format(file=paths.shown(progress.file()), error=error.strerror or error)
        )
    if not verdict.passed:
        return Followup()
    upcoming = find_next_exercise(progress.read())
    return Followup(upcoming=upcoming, all_passed=upcoming is None)


def find_next_exercise(
    records: dict[str, ExerciseProgress], after: Exercise | None = None
) -> Exercise | None:
    """Return the exercise that comes next: the first one in the order of the course that is not
    passed; None if all are.

    It is never an optional task. A learner who has left out exercises that are not on the path of
    six hours, and has passed no other, gets the next one of the path. Who began with a later
    exercise gets what follows it, and the earlier ones last.

    Args:
        records: what ``progress.read()`` returned.
        after: begin behind this exercise, and go on from the first one; it is the answer only if
            nothing else is left.
    """
    order = _list_from_first_passed(records)
    start = order.index(after) + 1 if after else 0
    ordered = [exercise for exercise in order[start:] + order[:start] if not exercise.optional]
    upcoming = next((e for e in ordered if not _is_passed(e, records)), None)
    on_path = find_next_on_path(records)
    left_out = (
        upcoming and on_path and any(_is_passed(e, records) for e in order[order.index(upcoming) :])
    )
    return on_path if left_out and not after else upcoming


def _list_from_first_passed(records: dict[str, ExerciseProgress]) -> list[Exercise]:
    """Return the exercises in the order of the course, from the first one that is passed on; those
    before it come last."""
    order = list(catalog.exercises().values())
    start = next((place for place, e in enumerate(order) if _is_passed(e, records)), 0)
    return order[start:] + order[:start]


def find_next_on_path(records: dict[str, ExerciseProgress]) -> Exercise | None:
    """Return the first exercise of the short path that is not passed; None if there is none, or if
    one that is not on the path is passed."""
    required = [exercise for exercise in _list_from_first_passed(records) if not exercise.optional]
    if any(_is_passed(exercise, records) and not exercise.short_path for exercise in required):
        return None
    return next(
        (
            exercise
            for exercise in required
            if exercise.short_path and not _is_passed(exercise, records)
        ),
        None,
    )


def _is_passed(exercise: Exercise, records: dict[str, ExerciseProgress]) -> bool:
    return exercise.id in records and records[exercise.id].passed
