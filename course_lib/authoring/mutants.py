"""Wrong solutions, made from right ones by edits: what the grader must refuse, each with its cause."""

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
    """The entries of the exercise's file: id, cause, edits, and where needed cause_cpu, cause_gpu, cause_hidden and slow."""
    return tomllib.loads((FOLDER / f"ex{exercise.id}.toml").read_text(encoding="utf-8"))["mutant"]


def list_mutants() -> Iterator[tuple[Exercise, dict]]:
    """Every mutant of every exercise, in the order of the course."""
    for exercise in catalog.exercises().values():
        for entry in read_mutants(exercise):
            yield exercise, entry


def make_text(exercise: Exercise, entry: dict, folder: Path = FOLDER) -> str:
    """The solution with the edits of ``entry``, which ``folder`` holds, in its code; the prose in front of the first import stays.

    Raises: CourseError if an edit's text does not stand in the code exactly once.
    """
    prose, imports, text = texts.read_solution(exercise).partition("\nimport ")
    for find, replacement in entry["edits"]:
        if (times := text.count(find)) != 1:
            raise CourseError(
                f"{paths.shown(folder)}/ex{exercise.id}.toml, {entry['id']}: {find!r} stands {times} times in the solution's code."
            )
        text = text.replace(find, replacement)
    return prose + imports + text
