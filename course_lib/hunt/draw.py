"""Which hunts are open to a learner, which one comes next, and which one is today's."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import UTC, date, datetime

from course_lib.hunt import game
from course_lib.hunt.collection import Hunt, read_hunts
from course_lib.learner import progress
from course_lib.learner.progress import HuntRecord

# the exercises of lessons 00 to 02: a class has them behind it after its first days, and every norm kernel after them has the same bugs
DAILY = ("00a", "01b", "02b")
# of which level the next hunt is, by how many were played: an easy one first, and the hard ones are not all left for the end
_LEVELS = (1, 2, 1, 2, 3, 2, 3)


def list_open(passed: set[str]) -> list[Hunt]:
    """The hunts on exercises that were ``passed``, whose code gives nothing away, and the few that are open to everybody."""
    return [h for h in read_hunts().values() if not h.daily and (h.starter or h.exercise_id in passed)]


def find_passed() -> set[str]:
    return {name for name, record in progress.read().items() if record.passed}


def list_waiting(plays: Mapping[str, HuntRecord], passed: set[str]) -> list[Hunt]:
    """The open hunts that are not ended."""
    ended = {record.hunt for record in plays.values() if is_ended(record)}
    return [hunt for hunt in list_open(passed) if hunt.id not in ended]


def count_waiting() -> int:
    return len(list_waiting(progress.read_hunts(), find_passed()))


def say_waiting(count: int) -> str:
    """How many hunts wait, in words."""
    names = ("No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten", "Eleven", "Twelve")
    number = names[count] if count < len(names) else str(count)
    return f"{number} hunt{' waits' if count == 1 else 's wait'} for you."


def is_ended(record: HuntRecord) -> bool:
    return game.replay(record.level, record.moves).ended


def find_unfinished(plays: Mapping[str, HuntRecord], passed: set[str], exercise_id: str | None = None) -> str | None:
    """The play that was begun last and is not ended: of an exercise, if one is named; else also a daily one, on its day."""
    known = {hunt.id: hunt for hunt in list_open(passed)}
    begun = []
    for play, record in plays.items():
        if play == record.hunt:
            is_wanted = play in known and exercise_id in (None, known[play].exercise_id)
        else:
            is_wanted = exercise_id is None and play == name_day() and record.hunt in read_hunts()
        if is_wanted and not is_ended(record):
            begun.append((record.started_at, play))
    return max(begun)[1] if begun else None


def draw(waiting: list[Hunt], played: int) -> Hunt | None:
    """The next of the ``waiting`` hunts for somebody who has ended ``played``; the same until that one is ended."""
    wanted = _LEVELS[played % len(_LEVELS)]
    return min(waiting, key=lambda hunt: (abs(hunt.level - wanted), _mix(f"next {hunt.id}")), default=None)


def name_day(day: date | None = None) -> str:
    """The day in UTC, which is the same for everybody: "2026-11-23"."""
    return (day or datetime.now(UTC).date()).isoformat()


def draw_daily(day: str) -> Hunt:
    """The hunt of a day, the same in every copy of this version of the course.

    By the smallest hash of day and name, so that a hunt that is added or taken away changes only the days that it wins or has won.
    """
    pool = [hunt for hunt in read_hunts().values() if hunt.daily]
    return min(pool, key=lambda hunt: _mix(f"{day} {hunt.id}"))


def _mix(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=16).digest()
