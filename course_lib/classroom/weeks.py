"""The plan of a term: the exercises of each week, and their deadlines."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any

from course_lib import catalog
from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.base.translation import gettext as _

FILE = "weeks.toml"
SHIPPED = Path(__file__).parent / FILE


@dataclass(frozen=True)
class Week:
    """The exercises of one week of the plan. ``due`` is their deadline, or None if the plan has
    none."""

    name: str
    exercises: tuple[str, ...]
    due: datetime | None = None


def find_plan(file: Path | None) -> Path:
    """Return the plan to read: ``file`` if it is given, else ``weeks.toml`` in the current folder
    if it exists, else the course's plan."""
    return file or (Path(FILE) if Path(FILE).exists() else SHIPPED)


def read_plan(file: Path) -> dict[str, Week]:
    """Return the weeks of a plan, by name.

    Raises: CourseError if the file cannot be read, or names an exercise that does not exist or
    stands in two weeks.
    """
    plan_name = _("the plan {file}").format(file=paths.shown(file))
    try:
        tables = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise CourseError(
            _("{file} cannot be read: {reason}.").format(file=plan_name, reason=error.strerror)
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise CourseError(
            _('{plan} is no TOML: {error}. A deadline is written due = "2026-12-01T23:59".').format(
                plan=plan_name, error=error
            )
        ) from None
    weeks = {
        name: _read_week(name, table, plan_name + _(", week {week}").format(week=name))
        for name, table in tables.items()
    }
    asked_in: dict[str, str] = {}
    for week in weeks.values():
        for exercise in week.exercises:
            if other_week := asked_in.get(exercise):
                raise CourseError(
                    _("{plan} asks for {exercise} in week {week} and in week {other}.").format(
                        plan=plan_name, exercise=exercise, week=other_week, other=week.name
                    )
                )
            asked_in[exercise] = week.name
    return weeks


def _read_week(name: str, table: Any, where: str) -> Week:
    if not isinstance(table, dict) or not isinstance(table.get("exercises"), list):
        raise CourseError(
            _('{where}: a week needs a line such as exercises = ["07a", "08a"].').format(
                where=where
            )
        )
    if unknown := sorted(table.keys() - {"lessons", "exercises", "due"}):
        raise CourseError(
            _("{where}: a week has lessons, exercises and due, and no {name}.").format(
                where=where, name=unknown[0]
            )
        )
    try:
        exercises = tuple(catalog.get(str(exercise)).id for exercise in table["exercises"])
    except CourseError as error:
        raise CourseError(f"{where}: {error}") from None
    return Week(
        name, exercises, read_moment(table["due"], f"{where}: due") if "due" in table else None
    )


def choose_weeks(plan: dict[str, Week], names: Sequence[str], file: Path) -> list[Week]:
    """Return the weeks with these names.

    Raises: CourseError, which lists the weeks of the plan, if the plan does not have one of the
    names.
    """
    if unknown := [name for name in names if name not in plan]:
        raise CourseError(
            _("{file} has no week {week}. Its weeks are: {weeks}.").format(
                file=paths.shown(file), week=unknown[0], weeks=", ".join(plan) or _("none")
            )
        )
    return [plan[name] for name in names]


def read_moment(value: Any, where: str) -> datetime:
    """Return the moment that ``value`` stands for. A date stands for the end of its day; a time
    without a zone has this machine's zone.

    Raises: CourseError if ``value`` is neither a date nor the text of one.
    """
    try:
        moment = value if isinstance(value, date) else datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise CourseError(
            _(
                "{where} {value!r} is no date. Write 2026-12-01, 2026-12-01T18:00, or"
                " 2026-12-01T18:00+01:00."
            ).format(where=where, value=value)
        ) from None
    if not isinstance(moment, datetime) or (
        isinstance(value, str) and len(value) <= len("2026-12-01")
    ):
        moment = datetime(moment.year, moment.month, moment.day, 23, 59, 59)
    return moment.astimezone()
