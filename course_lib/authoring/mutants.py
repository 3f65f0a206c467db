"""Wrong solutions, made from right ones by edits. The grader must refuse each of them with its cause."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path

from course_lib import catalog
from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.catalog import Exercise, texts

FOLDER = paths.ROOT / "tests" / "mutants"


def read_mutants(exercise: Exercise) -> list[dict]:
    """Return the entries of the exercise's file: id, cause, edits, and where needed cause_cpu, cause_gpu, cause_hidden and slow."""
    return tomllib.loads((FOLDER / f"ex{exercise.id}.toml").read_text(encoding="utf-8"))["mutant"]


def list_mutants() -> Iterator[tuple[Exercise, dict]]:
    """Yield every mutant of every exercise, in the order of the course."""
    for exercise in catalog.exercises().values():
        for entry in read_mutants(exercise):
            yield exercise, entry


def make_text(exercise: Exercise, entry: dict, folder: Path = FOLDER) -> str:
    """Return the solution with the edits of ``entry`` in its code. The prose before the first import is not edited.

    Args:
        folder: the folder of the entry's file, for error messages.

    Raises: CourseError if the text that an edit replaces is not found exactly once in the code.
    """
    prose, imports, text = texts.read_solution(exercise).partition("\nimport ")
    for find, replacement in entry["edits"]:
        if (times := text.count(find)) != 1:
            raise CourseError(
                f"{paths.shown(folder)}/ex{exercise.id}.toml, {entry['id']}: {find!r} stands {times} times in the solution's code."
            )
        text = text.replace(find, replacement)
    return prose + imports + text
