"""The texts of an exercise: the learner's file, the course's solution, and what the exercise looks like before anyone works on it."""

from __future__ import annotations

from pathlib import Path

from course_lib.base import paths
from course_lib.catalog.cut import cut
from course_lib.catalog.exercise import Exercise


def find_file(exercise: Exercise) -> Path:
    """The learner's file."""
    return paths.exercises() / f"{exercise.file}.py"


def read_solution(exercise: Exercise) -> str:
    """The course's own solution, marks and task sentences included."""
    return (paths.SOLUTIONS / f"{exercise.file}.py").read_text(encoding="utf-8")


def make_unsolved_text(exercise: Exercise) -> str:
    """What the exercise looks like before anyone works on it."""
    return cut(read_solution(exercise), f"{exercise.file}.py")
