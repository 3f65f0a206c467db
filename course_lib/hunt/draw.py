"""Choose the hunts that are open to a learner, the next one, and today's."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import UTC, date, datetime

from course_lib.base.translation import gettext as _
from course_lib.hunt import game
from course_lib.hunt.collection import Hunt, read_hunts
from course_lib.learner import progress
from course_lib.learner.progress import HuntRecord

# Exercises of lessons 00 to 02: a class has done them after its first days, and later norm kernels
# have the same bugs.
DAILY = ("00a", "01b", "02b")
# Level of the next hunt, by the number of hunts played: an easy one first, and some hard ones
# before the end.
_LEVELS = (1, 2, 1, 2, 3, 2, 3)


def list_open(passed: set[str]) -> list[Hunt]:
    """List the hunts on exercises that the learner has ``passed``, so that the code gives no
    solution away, and the starters."""
    return [
        h for h in read_hunts().values() if not h.daily and (h.starter or h.exercise_id in passed)
    ]


def find_passed() -> set[str]:
    return {name for name, record in progress.read().items() if record.passed}


def list_waiting(plays: Mapping[str, HuntRecord], passed: set[str]) -> list[Hunt]:
    """List the open hunts that have not ended."""
    ended = {record.hunt for record in plays.values() if is_ended(record)}
    return [hunt for hunt in list_open(passed) if hunt.id not in ended]


def count_waiting() -> int:
    return len(list_waiting(progress.read_hunts(), find_passed()))


def say_waiting(count: int) -> str:
    """Write in words how many hunts wait."""
    if count < 2:
        return _("One hunt waits for you.") if count else _("No hunts wait for you.")
    names = (
        "Two",
        "Three",
        "Four",
        "Five",
        "Six",
        "Seven",
        "Eight",
        "Nine",
        "Ten",
        "Eleven",
        "Twelve",
    )
    number = names[count - 2] if count - 2 < len(names) else str(count)
    return _("{numbers} hunts wait for you.").format(numbers=number, number_count=count)


def is_ended(record: HuntRecord) -> bool:
    return game.replay(record.level, record.moves).ended


def find_unfinished(
    plays: Mapping[str, HuntRecord], passed: set[str], exercise_id: str | None = None
) -> str | None:
    """Find the play that was begun last among those that have not ended.

    With ``exercise_id`` only hunts on this exercise count. Without it today's hunt counts as well,
    but not that of another day.
    """
    open_hunts = {hunt.id: hunt for hunt in list_open(passed)}
    begun = []
    for play, record in plays.items():
        if play == record.hunt:
            is_wanted = play in open_hunts and exercise_id in (None, open_hunts[play].exercise_id)
        else:
            is_wanted = exercise_id is None and play == name_day() and record.hunt in read_hunts()
        if is_wanted and not is_ended(record):
            begun.append((record.started_at, play))
    return max(begun)[1] if begun else None


def draw(waiting: list[Hunt], played: int) -> Hunt | None:
    """Choose the next of the ``waiting`` hunts after ``played`` ones have ended. The choice stays
    the same until this hunt ends."""
    level = _LEVELS[played % len(_LEVELS)]
    return min(
        waiting, key=lambda hunt: (abs(hunt.level - level), _mix(f"next {hunt.id}")), default=None
    )


def name_day(day: date | None = None) -> str:
    """Return the day in UTC, so that it is the same everywhere: "2026-11-23"."""
    return (day or datetime.now(UTC).date()).isoformat()


def draw_daily(day: str) -> Hunt:
    """Return the hunt of a day, the same in every copy of this version of the course.

    It is the one with the smallest hash of day and name. So a hunt that is added or removed changes
    only the days on which it has the smallest hash.
    """
    pool = [hunt for hunt in read_hunts().values() if hunt.daily]
    return min(pool, key=lambda hunt: _mix(f"{day} {hunt.id}"))


def _mix(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=16).digest()
