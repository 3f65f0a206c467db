"""The record of a class over all weeks: each learner's files, the exercises that were asked for,
and the rules for points.

Each run adds to the record, and changes no exercise that it was not asked to grade. The record
names verdicts by their keys in the journal. It is written before the gradebook and the pages, which
are made from it. If a run is repeated, the record stays the same.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from course_lib import catalog
from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.base.translation import gettext as _
from course_lib.base.translation import mark as N_
from course_lib.catalog import Exercise
from course_lib.classroom.lateness import LateRule
from course_lib.classroom.out_folder import write_lines
from course_lib.classroom.similarity import Alike

RECORD = "record.json"
_VERSION = 1
MAPPING_CLOCK = N_("the mapping's time")


@dataclass(frozen=True)
class Rules:
    """The rules that turn verdicts into points.

    ``weights`` chooses the points of an exercise, see :func:`course_lib.classroom.marking.weigh`.
    ``late`` says what lateness costs. If ``partial`` is true, a failed exercise gets points for its
    right cases. If ``absent_zero`` is true, an exercise that was asked for while the learner was
    absent gets 0 points; else it does not count yet.
    """

    weights: str = "difficulty"
    late: LateRule = field(default_factory=LateRule)
    partial: bool = False
    absent_zero: bool = False

    def describe(self) -> str:
        return (
            f"weights {self.weights}, {'late ' if self.late else ''}{self.late.describe()},"
            f" {'partial points' if self.partial else 'no partial points'}"
            f"{', 0 for who is absent' if self.absent_zero else ''}"
        )


@dataclass(frozen=True)
class Attempt:
    """A file that a learner handed in for an exercise.

    ``file`` is the hash of its bytes, and ``key`` is the key of its verdict in the journal. Both
    are "" for a file that cannot be read; then ``reason`` explains why. ``version`` is the
    grader's. ``fault`` explains why the file could not be graded yet, or is "". ``time`` and
    ``due``, the deadline, are in seconds since 1970, or 0 if not known. ``clock`` names the source
    of the time, or explains why the time is unknown. ``vouched`` is true if the system that took
    the file says when it came, or whether it is late: only then lateness costs points. The time of
    a file on a disk or in an archive is the learner's, or that of a copy. ``marked_late`` is true
    if the system calls the file late. ``published`` names the published solution that the file
    equals or resembles, or is ""; ``published_share`` and ``published_size`` are those of
    :class:`~course_lib.classroom.similarity.Resemblance`. ``is_comparable`` is true if the file has
    enough code of its own to be compared.
    """

    file: str
    key: str
    version: str
    reason: str = ""
    fault: str = ""
    time: float = 0.0
    clock: str = ""
    due: float = 0.0
    marked_late: bool = False
    published: str = ""
    published_share: float = 0.0
    published_size: int = 0
    is_comparable: bool = False
    vouched: bool = False


@dataclass
class Person:
    """A learner. ``attempts`` has by exercise all different files that were handed in, ``marks``
    the marks that the last run wrote, ``present`` the exercises that were asked for in the runs
    whose folder had something of the learner. ``notes`` has by exercise the remarks of the last run
    that asked for it, ``reasons`` why that run had no file, or "". ``problem`` and
    ``feedback_prefix``, the beginning of the names of feedback files, are of the last run."""

    key: str
    learner: str
    id: str = ""
    login: str = ""
    address: str = ""
    feedback_prefix: str = ""
    source: str = ""
    problem: str = ""
    notes: dict[str, list[str]] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    predictions: dict[str, bool] = field(default_factory=dict)
    attempts: dict[str, list[Attempt]] = field(default_factory=dict)
    marks: dict[str, dict[str, Any]] = field(default_factory=dict)
    present: list[str] = field(default_factory=list)

    @property
    def submitted(self) -> float:
        """The latest time of all files, in seconds since 1970; 0 if none is known."""
        return max(
            (attempt.time for attempts in self.attempts.values() for attempt in attempts),
            default=0.0,
        )

    def add(self, exercise: str, attempt: Attempt) -> None:
        """Add a file, or update its entry. If the file has two times, keep the one that a system
        vouches for, else the earlier one, because each download sets a new time."""
        attempts = self.attempts.setdefault(exercise, [])
        for number, stored in enumerate(attempts):
            if stored.file == attempt.file:
                preferred = min(
                    (stored, attempt),
                    key=lambda candidate: (not candidate.vouched, candidate.time or math.inf),
                )
                attempts[number] = replace(
                    attempt, time=preferred.time, clock=preferred.clock, vouched=preferred.vouched
                )
                return
        attempts.append(attempt)


@dataclass
class Record:
    """The record of the whole class.

    ``asked`` has the exercises that count. ``people`` has the learners by key. ``alike`` has by
    exercise the groups of similar files. ``regrades`` has a line per mark that changed after it was
    written.
    """

    rules: Rules | None = None
    asked: set[str] = field(default_factory=set)
    people: dict[str, Person] = field(default_factory=dict)
    alike: dict[str, list[Alike]] = field(default_factory=dict)
    regrades: list[dict[str, Any]] = field(default_factory=list)

    @property
    def exercises(self) -> list[Exercise]:
        """The exercises that were asked for, and the optional tasks that somebody handed in."""
        handed_in = {name for person in self.people.values() for name in person.attempts}
        asked_exercises = [
            exercise for exercise in catalog.exercises().values() if exercise.id in self.asked
        ]
        return [
            exercise
            for exercise in asked_exercises
            if not exercise.optional or exercise.id in handed_in
        ]

    def list_files(self) -> set[str]:
        """Return the hashes of all files that were handed in."""
        return {
            attempt.file
            for person in self.people.values()
            for attempts in person.attempts.values()
            for attempt in attempts
        }

    def __iter__(self) -> Iterator[Person]:
        return iter(
            sorted(self.people.values(), key=lambda person: (person.learner.casefold(), person.key))
        )

    def find(
        self, key: str, learner: str, number: str = "", present: Sequence[str] = ()
    ) -> Person | None:
        """Return the learner of a key; else the one learner whom an earlier week knew by another
        key; else None.

        Moodle's numbers differ between assignments, so a learner of Moodle is found by name, or by
        a mapping with the name and the number of before. Canvas gives a learner the same ``number``
        in all assignments, and a mapping may have it as the id.
        A learner whose own key is among ``present`` is not found by another key.

        Args:
            key: the learner's key in this run.
            learner: the learner's name.
            number: the number in the download, or the id in the mapping.
            present: the keys of all learners in this run.
        """
        same = self.find_all(key, learner, number, present)
        return same[0] if len(same) == 1 else None

    def find_all(
        self, key: str, learner: str, number: str = "", present: Sequence[str] = ()
    ) -> list[Person]:
        """Return all learners whom :meth:`find` may mean."""
        if key in self.people:
            return [self.people[key]]
        return [
            person
            for person in self.people.values()
            if person.key not in present and _is_same(person, key, learner, number)
        ]

    def write(self, out: Path) -> None:
        whole = {
            "version": _VERSION,
            "rules": asdict(self.rules or Rules()),
            "asked": sorted(self.asked),
            "people": [asdict(person) for person in self],
            "alike": {
                exercise: [asdict(group) for group in groups]
                for exercise, groups in sorted(self.alike.items())
            },
            "regrades": self.regrades,
        }
        write_lines(out / RECORD, [json.dumps(whole, ensure_ascii=True, indent=1) + "\n"])


def _is_same(person: Person, key: str, learner: str, number: str) -> bool:
    """Return whether a recorded learner is the same as one with another key. The first word of a
    key names the layout of the download."""
    layouts = {person.key.split()[0], key.split()[0]}
    # of two learners of one name each is shown with the number
    names = (person.learner.removesuffix(f" ({person.id})"), learner.removesuffix(f" ({number})"))
    same_number = number != "" and person.id == number
    return (
        (layouts == {"moodle"} and names[0] == names[1])
        or (layouts == {"canvas", "name"} and same_number)
        # a mapping that says which of Moodle's learners of one name is meant; a number alone may
        # be another's in another assignment
        or (layouts == {"moodle", "name"} and names[0] == names[1] and same_number)
    )


def read_record(out: Path) -> Record:
    """Return the record in a results' folder, or an empty record if the folder has none.

    Raises: CourseError if the file is damaged or of another version.
    """
    try:
        whole = json.loads((out / RECORD).read_text(encoding="utf-8"))
        if whole["version"] != _VERSION:
            raise ValueError("another version")
        people = [_read_person(person, whole["asked"]) for person in whole["people"]]
        by_key = {person.key: person for person in people}
        alike = {
            exercise: [Alike(tuple(group["learners"]), group["shared"]) for group in groups]
            for exercise, groups in whole["alike"].items()
        }
        asked_ids = set(whole["asked"])
        rules = _read_rules(whole["rules"])
        return Record(rules, asked_ids, by_key, alike, whole["regrades"])
    except FileNotFoundError:
        return Record()
    except (ValueError, KeyError, TypeError, AttributeError):
        raise CourseError(
            _(
                "{file} is damaged, or of another version of the course. `--anew` writes the"
                " results from this run alone."
            ).format(file=paths.shown(out / RECORD))
        ) from None


def _read_rules(plain: dict[str, Any]) -> Rules:
    late = plain.pop("late")
    # a record from before 2026-11-28 has the price of a day alone
    return Rules(late=LateRule(**(late if isinstance(late, dict) else {"percent": late})), **plain)


def _read_person(plain: dict[str, Any], asked_ids: list[str]) -> Person:
    attempts = {
        name: [_read_attempt(attempt) for attempt in entries]
        for name, entries in plain["attempts"].items()
    }
    # a record from before 2026-11-28 says of nobody that they were absent
    plain.setdefault("present", asked_ids)
    # a record from before 2026-11-29 has the remarks of the last run alone, on no exercise
    if isinstance(plain["notes"], list):
        plain["notes"] = {name: plain["notes"] for name in plain["present"] if plain["notes"]}
    # a record from before 2026-11-26 has this for the newest file only
    for name, words in plain.pop("published", {}).items():
        attempts[name][-1] = replace(attempts[name][-1], published=words)
    return Person(**{**plain, "attempts": attempts})


def _read_attempt(plain: dict[str, Any]) -> Attempt:
    # a record from before 2026-11-28 says it by the source of the time alone
    plain.setdefault("vouched", plain["clock"] == MAPPING_CLOCK)
    # a record from before 2026-11-29 does not say how near a published text is: it stays named
    if plain["published"] and "published_share" not in plain:
        plain |= {"published_share": 1.0, "published_size": 1000, "is_comparable": True}
    return Attempt(**plain)


def read_time(seconds: float) -> datetime | None:
    """Return the moment that is ``seconds`` after the start of 1970; None for 0, and for a time
    outside of the calendar."""
    try:
        return datetime.fromtimestamp(seconds, UTC) if seconds else None
    except (ValueError, OverflowError, OSError):
        return None


def note_regrades(
    person: Person, marks: dict[str, dict[str, Any]], now: Callable[[], datetime]
) -> list[dict[str, Any]]:
    """Store the new marks of a learner, and return a line for ``regrades.csv`` for each exercise
    whose points changed."""
    changed = []
    for exercise, mark in marks.items():
        before = person.marks.get(exercise)
        if before is not None and before["points"] != mark["points"]:
            why = _explain_change(before, mark)
            changed.append(
                {"when": now().isoformat(timespec="seconds"), "learner": person.learner,
                    "exercise": exercise,
                 "old": before["points"], "new": mark["points"], "why": why}
            )  # fmt: skip
        person.marks[exercise] = mark
    return changed


def _explain_change(before: dict[str, Any], now: dict[str, Any]) -> str:
    reasons = (
        ("by_hand", "marks.csv changed"),
        ("file", "file changed"),
        ("version", "grader version changed"),
        ("rules", "rules for points changed"),
        ("days_late", "deadline or time of the file changed"),
        ("free_days", "free days spent otherwise"),
    )
    if not (before["version"] and now["version"]):
        reasons = tuple(
            reason for reason in reasons if reason[0] != "version"
        )  # no file, no grader
    return (
        " and ".join(words for name, words in reasons if before.get(name, 0) != now[name])
        or "checked again"
    )
