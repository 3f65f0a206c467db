"""The grader's knowledge of the exercises' entry points, one file per family: batteries, plans,
wrong formulas.

An exercise's exercise.toml names its family. The module of that name has in ``PARTS`` a ``Part``
for each entry point. There is no list of the families, and no other part of the grader depends on
an exercise.
"""

from __future__ import annotations

from importlib import import_module, util
from typing import Any

from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.catalog import Exercise
from course_lib.grading.cases.plan import Part


def find_parts(exercise: Exercise) -> dict[str, Part[Any]]:
    """Return the parts of ``exercise`` by entry point.

    Raises: CourseError, with the exercise's file, if its family does not exist, or has no part for
        an entry point.
    """
    where = paths.shown(exercise.folder / "exercise.toml")
    name = f"{__name__}.{exercise.family}"
    if (exercise.folder / "cases.py").is_file():
        name = f"{__name__}.{exercise.file}.cases"
        return {at: import_module(name).PARTS[at] for at in exercise.entry_points}
    if not exercise.family.isidentifier() or util.find_spec(name) is None:
        raise CourseError(
            f"{where}, field family: there is no course_lib/exercises/{exercise.family}.py."
        )
    parts: dict[str, Part[Any]] = getattr(import_module(name), "PARTS", {})
    if missing := [
        entry_point for entry_point in exercise.entry_points if entry_point not in parts
    ]:
        raise CourseError(
            f"{where}, field entry_points: the PARTS of"
            f" course_lib/exercises/{exercise.family}.py have no {' and no '.join(missing)}."
            " Add a Part for it."
        )
    return {entry_point: parts[entry_point] for entry_point in exercise.entry_points}
