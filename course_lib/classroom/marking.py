"""The marks of a learner, made from the verdicts and the class's rules. The teacher's own decisions
replace them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import UTC
from fractions import Fraction
from typing import Any

from course_lib.catalog import Exercise
from course_lib.classroom.gradebook import NO_FILE, NOT_GRADED, Mark, Row, format_points
from course_lib.classroom.own_word import EXCUSED, Word
from course_lib.classroom.record import Attempt, Person, Record, Rules, read_time
from course_lib.grading.kind import find_kind
from course_lib.grading.verdict import ERROR, FAIL, GRADER_FAULT, PASS, from_dict

_LOST = "its verdict is no longer in the journal; grade the folder with this file again"


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

    def make_row(self, person: Person) -> Row:
        marks = tuple(self._mark(person, exercise) for exercise in self.record.exercises)
        late: dict[str, list[str]] = {}
        for mark in marks:
            if mark.late:
                late.setdefault(mark.late, []).append(mark.exercise)
        return Row(
            person.key, person.learner, person.id, person.login, marks, read_time(person.submitted),
            "; ".join(f"{', '.join(names)}: {words}" for words, names in late.items()),
            person.problem, tuple(person.notes), person.source,
            person.predictions,
        )  # fmt: skip

    def summarize(self, person: Person) -> dict[str, dict[str, Any]]:
        """Return the data that the record keeps of each mark, by exercise. A later run explains
        changed points by them."""
        found = {}
        for exercise in self.record.exercises:
            mark, (attempt, _) = self._mark(person, exercise), self._choose(person, exercise)
            found[exercise.id] = {
                "points": mark.points,
                "by_hand": mark.by_hand,
                "file": attempt.file if attempt else "",
                "version": attempt.version if attempt else "",
                "days_late": attempt.days_late if attempt else 0,
                "rules": self.rules.describe(),
            }
        return found

    def _mark(self, person: Person, exercise: Exercise) -> Mark:
        attempt, verdict = self._choose(person, exercise)
        possible = weigh(exercise, self.rules.weights)
        status = NO_FILE
        graded = 0.0
        reason = ""
        late = ""
        if attempt is not None:
            graded, reason, late = (
                self._grade(exercise, attempt, verdict),
                attempt.fault or attempt.reason,
                self._describe_late(attempt, possible),
            )
            status = verdict["status"] if verdict else NOT_GRADED if graded is None else ERROR
            reason = reason or (_LOST if graded is None else "")
        word = self.words.get((person.key, exercise.id), Word())
        points, by_hand = graded, ""
        if word.excused:
            points, by_hand = None, EXCUSED
        elif word.points is not None:
            points, by_hand = word.points, format_points(word.points)
        published = attempt.published if attempt else ""
        return Mark(
            exercise.id,
            status,
            points,
            verdict,
            reason,
            possible,
            graded,
            by_hand,
            word.comment,
            late,
            published,
        )

    def _choose(
        self, person: Person, exercise: Exercise
    ) -> tuple[Attempt | None, dict[str, Any] | None]:
        """Return the file for an exercise that has the most points, and its verdict. If files have
        equal points, return the later one."""
        best: tuple[Any, Attempt, dict[str, Any] | None] | None = None
        for number, attempt in enumerate(person.attempts.get(exercise.id, ())):
            verdict = self.find_verdict(attempt.key) if attempt.key and not attempt.fault else None
            points = self._grade(exercise, attempt, verdict)
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
        self, exercise: Exercise, attempt: Attempt, verdict: dict[str, Any] | None
    ) -> float | None:
        """Return the points of a file after the deduction for lateness; None if it could not be
        graded."""
        if verdict is None:
            return None if attempt.key else 0.0
        points = give_points(exercise, verdict, self.rules)
        if points is None or not self.rules.late or not attempt.days_late:
            return points
        return max(
            _round_down(
                Fraction(points)
                - self._find_deduction(attempt, weigh(exercise, self.rules.weights))
            ),
            0.0,
        )

    def _find_deduction(self, attempt: Attempt, possible: float) -> Fraction:
        return Fraction(possible) * Fraction(self.rules.late) * attempt.days_late / 100

    def _describe_late(self, attempt: Attempt, possible: float) -> str:
        if days := attempt.days_late:
            moment = read_time(attempt.time)
            when = moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC") if moment else "?"
            off = (
                f", {format_points(float(min(self._find_deduction(attempt, possible), Fraction(possible))))}"  # noqa: E501
                " points off"
                if self.rules.late
                else ""
            )
            return f"{days} {'day' if days == 1 else 'days'} late by {attempt.clock} ({when}){off}"
        if attempt.marked_late:
            unknown = "; by how much is not known, so no points are off" if self.rules.late else ""
            return f"marked late by the system that it comes from{unknown}"
        if attempt.due and not attempt.time and self.rules.late:
            return f"whether it is late is not known: {attempt.clock}"
        return ""
