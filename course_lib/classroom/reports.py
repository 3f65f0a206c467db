"""The HTML pages of a class: one for each learner, and one about the whole class for the
instructor.

A page is a single file without scripts or downloads, in light and dark colours. Jinja2 escapes
every text, because learners wrote the names, notes and lines of code. A learner's page explains the
cause of a failure, but shows no shapes and no numbers of hidden cases.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment
from markupsafe import Markup, escape

from course_lib.base.files import make_private_folder
from course_lib.base.page import open_templates
from course_lib.base.text import shorten
from course_lib.base.translation import gettext as _
from course_lib.base.translation import join_sentences
from course_lib.base.words import AND, list_words
from course_lib.catalog import Exercise
from course_lib.classroom.gradebook import ABSENT, NO_FILE, NOT_GRADED, Mark, Row, format_points
from course_lib.classroom.out_folder import write_lines
from course_lib.classroom.predictions import list_questions
from course_lib.classroom.similarity import Alike
from course_lib.grading.judging.causes import CAUSES, REFUSALS, make_sentence
from course_lib.grading.report import SIGNS, describe_status, quote_line
from course_lib.grading.verdict import ERROR, FAIL, GRADER_FAULT, NOT_ATTEMPTED, PASS, Place

CLASS_PAGE, FOLDER, ALIKE_FOLDER = "class.html", "reports", "alike"
_STYLES = {
    PASS: "pass",
    FAIL: "fail",
    ERROR: "error",
    NOT_ATTEMPTED: "unattempted",
    NO_FILE: "none",
    ABSENT: "none",
    NOT_GRADED: "fault",
}
_SIGNS = SIGNS | {NO_FILE: "–", ABSENT: "–", NOT_GRADED: SIGNS[GRADER_FAULT]}
_MOST_SURPRISES = 20
# limit on the groups and pairs that the page of the class, or of an exercise, shows
MOST_ALIKE = 100
_QUESTION = 220  # limit on the characters that are shown of a prediction's question
_COLUMNS = 110


def write_reports(
    out: Path,
    rows: Iterable[Row],
    exercises: Sequence[Exercise],
    alike: Mapping[str, Sequence[Alike]],
    strays: Sequence[str],
    forced: Mapping[str, int],
) -> None:
    """Write all pages below ``out``, and remove the pages of learners who are no longer in the
    class.

    ``forced`` has by exercise how many learners are not marked for a published solution, because
    the exercise leaves no choice.

    Raises: OSError if the disk is full or the folder cannot be written.
    """
    make_private_folder(out / FOLDER)
    shared = {"exercises": {exercise.id: exercise for exercise in exercises}}
    gathered = _ClassPage(exercises)
    written = set()
    for row in rows:
        name = name_page(row)
        written.add(name)
        gathered.add(row, name)
        _write(out / FOLDER / name, "learner.html", shared | {"row": row})
    for old in (out / FOLDER).glob("*.html"):
        if old.name not in written:
            old.unlink()
    _write(
        out / CLASS_PAGE,
        "class.html",
        shared | gathered.describe(alike) | {"strays": strays, "forced": forced},
    )


def write_alike(
    out: Path, exercise: Exercise, groups: Sequence[tuple[Alike, Sequence[tuple[str, str]]]]
) -> None:
    """Write the page that shows similar files side by side with their learners' names. If there are
    none, remove the page.

    Raises: OSError if the disk is full or the folder cannot be written.
    """
    make_private_folder(out / ALIKE_FOLDER)
    file = out / ALIKE_FOLDER / f"{exercise.id}.html"
    if groups:
        _write(file, "alike.html", {"exercise": exercise, "groups": groups})
    else:
        file.unlink(missing_ok=True)


def name_page(row: Row) -> str:
    """Return the file name of a learner's page. It is valid on every system, contains the learner's
    name, and is unique to the learner."""
    plain = unicodedata.normalize("NFKD", row.learner).encode("ascii", "ignore").decode().lower()
    slug = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:40] or "learner"
    return f"{slug}-{hashlib.sha256(row.key.encode(errors='surrogatepass')).hexdigest()[:8]}.html"


def say_what_happened(mark: Mark, exercise: Exercise) -> str:
    """Return the result of one exercise for the learner, in a sentence or two. Of hidden cases, it
    tells only how many are right."""
    if mark.status == NO_FILE:
        no_file = _("There is no file {file}.py in what you handed in.").format(file=exercise.file)
        return join_sentences(no_file, make_sentence(mark.reason) if mark.reason else "")
    if mark.status == ABSENT:
        return _("Nothing has come from you yet for {file}.py; it does not count so far.").format(
            file=exercise.file
        )
    if mark.status == NOT_GRADED:
        return _(
            "This file could not be graded yet. That is not your fault, and takes no points from"
            " you."
        )
    if mark.verdict is None:
        return make_sentence(mark.reason)
    if mark.status == NOT_ATTEMPTED:
        return _("The file is still as the course wrote it.")
    cases = [case["status"] for case in mark.verdict["cases"]]
    if mark.status == PASS:
        all_right = (
            _("All {count} hidden cases are right.").format(count=len(cases))
            if cases
            else _("Everything is right.")
        )
        return join_sentences(all_right, *_tell_author(mark.verdict))
    right = ""
    if mark.status == FAIL and cases:
        right = _("{right} of {count} hidden cases are right.").format(
            right=cases.count(PASS), count=len(cases)
        )
    place = mark.verdict["place"]
    line = ""
    if mark.status == ERROR and place:
        line = _("Line {line}:").format(line=place["line"])
    return join_sentences(line, mark.verdict["headline"], right)


def _tell_author(verdict: dict[str, Any]) -> list[str]:
    """Return a sentence for each odd line that its author should know of."""
    return [
        _("Line {line}: {words}.").format(line=oddity["line"], words=oddity["words"])
        for oddity in verdict.get("oddities", ())
        if oddity.get("for_author")
    ]


def describe_mark_status(status: str) -> str:
    """Return the status of a mark in words."""
    words = {NO_FILE: _("no file"), ABSENT: _("absent"), NOT_GRADED: _("not graded")}
    return words.get(status) or describe_status(status)


def count_learners(count: int) -> str:
    return _("1 learner") if count == 1 else _("{count} learners").format(count=count)


def _count_exercises(count: int) -> str:
    return _("1 exercise") if count == 1 else _("{count} exercises").format(count=count)


def _name_files(marks: Iterable[Mark], exercises: Mapping[str, Exercise]) -> list[str]:
    """Return each exercise of the marks with the name of its file."""
    return [f"{mark.exercise} ({exercises[mark.exercise].file}.py)" for mark in marks]


def describe_mark(mark: Mark, exercise: Exercise) -> str:
    """Return the result of one exercise as plain text: what happened, the line, and the question
    that leads to the remedy."""
    parts = [say_what_happened(mark, exercise)]
    if mark.verdict and mark.status in (FAIL, ERROR):
        parts += (
            [mark.verdict["first"]["words"]]
            if mark.status == ERROR and mark.verdict["first"]
            else []
        )
        parts += [quote_place(mark.verdict["place"])] if mark.verdict["place"] else []
        parts += [mark.verdict["question"]]
    return "\n\n".join(part for part in parts if part)


class _ClassPage:
    """The content of the class's page, collected row by row."""

    def __init__(self, exercises: Sequence[Exercise]):
        self.exercises = {exercise.id: exercise for exercise in exercises}
        self.statuses: dict[str, Counter[str]] = {exercise.id: Counter() for exercise in exercises}
        # by cause, then by exercise: the keys of the learners
        self.causes: dict[str, dict[str, list[str]]] = {}
        self.complete = self.unread = 0
        self.answered: Counter[str] = Counter()
        self.surprised: Counter[str] = Counter()
        self.with_progress = 0
        self.people: list[dict[str, Any]] = []
        self.not_begun: list[dict[str, Any]] = []
        self.problems: list[tuple[str, list[str]]] = []
        self.faults: list[tuple[str, str, str]] = []

    def add(self, row: Row, page: str) -> None:
        person = {
            "learner": row.learner, "file": page, "points": row.points, "possible": row.possible,
            "passed": row.passed, "late": row.late_or_unsure,
        }  # fmt: skip
        self.people.append(person)
        if not row.problem and all(
            mark.status in (NO_FILE, ABSENT, NOT_ATTEMPTED) for mark in row.marks
        ):
            self.not_begun.append(person)
        self.complete += row.passed == len(row.required)
        self.unread += bool(row.problem)
        if sentences := [
            text
            for text in (row.problem, *row.by_hand, *row.published, *row.oddities, *row.notes)
            if text
        ]:
            self.problems.append((row.learner, sentences))
        for mark in row.shown:
            self.statuses[mark.exercise][mark.status] += 1
            if mark.status == NOT_GRADED:
                self.faults.append((row.learner, mark.exercise, mark.reason))
            elif mark.verdict and mark.status in (FAIL, ERROR):
                self.causes.setdefault(mark.verdict["cause"], {}).setdefault(
                    mark.exercise, []
                ).append(row.key)
        self.with_progress += bool(row.predictions)
        for name, surprised in row.predictions.items():
            self.answered[name] += 1
            self.surprised[name] += surprised

    def describe(self, alike: Mapping[str, Sequence[Alike]]) -> dict[str, Any]:
        order = {name: n for n, name in enumerate(list_questions())}
        surprises = sorted(
            (name for name in self.surprised if self.surprised[name]),
            key=lambda name: (
                -self.surprised[name] / self.answered[name],
                -self.answered[name],
                order[name],
            ),
        )
        causes = [
            self._describe_cause(cause, learners_by_id)
            for cause, learners_by_id in self.causes.items()
        ]
        causes.sort(key=lambda cause: (-cause["learners"], cause["words"]))
        groups = [
            (exercise, group)
            for exercise, group_list in sorted(alike.items())
            for group in group_list
        ]
        return vars(self) | {
            "causes": [cause for cause in causes if cause["question"]],
            "refusals": [cause for cause in causes if not cause["question"]],
            "surprises": [
                (
                    name,
                    shorten(list_questions()[name], _QUESTION),
                    self.answered[name],
                    self.surprised[name],
                )
                for name in surprises[:_MOST_SURPRISES]
            ],
            "alike": groups[:MOST_ALIKE],
            "alike_left_out": max(len(groups) - MOST_ALIKE, 0),
        }

    def _describe_cause(self, cause: str, learners_by_id: dict[str, list[str]]) -> dict[str, Any]:
        """Return a cause with the numbers of learners, and the question that leads to the remedy;
        "" if the file was not run.

        The words are the course's own, never a learner's.
        """
        first_exercise = self.exercises[min(learners_by_id)]
        words, question = _(REFUSALS.get(cause, cause.replace("_", " "))), ""
        if cause in CAUSES:
            words, question = CAUSES[cause].word_for(
                first_exercise.kind, first_exercise.entry_points
            )
        return {
            "words": make_sentence(words),
            "question": question,
            "learners": len({key for keys in learners_by_id.values() for key in keys}),
            "exercises": sorted((exercise, len(keys)) for exercise, keys in learners_by_id.items()),
        }


def _write(file: Path, template: str, values: dict[str, Any]) -> None:
    text = _open_templates().get_template(template).render(values)
    try:
        if file.read_bytes() == text.encode():
            return  # unchanged, so the file keeps its date
    except OSError:
        # The file does not exist yet or cannot be read. In the second case write_lines raises.
        pass
    write_lines(file, [text])


@cache
def _open_templates() -> Environment:
    templates = open_templates(Path(__file__).parent / "templates")
    templates.globals |= {
        "points": format_points,
        "style": lambda status: _STYLES.get(status, "fault"),
        "sign": lambda status: _SIGNS.get(status, "?"),
        "quote": quote_place,
        "prose": _prose,
        "happened": say_what_happened,
        "status": describe_mark_status,
        "columns": tuple(_STYLES),
        "count_learners": count_learners,
        "count_exercises": _count_exercises,
        "list_words": list_words,
        "AND": AND,
        "name_files": _name_files,
        "sentence": make_sentence,
    }
    return templates


def _prose(text: str) -> Markup:
    """Return the text escaped, with the parts between backquotes as code."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return escape(text)
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if number % 2 else escape(part)
        for number, part in enumerate(parts)
    )


def quote_place(place: dict[str, Any]) -> str:
    """Return the learner's line with carets below it, as the terminal shows it."""
    shown_place = Place(**place)
    quoted = quote_line(shown_place, _COLUMNS)
    quotation = (
        f"{shown_place.lead}\n{shown_place.file}:{shown_place.line}\n{quoted.gutter}{quoted.source}"
    ).lstrip()
    return (
        f"{quotation}\n{quoted.below}{quoted.carets} {quoted.label}".rstrip()
        if quoted.carets
        else quotation
    )
