"""The exercises of the course, read from catalog.toml."""

from __future__ import annotations

import functools
import tomllib
from dataclasses import dataclass, fields
from pathlib import Path

from course_lib.base.errors import CourseError

KINDS = ("kernel", "torch", "numpy", "autograd")
_FILE = Path(__file__).with_name("exercises.toml")


@dataclass(frozen=True)
class Exercise:
    """One entry of catalog.toml. ``hints`` grow more direct.

    ``kind`` says what the learner writes: "kernel" (Triton), functions in "torch" or "numpy" operations, or "autograd" (the
    ``forward`` and ``backward`` of an autograd Function). ``entry_points`` are the kernels that the course launches, or the functions
    that it calls.
    """

    id: str
    lesson: str
    file: str
    kind: str
    title: str
    objective: str
    difficulty: int
    minutes: int
    prerequisites: tuple[str, ...]
    hints: tuple[str, ...]
    entry_points: tuple[str, ...]
    needs_gpu: bool
    stretch: str
    debrief: str


@functools.cache
def exercises() -> dict[str, Exercise]:
    """Every exercise by id, in the order of the course.

    Raises: CourseError if an entry lacks a field, has one too many, or an id twice.
    """
    entries = tomllib.loads(_FILE.read_text(encoding="utf-8"))["exercise"]
    wanted = {field.name for field in fields(Exercise)}
    found: dict[str, Exercise] = {}
    for entry in entries:
        name = entry.get("id", "?")
        if wrong := wanted ^ entry.keys():
            raise CourseError(f"catalog.toml, exercise {name}: missing or unknown fields {sorted(wrong)}.")
        if name in found:
            raise CourseError(f"catalog.toml: exercise {name} stands there twice.")
        if entry["kind"] not in KINDS:
            raise CourseError(f"catalog.toml, exercise {name}: kind {entry['kind']!r} is none of {', '.join(KINDS)}.")
        found[name] = Exercise(**{key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()})
    return dict(sorted(found.items()))


def get(exercise_id: str) -> Exercise:
    """The exercise called ``exercise_id``; "6a" and "06A" mean "06a", and so does the name of its file, with folders or without.

    Raises: CourseError, naming the exercises there are.
    """
    wanted = next((e.id for e in exercises().values() if e.file == Path(exercise_id).stem), exercise_id)
    wanted = wanted.strip().lower().removeprefix("ex").zfill(3)
    if wanted not in exercises():
        raise CourseError(f"there is no exercise {exercise_id!r}. There are: {', '.join(exercises())}.")
    return exercises()[wanted]
