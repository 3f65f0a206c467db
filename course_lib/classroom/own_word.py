"""The file ``marks.csv``: the teacher's own points, comments and excuses, which replace the
grader's points, and the late days that count."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from course_lib import catalog
from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.base.files import read_plain_file
from course_lib.base.translation import gettext as _
from course_lib.base.translation import join_sentences

MARKS = "marks.csv"
EXCUSED = "excused"
_MOST_BYTES = 4 << 20
_COLUMNS = ("learner", "exercise", "points", "comment", "late")


@dataclass(frozen=True)
class Word:
    """The teacher's decision on one exercise of one learner: points, an excuse, or a comment
    alone; and the late days that count, or None if the times decide."""

    points: float | None = None
    excused: bool = False
    comment: str = ""
    late: int | None = None


def read_table(
    file: Path, subject: str, needed: Collection[str], columns: Collection[str]
) -> list[tuple[int, str, dict[str, str]]]:
    """Return for each line of a CSV file its number, its place in words, and its cells by column
    without white space around them.

    Raises: CourseError if the file cannot be read, is no CSV file in UTF-8, or has other columns.
    """
    table_name = f"{subject} {paths.shown(file)}"
    try:
        text = read_plain_file(file, _MOST_BYTES).decode("utf-8-sig")
        reader = csv.reader(io.StringIO(text, newline=""), strict=True)
        rows = [(reader.line_num, row) for row in reader]
    except OSError as error:
        raise CourseError(
            _("{file} cannot be read: {reason}.").format(file=table_name, reason=error.strerror)
        ) from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise CourseError(
            _("{file} is no CSV file in UTF-8: {error}.").format(file=table_name, error=error)
        ) from None
    header = [cell.strip().lower() for cell in rows[0][1]] if rows else []
    _require_columns(table_name, header, needed, columns)
    table = []
    for number, row in rows[1:]:
        where = table_name + _(", line {line}").format(line=number)
        if not any(cell.strip() for cell in row):
            continue
        if len(row) != len(header):
            problem = _("{where}, has {columns} columns, and the first line {first}.")
            hint = ""
            if len(row) > len(header):
                hint = _('A cell with a comma stands in quotes: "so, so".')
            raise CourseError(
                join_sentences(
                    problem.format(where=where, columns=len(row), first=len(header)), hint
                )
            )
        table.append(
            (number, where, dict(zip(header, (cell.strip() for cell in row), strict=True)))
        )
    return table


def _require_columns(
    name: str, header: Sequence[str], needed: Collection[str], columns: Collection[str]
) -> None:
    """Raise CourseError if the first line of a table lacks a needed column, or has one twice, or
    one that is not known."""
    if not set(needed) <= set(header) <= set(columns) or len(set(header)) < len(header):
        optional = [name for name in columns if name not in needed]
        raise CourseError(
            _(
                "{file} needs a first line with the columns {needed}, and may have {optional}; it"
                " has {header}."
            ).format(
                file=name, needed=",".join(needed), optional=_(" and ").join(optional),
                header=header,
            )
        )  # fmt: skip


def read_words(
    file: Path, learners: Iterable[tuple[str, Collection[str]]]
) -> dict[tuple[str, str], Word]:
    """Return the teacher's decisions by learner's key and exercise; an empty dict if the file does
    not exist.

    Args:
        learners: the key of each learner, with all names that the file may use.

    Raises: CourseError, with file and line, for an unknown learner, exercise or number, or for a
    second line on the same two.
    """
    if not file.exists():
        return {}
    keys_by_name = sort_by_name(learners)
    words: dict[tuple[str, str], Word] = {}
    lines: dict[tuple[str, str], int] = {}
    for line, where, cells in read_table(file, _("the file"), _COLUMNS[:3], _COLUMNS):
        key = find_key(cells["learner"], keys_by_name, where)
        try:
            place = (key, catalog.get(cells["exercise"]).id)
        except CourseError as error:
            raise CourseError(f"{where}: {error}") from None
        if place in words:
            raise CourseError(
                _("{where}: {learner} and {exercise} stand in line {line} already.").format(
                    where=where, learner=cells["learner"], exercise=place[1], line=lines[place]
                )
            )
        words[place], lines[place] = _read_word(cells, where), line
    return words


def sort_by_name(learners: Iterable[tuple[str, Collection[str]]]) -> dict[str, set[str]]:
    """Return the keys of the learners by each name that they are called by."""
    keys_by_name: dict[str, set[str]] = {}
    for key, names in learners:
        for name in names:
            keys_by_name.setdefault(name, set()).add(key)
    return keys_by_name


def find_key(name: str, keys_by_name: Mapping[str, set[str]], where: str) -> str:
    """Return the key of the one learner who is called ``name``.

    Raises: CourseError, which begins with ``where``, if there is none, or more than one.
    """
    keys = keys_by_name.get(name, set())
    if len(keys) != 1:
        problem = (
            _(
                "{where}: {name!r}, which more than one learner is called; write the number or the"
                " login."
            )
            if keys
            else _("{where}: {name!r}, whom the class does not have. It has: {names}.")
        )
        known_names = ", ".join(sorted(keys_by_name)[:20])
        raise CourseError(problem.format(where=where, name=name, names=known_names))
    return next(iter(keys))


def _read_word(cells: dict[str, str], where: str) -> Word:
    text, comment = cells["points"], cells.get("comment", "")
    late = _read_days(cells.get("late", ""), where)
    if text.lower() == EXCUSED:
        return Word(None, True, comment, late)
    if not text and (comment or late is not None):
        return Word(None, False, comment, late)
    try:
        points = float(text)
    except ValueError:
        points = math.nan
    if not (0 <= points < math.inf):
        raise CourseError(
            _("{where}: points {text!r} are no number from 0 up, and not {excused!r}.").format(
                where=where, text=text, excused=EXCUSED
            )
        )
    return Word(points, False, comment, late)


def _read_days(text: str, where: str) -> int | None:
    if text and not re.fullmatch("[0-9]+", text):
        raise CourseError(
            _("{where}: late {text!r} is no number of days; 0 is not late.").format(
                where=where, text=text
            )
        )
    return int(text) if text else None
