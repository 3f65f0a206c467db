"""Wrong solutions, made from right ones by edits. The grader must refuse each of them with its
cause."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from course_lib import catalog
from course_lib.catalog import Exercise, edits


def find_file(exercise: Exercise) -> Path:
    """Return the file with the wrong solutions of an exercise."""
    return exercise.folder / "wrong.toml"


def read_mutants(exercise: Exercise) -> list[dict]:
    """Return the entries of the exercise's file: id, cause, edits, and where needed cause_cpu,
    cause_gpu, cause_hidden and slow."""
    return edits.read_entries(find_file(exercise), "mutant")


def list_mutants() -> Iterator[tuple[Exercise, dict]]:
    """Yield every mutant of every exercise, in the order of the course."""
    for exercise in catalog.exercises().values():
        for entry in read_mutants(exercise):
            yield exercise, entry


def make_text(exercise: Exercise, entry: dict) -> str:
    """Return the text of a mutant. Raises: CourseError if an edit does not fit the solution."""
    return edits.edit_solution(exercise, entry, find_file(exercise))
