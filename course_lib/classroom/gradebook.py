"""The gradebook: one row a learner, as CSV that a spreadsheet opens and the usual systems import.

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
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from course_lib.catalog import Exercise
from course_lib.classroom.similarity import Pair
from course_lib.grading.verdict import FAIL, GRADER_FAULT, PASS, from_dict

NO_FILE = "no file"
NOT_GRADED = "not graded"
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "|", "%")
WEIGHTS = ("difficulty", "minutes", "equal")


@dataclass(frozen=True)
class Mark:
    """What came out of one exercise of one learner. ``points`` is None where nothing can be said: the grader or the machine was at fault.

    ``status`` is a verdict's, "no file", or "not graded"; ``verdict`` as :meth:`Verdict.as_dict`, without seconds; ``reason`` says why
    there is none.
    """

    exercise: str
    status: str
    points: float | None
    verdict: dict[str, Any] | None = None
    reason: str = ""


@dataclass(frozen=True)
class Row:
    """One learner; ``key`` tells them apart from everybody else. ``submitted``: the submission's time, or None; ``late``: in words, why it is late, or ""."""

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


def weigh(exercise: Exercise, weights: str) -> float:
    """The points that an exercise is worth: its difficulty, 1 to 5, unless one asks for its minutes, or 1 each."""
    return {"difficulty": float(exercise.difficulty), "minutes": float(exercise.minutes), "equal": 1.0}[weights]


def give_points(exercise: Exercise, verdict: dict[str, Any], possible: float) -> float | None:
    """The points for a verdict of ``exercise``: all for a pass, none for anything else; None for a grader fault.

    A failed exercise whose parts stand for themselves (kind "tests") has a share of them for each part that is right.
    """
    if verdict["status"] == GRADER_FAULT:
        return None
    if verdict["status"] == FAIL and exercise.kind == "tests":
        return possible * from_dict(verdict).count_right_parts(exercise.entry_points) / len(exercise.entry_points)
    return possible if verdict["status"] == PASS else 0.0


def write_gradebook(rows: Iterable[Row], exercises: Sequence[Exercise], weights: str) -> Iterator[str]:
    """The lines of ``gradebook.csv``, each with its end: the heading, which says what each exercise is worth, then one a learner."""
    possible = [weigh(exercise, weights) for exercise in exercises]
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
                "Passed",
            ),
            *(
                cell
                for exercise, points in zip(exercises, possible, strict=True)
                for cell in (f"{exercise.id} (of {format_points(points)})", f"{exercise.id} status")
            ),
            *("Odd", "Problem", "Notes"),
        ]
    )
    for row in rows:
        yield _join(
            [
                row.learner, row.id, row.login, row.source, row.submitted.isoformat(timespec="seconds") if row.submitted else "", row.late,
                format_points(row.points), str(row.passed),
                *(cell for mark in row.marks for cell in (format_points(mark.points), mark.status)), "; ".join(row.oddities), row.problem,
                "; ".join(row.notes),
            ]
        )  # fmt: skip


def write_canvas(rows: Iterable[Row], exercises: Sequence[Exercise], weights: str) -> Iterator[str]:
    """The lines of ``canvas.csv``. Points of what could not be graded are left empty: Canvas then leaves the cell alone."""
    yield _join(["Student", "ID", "SIS User ID", "SIS Login ID", "Section", *(f"{e.id} {e.title}" for e in exercises)])
    yield _join(["Points Possible", "", "", "", "", *(format_points(weigh(e, weights)) for e in exercises)])
    for row in rows:
        number = row.id if row.id.isdecimal() else ""
        yield _join([row.learner, number, "", row.login, "", *(format_points(mark.points) for mark in row.marks)])


def write_results(rows: Iterable[Row]) -> Iterator[str]:
    """The lines of ``results.jsonl``: one a learner and exercise, with all that is known of it but how long it took."""
    for row in rows:
        person = {"learner": row.learner, "id": row.id, "login": row.login, "late": row.late}
        for mark in row.marks:
            entry = person | {
                "exercise": mark.exercise,
                "status": mark.status,
                "points": mark.points,
                "reason": mark.reason,
                "verdict": mark.verdict,
            }
            yield json.dumps(entry, ensure_ascii=False) + "\n"


def write_similar(pairs: Iterable[Pair]) -> Iterator[str]:
    """The lines of ``similar.csv``: all pairs of near-identical files."""
    yield _join(["Exercise", "First", "Second", "Shared"])
    for pair in pairs:
        yield _join([pair.exercise, pair.first, pair.second, f"{pair.shared:.2f}"])


def format_points(points: float | None) -> str:
    """Two decimals at most: "3", "2.5", "0.67"; "" for none."""
    return "" if points is None else f"{points:.2f}".rstrip("0").rstrip(".")


def defuse(cell: str) -> str:
    """The text, with an apostrophe in front where a spreadsheet would compute it. A spreadsheet shows it, and computes nothing.

    What was defused already is not told from a name that begins with an apostrophe: such a name gets one more, so that no two names become one.
    """
    return (
        f"'{cell}"
        if cell.lstrip(" \u00a0\u3000").startswith(_FORMULA) or cell.startswith(("'", "＝", "＋", "－", "＠"))
        else cell
    )


def _join(cells: Sequence[str]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="\r\n").writerow([defuse(cell) for cell in cells])
    return line.getvalue()
