"""Submissions for the tests, made from an exercise's solution by edits. The folders tests/mutants
and tests/slips hold the edits."""

from __future__ import annotations

import tomllib
from pathlib import Path

from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.catalog import texts
from course_lib.catalog.exercise import Exercise

SLIPS = paths.ROOT / "tests" / "slips"


def read_entries(exercise: Exercise, folder: Path, kind: str) -> list[dict]:
    """Return the entries of one kind (mutant, slip or right) in the exercise's file in ``folder``;
    without that file there are none."""
    file = folder / f"ex{exercise.id}.toml"
    return tomllib.loads(file.read_text(encoding="utf-8")).get(kind, []) if file.exists() else []


def edit_solution(exercise: Exercise, entry: dict, folder: Path) -> str:
    """Return the solution with the edits of ``entry`` in its code. The prose before the first
    import is not edited.

    Args:
        folder: the folder of the entry's file, for error messages.

    Raises: CourseError if the text that an edit replaces is not found exactly once in the code.
    """
    prose, imports, text = texts.read_solution(exercise).partition("\nimport ")
    for find, replacement in entry["edits"]:
        if (times := text.count(find)) != 1:
            raise CourseError(
                f"{paths.shown(folder)}/ex{exercise.id}.toml, {entry['id']}: {find!r} stands"
                f" {times} times in the solution's code."
            )
        text = text.replace(find, replacement)
    return prose + imports + text


def read_variants(exercise: Exercise) -> dict[str, str]:
    """Return the right solutions of tests/slips by name: edited solutions, and files that have
    little of the solution.

    A copy of the course without tests has none.
    """
    edited = {
        f"ex{exercise.id}_{entry['id']}": edit_solution(exercise, entry, SLIPS)
        for entry in read_entries(exercise, SLIPS, "right")
    }
    files = {
        file.stem: file.read_text(encoding="utf-8")
        for file in (SLIPS / "right").glob(f"ex{exercise.id}_*.py")
    }
    return dict(sorted((edited | files).items()))
