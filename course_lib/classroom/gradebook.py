"""The gradebook: one row per learner, as CSV that a spreadsheet opens and the usual systems import.

Two files, because they want different things:

- ``gradebook.csv`` has everything: who, when, what was wrong with the submission, and points and status of each exercise. Moodle's grade
  import takes it as it is: there one says which column is the person's and which are grades, and leaves the others out
  (docs.moodle.org, "Grade import").
- ``canvas.csv`` has nothing but points. Canvas's importer wants a first column with "Student" in its name, a second with "ID", "SIS User
  ID", "SIS Login ID" and "Section" in this order, takes each column after "Section" for an assignment, and reads a second row
  "Points Possible" (``lib/gradebook_importer.rb`` of instructure/canvas-lms at 00b222d).

A cell that a spreadsheet would take for a formula gets an apostrophe in front (OWASP, "CSV Injection").
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from course_lib.catalog import Exercise
from course_lib.classroom.own_word import EXCUSED
from course_lib.classroom.similarity import Alike
from course_lib.grading.verdict import PASS

NO_FILE = "no file"
NOT_GRADED = "not graded"
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "|", "%")


@dataclass(frozen=True)
class Mark:
    """What came out of one exercise of one learner, and how many ``points`` of those ``possible`` it gets: None if it does not count (yet).

    ``status`` is a verdict's, "no file", or "not graded"; ``verdict`` as :meth:`Verdict.as_dict`, without seconds; ``reason`` says why
    there is none. ``graded`` are the points by the grader. ``by_hand`` is what the teacher gives before them: points, "excused", or "" for
    nothing; ``comment`` is the teacher's. ``late``: in words, how late it is, or "". ``published``: in words, which published solution it is, or "".
    """

    exercise: str
    status: str
    points: float | None
    verdict: dict[str, Any] | None = None
    reason: str = ""
    possible: float = 0.0
    graded: float | None = None
    by_hand: str = ""
    comment: str = ""
    late: str = ""
    published: str = ""

    @property
    def hand_words(self) -> str:
        """What the teacher says of it, with both values and which of them counts; "" if nothing."""
        graded = "nothing yet" if self.graded is None else format_points(self.graded)
        counts = f"{self.by_hand} counts (marks.csv), not {graded} by the grader" if self.by_hand else ""
        return ": ".join(words for words in (counts, self.comment) if words)


@dataclass(frozen=True)
class Row:
    """One learner; ``key`` tells them apart from everybody else. ``submitted``: the submission's time, or None if it is not known; ``late``: in
    words, what is late, or ""."""

    key: str
    learner: str
    id: str
    login: str
    marks: tuple[Mark, ...]
    submitted: datetime | None = None
    late: str = ""
    problem: str = ""
    notes: tuple[str, ...] = ()
    source: str = ""
    predictions: dict[str, bool] = field(default_factory=dict)

    @property
    def points(self) -> float:
        return sum(mark.points or 0.0 for mark in self.marks)

    @property
    def possible(self) -> float:
        """The points that this learner could have: those of excused exercises do not count."""
        return sum(mark.possible for mark in self.marks if mark.by_hand != EXCUSED)

    @property
    def by_hand(self) -> list[str]:
        return [f"{mark.exercise}: {mark.hand_words}" for mark in self.marks if mark.hand_words]

    @property
    def published(self) -> list[str]:
        """In words, which of the files that count are published solutions."""
        return [f"{mark.exercise} is {mark.published}" for mark in self.marks if mark.published]

    @property
    def oddities(self) -> list[str]:
        """Odd lines of what was handed in, in words. They take away no points."""
        return [
            f"{mark.exercise} line {oddity['line']}: {oddity['words']}"
            for mark in self.marks
            if mark.verdict
            for oddity in mark.verdict.get("oddities", ())
        ]

    @property
    def passed(self) -> int:
        return sum(mark.status == PASS for mark in self.marks)


def write_gradebook(rows: Iterable[Row], exercises: Sequence[Exercise], possible: Sequence[float]) -> Iterator[str]:
    """The lines of ``gradebook.csv``, each with its end: the heading, which says what each exercise is worth, then one per learner."""
    yield _join(
        [
            *(
                "Student",
                "ID",
                "Login",
                "Source",
                "Submitted",
                "Late",
                f"Points (of {format_points(sum(possible))})",
                "Counted of",
                "Passed",
            ),
            *(
                cell
                for exercise, points in zip(exercises, possible, strict=True)
                for cell in (f"{exercise.id} (of {format_points(points)})", f"{exercise.id} status")
            ),
            *("By hand", "Published", "Odd", "Problem", "Notes"),
        ]
    )
    for row in rows:
        yield _join(
            [
                row.learner, row.id, row.login, row.source, row.submitted.isoformat(timespec="seconds") if row.submitted else "", row.late,
                format_points(row.points), format_points(row.possible), str(row.passed),
                *(cell for mark in row.marks for cell in (format_points(mark.points), mark.status)),
                "; ".join(row.by_hand), "; ".join(row.published), "; ".join(row.oddities), row.problem,
                "; ".join(row.notes),
            ]
        )  # fmt: skip


def write_canvas(rows: Iterable[Row], exercises: Sequence[Exercise], possible: Sequence[float]) -> Iterator[str]:
    """The lines of ``canvas.csv``. Points of what could not be graded are left empty: Canvas then leaves the cell alone."""
    yield _join(["Student", "ID", "SIS User ID", "SIS Login ID", "Section", *(f"{e.id} {e.title}" for e in exercises)])
    yield _join(["Points Possible", "", "", "", "", *map(format_points, possible)])
    for row in rows:
        number = row.id if row.id.isdecimal() else ""
        yield _join([row.learner, number, "", row.login, "", *(format_points(mark.points) for mark in row.marks)])


def write_results(rows: Iterable[Row]) -> Iterator[str]:
    """The lines of ``results.jsonl``: one per learner and exercise, with all that is known of it but how long it took."""
    for row in rows:
        person = {"learner": row.learner, "id": row.id, "login": row.login}
        for mark in row.marks:
            entry = person | {
                "exercise": mark.exercise,
                "status": mark.status,
                "points": mark.points,
                "graded": mark.graded,
                "by_hand": mark.by_hand,
                "comment": mark.comment,
                "late": mark.late,
                "reason": mark.reason,
                "verdict": mark.verdict,
            }
            yield json.dumps(entry, ensure_ascii=False) + "\n"


def write_regrades(lines: Iterable[dict[str, Any]]) -> Iterator[str]:
    """The lines of ``regrades.csv``: every mark that changed after it was written once."""
    columns = ("when", "learner", "exercise", "old", "new", "why")
    yield _join(columns)
    for line in lines:
        points = {name: format_points(line[name]) for name in ("old", "new")}
        yield _join([(line | points)[name] for name in columns])


def write_similar(alike: Mapping[str, Sequence[Alike]]) -> Iterator[str]:
    """The lines of ``similar.csv``: who has near-identical files for an exercise."""
    yield _join(["Exercise", "Learners", "Shared"])
    for exercise, found in sorted(alike.items()):
        for one in found:
            yield _join([exercise, "; ".join(one.learners), f"{one.shared:.2f}"])


def format_points(points: float | None) -> str:
    """Two decimals at most: "3", "2.5", "0.67"; "" for none."""
    return "" if points is None else f"{points:.2f}".rstrip("0").rstrip(".")


def defuse(cell: str) -> str:
    """The text, with an apostrophe in front where a spreadsheet would compute it. A spreadsheet shows it, and computes nothing.

    What was defused already is not told from a name that begins with an apostrophe: such a name gets one more, so that no two names become one.
    """
    return f"'{cell}" if cell.lstrip(" \u00a0\u3000").startswith(_FORMULA) or cell.startswith(("'", "＝", "＋", "－", "＠")) else cell


def _join(cells: Sequence[str]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="\r\n").writerow([defuse(cell) for cell in cells])
    return line.getvalue()
