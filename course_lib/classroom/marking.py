"""The marks of a learner, made from the verdicts and the class's rules. The teacher's own decisions
replace them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC
from fractions import Fraction
from typing import Any

from course_lib.base.translation import gettext as _
from course_lib.base.translation import mark as N_
from course_lib.catalog import Exercise
from course_lib.classroom.gradebook import ABSENT, NO_FILE, NOT_GRADED, Mark, Row, format_points
from course_lib.classroom.lateness import spend_free_days
from course_lib.classroom.own_word import EXCUSED, MARKS, Word
from course_lib.classroom.record import Attempt, Person, Record, Rules, read_time
from course_lib.classroom.similarity import limit_alike
from course_lib.grading.kind import find_kind
from course_lib.grading.verdict import ERROR, FAIL, GRADER_FAULT, PASS, from_dict

_ABSENT = N_("no folder of before has anything of this learner for it; `--absent zero` gives 0")
# A published solution is named only where the exercise leaves a choice: in a class of fewer files
# than the first of these numbers, only one with as many hashes as the second.
_SMALL_CLASS, _FORCED_SIZE = 8, 30
_LOST = N_("its verdict is no longer in the journal; grade the folder with this file again")


def weigh(exercise: Exercise, weights: str) -> float:
    """Return the points that an exercise is worth: its difficulty (1 to 5), its minutes, or 1, as
    ``weights`` says; 0 for an optional task."""
    if exercise.optional:
        return 0.0
    return {
        "difficulty": float(exercise.difficulty),
        "minutes": float(exercise.minutes),
        "equal": 1.0,
    }[weights]


def give_points(exercise: Exercise, verdict: dict[str, Any], rules: Rules) -> float | None:
    """Return the points for a verdict, without regard to lateness: all points for a pass, None for
    a grader fault.

    A failed exercise whose parts are judged one by one (kind "tests") gets a share of the points
    per right part. If the rules give partial points, any other failed exercise gets a share per
    right case. All other verdicts get 0.
    """
    possible = weigh(exercise, rules.weights)
    if verdict["status"] == GRADER_FAULT:
        return None
    if verdict["status"] == FAIL and find_kind(exercise.kind).counts_parts:
        return _round_down(
            Fraction(
                from_dict(verdict).count_right_parts(exercise.entry_points),
                len(exercise.entry_points),
            )
            * Fraction(possible)
        )
    if verdict["status"] == FAIL and rules.partial and verdict["cases"]:
        right = sum(case["status"] == PASS for case in verdict["cases"])
        return _round_down(Fraction(right, len(verdict["cases"])) * Fraction(possible))
    return possible if verdict["status"] == PASS else 0.0


def _round_down(points: Fraction) -> float:
    return math.floor(points * 100) / 100


class Marker:
    """The maker of a class's rows. ``find_verdict`` returns the verdict of a key.

    ``words`` has the teacher's decisions by learner's key and exercise.
    """

    def __init__(
        self,
        record: Record,
        find_verdict: Callable[[str], dict[str, Any] | None],
        words: Mapping[tuple[str, str], Word],
    ):
        assert record.rules is not None
        self.record = record
        self.rules = record.rules
        self.find_verdict = find_verdict
        self.words = words
        self._shares = {
            exercise.id: self._list_shares(exercise.id) for exercise in record.exercises
        }

    def make_row(self, person: Person) -> Row:
        free_days = self._spend_free_days(person)
        marks = tuple(
            self._mark(person, exercise, free_days.get(exercise.id, 0))
            for exercise in self.record.exercises
        )
        return Row(
            person.key, person.learner, person.id, person.login, marks, read_time(person.submitted),
            person.problem, self._describe_notes(person), person.source,
            person.predictions, person.address, person.feedback_prefix,
        )  # fmt: skip

    def _describe_notes(self, person: Person) -> tuple[str, ...]:
        """Return the remarks of all runs, each behind the exercises that it is about, unless that
        is every exercise."""
        exercises_of_note: dict[str, list[str]] = {}
        for exercise in sorted(person.notes):
            for note in person.notes[exercise]:
                exercises_of_note.setdefault(note, []).append(exercise)
        required = {exercise.id for exercise in self.record.exercises if not exercise.optional}
        return tuple(
            note if required <= set(exercises) else f"{', '.join(exercises)}: {note}"
            for note, exercises in exercises_of_note.items()
        )

    def find_counted(self, person: Person, exercise: Exercise) -> tuple[Mark, Attempt | None]:
        """Return the mark of one exercise, and the file that it was given for, if there is one."""
        free_days = self._spend_free_days(person).get(exercise.id, 0)
        return (
            self._mark(person, exercise, free_days),
            self._choose(person, exercise, free_days)[0],
        )

    def summarize(self, person: Person) -> dict[str, dict[str, Any]]:
        """Return the data that the record keeps of each mark, by exercise. A later run explains
        changed points by them."""
        summaries = {}
        free_days = self._spend_free_days(person)
        for exercise in self.record.exercises:
            free = free_days.get(exercise.id, 0)
            mark = self._mark(person, exercise, free)
            attempt = self._choose(person, exercise, free)[0]
            summaries[exercise.id] = {
                "points": mark.points,
                "by_hand": mark.by_hand,
                "file": attempt.file if attempt else "",
                "version": attempt.version if attempt else "",
                "days_late": self._count_days(person, exercise, attempt) if attempt else 0,
                "free_days": free,
                "rules": self.rules.describe(),
            }
        return summaries

    def list_unsettled(self, person: Person) -> list[str]:
        """Return the exercises that a system marks as late without saying by how much, as long as
        the teacher has not said it either."""
        return [
            exercise.id
            for exercise in self.record.exercises
            if self.rules.late
            and self._find_word(person, exercise).late is None
            and (attempt := self._choose(person, exercise, 0)[0]) is not None
            and attempt.marked_late
            and not (attempt.vouched and attempt.time)
        ]

    def _list_shares(self, exercise_id: str) -> list[float]:
        """Return for each learner with a file that can be compared how near it comes to a published
        text."""
        shares = []
        for person in self.record.people.values():
            attempts = person.attempts.get(exercise_id, ())
            if comparable := [a.published_share for a in attempts if a.is_comparable]:
                shares.append(max(comparable))
        return shares

    def _is_forced(self, exercise_id: str, attempt: Attempt) -> bool:
        """Return whether a file is no nearer to a published text than the exercise makes it."""
        shares = self._shares[exercise_id]
        if len(shares) < _SMALL_CLASS:
            return attempt.published_size < _FORCED_SIZE
        as_near = sum(share >= attempt.published_share for share in shares)
        return as_near > limit_alike(len(shares))

    def count_forced(self) -> dict[str, int]:
        """Return by exercise the number of learners whose files are as near to a published text as
        the exercise makes them, and who are not marked for it."""
        forced = {
            exercise: sum(
                any(a.published and self._is_forced(exercise, a) for a in attempts)
                for person in self.record.people.values()
                if (attempts := person.attempts.get(exercise))
            )
            for exercise in self._shares
        }
        return {exercise: count for exercise, count in forced.items() if count}

    def _find_word(self, person: Person, exercise: Exercise) -> Word:
        return self.words.get((person.key, exercise.id), Word())

    def _spend_free_days(self, person: Person) -> dict[str, int]:
        """Return the free days that each late exercise of the learner has."""
        if not self.rules.late.free_days:
            return {}
        by_id = {exercise.id: exercise for exercise in self.record.exercises}
        late = {
            name: max(
                (self._count_days(person, exercise, attempt), attempt.due)
                for attempt in person.attempts[name]
            )
            for name, exercise in by_id.items()
            if person.attempts.get(name)
        }
        deadlines: dict[tuple[float, str], list[str]] = {}
        for name, (days, due) in sorted(late.items(), key=lambda item: item[1][1]):
            if days:
                # days that the teacher gave to an exercise without a deadline are its own
                deadlines.setdefault((due, "" if due else name), []).append(name)
        return spend_free_days(
            self.rules.late.free_days,
            list(deadlines.values()),
            lambda name, days: self._find_points(person, by_id[name], days),
        )

    def _find_points(self, person: Person, exercise: Exercise, free_days: int) -> float:
        attempt, verdict = self._choose(person, exercise, free_days)
        if attempt is None:
            return 0.0
        return self._grade(person, exercise, attempt, verdict, free_days) or 0.0

    def _mark(self, person: Person, exercise: Exercise, free_days: int) -> Mark:
        attempt, verdict = self._choose(person, exercise, free_days)
        if attempt is None:
            mark = self._mark_missing(person, exercise)
        else:
            mark = self._mark_attempt(person, exercise, attempt, verdict, free_days)
        word = self._find_word(person, exercise)
        mark = replace(mark, possible=weigh(exercise, self.rules.weights), comment=word.comment)
        if word.excused:
            return replace(mark, points=None, by_hand=EXCUSED)
        if word.points is not None:
            return replace(mark, points=word.points, by_hand=format_points(word.points))
        return mark

    def _mark_missing(self, person: Person, exercise: Exercise) -> Mark:
        """Return the grader's mark on an exercise of which there is no file."""
        if not (exercise.optional or exercise.id in person.present or self.rules.absent_zero):
            return Mark(exercise.id, ABSENT, None, reason=_(_ABSENT))
        reason = person.reasons.get(exercise.id, "")
        if reason == person.problem:
            reason = ""  # the row says it once for all exercises
        return Mark(exercise.id, NO_FILE, 0.0, reason=reason, graded=0.0)

    def _mark_attempt(
        self,
        person: Person,
        exercise: Exercise,
        attempt: Attempt,
        verdict: dict[str, Any] | None,
        free_days: int,
    ) -> Mark:
        """Return the grader's mark on a file."""
        graded = self._grade(person, exercise, attempt, verdict, free_days)
        lost = _(_LOST) if graded is None else ""
        published = attempt.published
        if published and self._is_forced(exercise.id, attempt):
            published = ""
        return Mark(
            exercise.id,
            verdict["status"] if verdict else NOT_GRADED if graded is None else ERROR,
            graded,
            verdict=verdict,
            reason=attempt.fault or attempt.reason or lost,
            graded=graded,
            late=self._describe_late(person, exercise, attempt, free_days),
            late_unsure=self._describe_unsure_time(person, exercise, attempt),
            published=published,
        )

    def _choose(
        self, person: Person, exercise: Exercise, free_days: int
    ) -> tuple[Attempt | None, dict[str, Any] | None]:
        """Return the file for an exercise that has the most points, and its verdict. If files have
        equal points, return the later one."""
        best: tuple[Any, Attempt, dict[str, Any] | None] | None = None
        for number, attempt in enumerate(person.attempts.get(exercise.id, ())):
            verdict = self.find_verdict(attempt.key) if attempt.key and not attempt.fault else None
            points = self._grade(person, exercise, attempt, verdict, free_days)
            # A file that could not be graded yet may get all points. Until it is graded, only a
            # file that has all points counts before it.
            rank = (
                weigh(exercise, self.rules.weights) if points is None else points,
                points is not None,
                number,
            )
            if best is None or rank > best[0]:
                best = rank, attempt, verdict
        return (best[1], best[2]) if best else (None, None)

    def _grade(
        self,
        person: Person,
        exercise: Exercise,
        attempt: Attempt,
        verdict: dict[str, Any] | None,
        free_days: int,
    ) -> float | None:
        """Return the points of a file after the deduction for lateness; None if it could not be
        graded."""
        if verdict is None:
            return None if attempt.key else 0.0
        points = give_points(exercise, verdict, self.rules)
        days = max(self._count_days(person, exercise, attempt) - free_days, 0)
        if points is None or not self.rules.late or not days:
            return points
        possible = weigh(exercise, self.rules.weights)
        return _round_down(self.rules.late.deduct(points, possible, days))

    def _count_days(self, person: Person, exercise: Exercise, attempt: Attempt) -> int:
        """Return the late days that cost points: those that the teacher says, else those by a time
        that the system says."""
        if (days := self._find_word(person, exercise).late) is not None:
            return days
        return self._count_days_by_clock(attempt) if attempt.vouched else 0

    def _count_days_by_clock(self, attempt: Attempt) -> int:
        if not (attempt.time and attempt.due):
            return 0
        return self.rules.late.count_days(attempt.time, attempt.due)

    def _describe_late(
        self, person: Person, exercise: Exercise, attempt: Attempt, free_days: int
    ) -> str:
        """Say how late a file is by the teacher or a system, and what it costs; "" if it is not
        late."""
        teachers_days = self._find_word(person, exercise).late
        days = self._count_days(person, exercise, attempt)
        if days:
            source = MARKS if teachers_days is not None else _describe_clock(attempt)
            cost = self._describe_cost(exercise, days, free_days)
            return _("{days} late by {clock}").format(days=_count_days(days), clock=source) + cost
        if teachers_days is not None:
            return ""
        if attempt.marked_late:
            unknown = _(
                "; by how much is not known: the column late of {file} says it, and until then no"
                " points are off"
            ).format(file=MARKS)
            return _("marked late by the system that it comes from") + (
                unknown if self.rules.late else ""
            )
        return ""

    def _describe_unsure_time(self, person: Person, exercise: Exercise, attempt: Attempt) -> str:
        """Say how late a file is by a clock that nobody vouches for, or that there is none; "" if
        somebody knows better."""
        teachers_days = self._find_word(person, exercise).late
        if teachers_days is not None or attempt.marked_late or attempt.vouched:
            return ""
        if days := self._count_days_by_clock(attempt):
            cost = _(", which takes no points off") if self.rules.late else ""
            late = _("{days} late by {clock}")
            return late.format(days=_count_days(days), clock=_describe_clock(attempt)) + cost
        if attempt.due and not attempt.time and self.rules.late:
            return _("whether it is late is not known: {reason}").format(reason=_(attempt.clock))
        return ""

    def _describe_cost(self, exercise: Exercise, days: int, free_days: int) -> str:
        if not self.rules.late:
            return ""
        free = min(free_days, days)
        words = _(", {free} of them free").format(free=free) if free else ""
        if not (charged := days - free):
            return words
        possible = weigh(exercise, self.rules.weights)
        off = Fraction(possible) - self.rules.late.deduct(possible, possible, charged)
        return words + _(", {points} points off").format(points=format_points(float(off)))


def _count_days(days: int) -> str:
    return _("1 day") if days == 1 else _("{count} days").format(count=days)


def _describe_clock(attempt: Attempt) -> str:
    moment = read_time(attempt.time)
    when = moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC") if moment else "?"
    return f"{_(attempt.clock)} ({when})"
