"""Submissions made from an exercise's solution by edits. The exercise's wrong.toml and slips.toml
hold the edits."""

from __future__ import annotations

import tomllib
from pathlib import Path

from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.catalog import texts
from course_lib.catalog.exercise import Exercise


def find_slips(exercise: Exercise) -> Path:
    """Return the file with the slips of an exercise. It need not exist."""
    return exercise.folder / "slips.toml"


def read_entries(file: Path, kind: str) -> list[dict]:
    """Return the entries of one kind (mutant, slip or right) in ``file``; without that file there
    are none."""
    return tomllib.loads(file.read_text(encoding="utf-8")).get(kind, []) if file.exists() else []


def edit_solution(exercise: Exercise, entry: dict, file: Path) -> str:
    """Return the solution with the edits of ``entry`` in its code. The prose before the first
    import is not edited.

    Args:
        file: the entry's file, for error messages.

    Raises: CourseError if the text that an edit replaces is not found exactly once in the code.
    """
    prose, imports, text = texts.read_solution(exercise).partition("\nimport ")
    for find, replacement in entry["edits"]:
        if (times := text.count(find)) != 1:
            raise CourseError(
                f"{paths.shown(file)}, {entry['id']}: {find!r} stands {times} times in the"
                " solution's code."
            )
        text = text.replace(find, replacement)
    return prose + imports + text


def read_variants(exercise: Exercise) -> dict[str, str]:
    """Return the right solutions in unusual forms by name: edited solutions of slips.toml, and
    files that have little of the solution.

    An installed package has none.
    """
    slips = find_slips(exercise)
    edited = {
        f"ex{exercise.id}_{entry['id']}": edit_solution(exercise, entry, slips)
        for entry in read_entries(slips, "right")
    }
    files = {
        f"ex{exercise.id}_{file.stem}": file.read_text(encoding="utf-8")
        for file in (exercise.folder / "unusual").glob("*.py")
    }
    return dict(sorted((edited | files).items()))
