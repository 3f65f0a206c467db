"""The gradebook: one row per learner, as CSV that a spreadsheet opens and the usual systems import.

There are two files, because Canvas accepts only its own columns:

- ``gradebook.csv`` has everything: the learner, the time, problems with the submission, and points
  and status of each exercise. Moodle's grade import takes it: in its dialog the teacher chooses the
  column that identifies the learner and the columns that are grades, and leaves the others out
  (docs.moodle.org, "Grade import").
- ``canvas.csv`` has nothing but points. Canvas's importer requires a first column with "Student" in
  its name, then "ID", "SIS User ID", "SIS Login ID" and "Section" in this order. It takes each
  column after "Section" for an assignment, and reads a second row "Points Possible"
  (``lib/gradebook_importer.rb`` of instructure/canvas-lms at 00b222d).

A cell that a spreadsheet would take for a formula begins with an apostrophe (OWASP, "CSV
Injection").
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from course_lib import catalog
from course_lib.base.translation import gettext as _
from course_lib.base.translation import translate_filled
from course_lib.catalog import Exercise
from course_lib.classroom.own_word import EXCUSED
from course_lib.classroom.similarity import Alike
from course_lib.grading.verdict import PASS

NO_FILE = "no file"
ABSENT = "absent"
NOT_GRADED = "not graded"
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "|", "%")


@dataclass(frozen=True)
class Mark:
    """The mark of one learner for one exercise: ``points`` out of ``possible``, or None if the
    exercise does not count (yet).

    ``status`` is the status of the verdict, "no file", "absent" if no run that asked for the
    exercise had anything of the learner, or "not graded". ``verdict`` is
    :meth:`Verdict.as_dict` without seconds; if there is none, ``reason`` explains it. ``graded``
    has the grader's points. ``by_hand`` has the teacher's decision, which replaces them: points,
    "excused", or "" for none. ``comment`` is the teacher's comment. ``late`` says in words how late
    the file is by somebody who knows, or is ""; ``late_unsure`` says it by a clock that nobody
    vouches for, or that there is none. ``published`` names the published solution that the file is
    nearer to than the exercise makes it, or is "".
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
    late_unsure: str = ""
    published: str = ""

    @property
    def optional(self) -> bool:
        return catalog.exercises()[self.exercise].optional

    @property
    def shown(self) -> bool:
        """Whether the mark says anything: that of an optional task that was not handed in does
        not."""
        return not self.optional or self.status != NO_FILE or bool(self.hand_words)

    @property
    def hand_words(self) -> str:
        """The teacher's points or excuse beside the grader's points, and the teacher's comment; ""
        if the teacher gave neither."""
        graded = _("nothing yet") if self.graded is None else format_points(self.graded)
        counts = ""
        if self.by_hand:
            counts = _("{points} counts (marks.csv), not {graded} by the grader").format(
                points=_("excused") if self.by_hand == EXCUSED else self.by_hand, graded=graded
            )
        return ": ".join(words for words in (counts, self.comment) if words)


@dataclass(frozen=True)
class Row:
    """The gradebook's row of one learner.

    ``key`` is unique to the learner. ``submitted`` is the time of the submission, or None if it is
    not known. ``address`` is the
    learner's e-mail address, and ``feedback_prefix`` the beginning of the names under which the
    system that the submission is from takes feedback files back; both are "" if not known.
    """

    key: str
    learner: str
    id: str
    login: str
    marks: tuple[Mark, ...]
    submitted: datetime | None = None
    problem: str = ""
    notes: tuple[str, ...] = ()
    source: str = ""
    predictions: dict[str, bool] = field(default_factory=dict)
    address: str = ""
    feedback_prefix: str = ""

    @property
    def points(self) -> float:
        return sum(mark.points or 0.0 for mark in self.marks)

    @property
    def late(self) -> str:
        """The exercises that are late, in words; "" if none is."""
        return _name_exercises((mark.exercise, mark.late) for mark in self.marks)

    @property
    def late_or_unsure(self) -> str:
        """The exercises that are late, or are by a clock that nobody vouches for, in words."""
        return _name_exercises(
            (mark.exercise, mark.late or mark.late_unsure) for mark in self.marks
        )

    @property
    def required(self) -> list[Mark]:
        """The marks of the exercises that were asked for, which are all but those of optional
        tasks."""
        return [mark for mark in self.marks if not mark.optional]

    @property
    def missing(self) -> list[Mark]:
        """The required marks without a file, of which there is nothing more to say."""
        return [
            mark
            for mark in self.required
            if mark.status == NO_FILE and not mark.reason and not mark.hand_words
        ]

    @property
    def other_notes(self) -> list[str]:
        """The notes that are not the reason of a mark."""
        reasons = {
            words
            for mark in self.marks
            for words in (mark.reason, f"{mark.exercise}: {mark.reason}")
        }
        return [note for note in self.notes if note not in reasons]

    @property
    def shown(self) -> list[Mark]:
        """The marks without those of optional tasks that this learner did not hand in."""
        return [mark for mark in self.marks if mark.shown]

    @property
    def possible(self) -> float:
        """The largest sum of points that this learner could have. Excused exercises do not count,
        nor do those for which the learner was absent."""
        return sum(
            mark.possible
            for mark in self.marks
            if mark.by_hand != EXCUSED and (mark.status != ABSENT or mark.points is not None)
        )

    @property
    def by_hand(self) -> list[str]:
        return [f"{mark.exercise}: {mark.hand_words}" for mark in self.marks if mark.hand_words]

    @property
    def published(self) -> list[str]:
        """The exercises whose file is a published solution or like one, in words."""
        return [
            _("{exercise} is {text}").format(
                exercise=mark.exercise, text=translate_filled(mark.published, "interface")
            )
            for mark in self.marks
            if mark.published
        ]

    @property
    def oddities(self) -> list[str]:
        """The odd lines of the submission, in words. They cost no points."""
        return [
            _("{exercise} line {line}: {words}").format(
                exercise=mark.exercise, line=oddity["line"], words=oddity["words"]
            )
            for mark in self.marks
            if mark.verdict
            for oddity in mark.verdict.get("oddities", ())
        ]

    @property
    def passed(self) -> int:
        return sum(mark.status == PASS for mark in self.required)


def _name_exercises(words_of_exercises: Iterable[tuple[str, str]]) -> str:
    """Return each text behind the exercises that it is about; "" for no text."""
    exercises: dict[str, list[str]] = {}
    for exercise, words in words_of_exercises:
        if words:
            exercises.setdefault(words, []).append(exercise)
    return "; ".join(f"{', '.join(names)}: {words}" for words, names in exercises.items())


def write_gradebook(
    rows: Iterable[Row], exercises: Sequence[Exercise], possible: Sequence[float]
) -> Iterator[str]:
    """Yield the lines of ``gradebook.csv``: the heading with the possible points of each exercise,
    then one line per learner."""
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
                for cell in (
                    (
                        f"{exercise.id}"
                        f" ({'optional' if exercise.optional else f'of {format_points(points)}'})"
                    ),
                    f"{exercise.id} status",
                )
            ),
            *("By hand", "Published", "Odd", "Problem", "Notes"),
        ]
    )
    for row in rows:
        yield _join(
            [
                row.learner, row.id, row.login, row.source,
                row.submitted.isoformat(timespec="seconds") if row.submitted else "",
                row.late_or_unsure,
                format_points(row.points), format_points(row.possible), str(row.passed),
                *(cell for mark in row.marks for cell in ((format_points(mark.points),
                    mark.status) if mark.shown else ("", ""))),
                "; ".join(row.by_hand), "; ".join(row.published), "; ".join(row.oddities),
                row.problem,
                "; ".join(row.notes),
            ]
        )  # fmt: skip


def write_canvas(
    rows: Iterable[Row], exercises: Sequence[Exercise], possible: Sequence[float]
) -> Iterator[str]:
    """Yield the lines of ``canvas.csv``. Optional tasks are left out.

    The cell of an exercise that could not be graded, or for which the learner was absent, is empty,
    so Canvas does not change the grade.
    """
    required = [
        (exercise, points)
        for exercise, points in zip(exercises, possible, strict=True)
        if not exercise.optional
    ]
    yield _join(
        [
            "Student",
            "ID",
            "SIS User ID",
            "SIS Login ID",
            "Section",
            *(f"{exercise.id} {exercise.title}" for exercise, _points in required),
        ]
    )
    yield _join(
        [
            "Points Possible",
            "",
            "",
            "",
            "",
            *(format_points(points) for _exercise, points in required),
        ]
    )
    for row in rows:
        number = row.id if row.id.isdecimal() else ""
        yield _join(
            [
                row.learner,
                number,
                "",
                row.login,
                "",
                *(format_points(mark.points) for mark in row.required),
            ]
        )


def write_results(rows: Iterable[Row]) -> Iterator[str]:
    """Yield the lines of ``results.jsonl``: one per learner and exercise, with all that is known of
    it except the duration of the check."""
    names = (
        "exercise",
        "status",
        "points",
        "graded",
        "by_hand",
        "comment",
        "late",
        "reason",
        "verdict",
    )
    for row in rows:
        person = {"learner": row.learner, "id": row.id, "login": row.login}
        for mark in row.shown:
            values = {name: getattr(mark, name) for name in names}
            values["late"] = mark.late or mark.late_unsure
            if mark.status == NO_FILE:
                values["reason"] = mark.reason or row.problem
            yield json.dumps(person | values, ensure_ascii=False) + "\n"


def write_feedback_table(lines: Iterable[tuple[str, str, str, str]]) -> Iterator[str]:
    """Yield the lines of ``feedback.csv``: learner, address, page, and its name in the zip."""
    yield _join(["Student", "Address", "Page", "In feedback.zip"])
    for line in lines:
        yield _join(line)


def write_regrades(lines: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Yield the lines of ``regrades.csv``: every mark that differs from that of an earlier run."""
    columns = ("when", "learner", "exercise", "old", "new", "why")
    yield _join(columns)
    for line in lines:
        points = {name: format_points(line[name]) for name in ("old", "new")}
        yield _join([(line | points)[name] for name in columns])


def write_similar(alike: Mapping[str, Sequence[Alike]]) -> Iterator[str]:
    """Yield the lines of ``similar.csv``: the learners with near-identical files for an
    exercise."""
    yield _join(["Exercise", "Learners", "Shared"])
    for exercise, groups in sorted(alike.items()):
        for group in groups:
            yield _join([exercise, "; ".join(group.learners), f"{group.shared:.2f}"])


def format_points(points: float | None) -> str:
    """Return points with two decimals at most: "3", "2.5", "0.67"; "" for None."""
    return "" if points is None else f"{points:.2f}".rstrip("0").rstrip(".")


def defuse(cell: str) -> str:
    """Return the text, with an apostrophe in front if a spreadsheet would take it for a formula.
    The spreadsheet then shows it as text.

    A text that begins with an apostrophe gets another one, so that two different names never become
    equal.
    """
    return (
        f"'{cell}"
        if cell.lstrip(" \u00a0\u3000").startswith(_FORMULA)
        or cell.startswith(("'", "＝", "＋", "－", "＠"))
        else cell
    )


def _join(cells: Sequence[str]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="\r\n").writerow([defuse(cell) for cell in cells])
    return line.getvalue()
