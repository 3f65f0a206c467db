"""What a learner has made in the course: the code that passes, and the hunts that they won."""

from __future__ import annotations

import contextlib

from course_lib import catalog
from course_lib.catalog import Exercise
from course_lib.grading.public import PASS, NotAttempted, Unreadable, read_own_attempt
from course_lib.hunt.game import replay
from course_lib.learner import progress


def list_own_code() -> list[tuple[Exercise, str]]:
    """Return each exercise whose last check was a pass, in the course's order, with the learner's
    code. An exercise whose file was taken back, or cannot be read any more, is left out."""
    records = progress.read()
    rows = []
    for exercise in catalog.exercises().values():
        if exercise.id in records and records[exercise.id].last.get("status") == PASS:
            with contextlib.suppress(NotAttempted, Unreadable):
                rows.append((exercise, read_own_attempt(exercise)[1].source))
    return rows


def count_hunts() -> tuple[int, int]:
    """Return how many hunts the learner has won, and how many they began."""
    hunts = progress.read_hunts().values()
    return sum(replay(hunt.level, hunt.moves).won for hunt in hunts), len(hunts)
