"""The exercises, one folder for each, and the modules that several of them share.

A folder has everything that is true of its exercise alone. Its name is the stem of the exercise's
file. ``exercise.toml`` has the facts and words, and ``cases.py`` has in ``PARTS`` a ``Part`` for
each entry point: cases, plan and wrong formulas. There is no list of the folders, and no other part
of the grader depends on an exercise.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.catalog import Exercise
from course_lib.grading.cases.plan import Part


def find_parts(exercise: Exercise) -> dict[str, Part[Any]]:
    """Return the parts of ``exercise`` by entry point.

    Raises: CourseError, with the exercise's file, if its folder has no cases, or they have no part
        for an entry point.
    """
    file = exercise.folder / "cases.py"
    where = paths.shown(file)
    if not file.is_file():
        raise CourseError(
            f"exercise {exercise.id} has no cases: there is no {where}. `course author new"
            " exercise` writes one for a new exercise."
        )
    module = import_module(f"{__name__}.{exercise.file}.cases")
    parts: dict[str, Part[Any]] = getattr(module, "PARTS", {})
    if missing := [
        entry_point for entry_point in exercise.entry_points if entry_point not in parts
    ]:
        raise CourseError(
            f"{where}: its PARTS have no {' and no '.join(missing)}, which the exercise.toml beside"
            " it names in entry_points. Add a Part for each."
        )
    return {entry_point: parts[entry_point] for entry_point in exercise.entry_points}
