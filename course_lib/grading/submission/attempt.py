"""Whether a file was worked on, and the code that is taken out of it: one answer for the grader, the panels and the pictures."""

from __future__ import annotations

from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.catalog import Exercise
from course_lib.catalog.texts import find_file, make_unsolved_text
from course_lib.grading.submission import extract_functions, extract_kernels
from course_lib.grading.submission.extract_kernels import Kernels


class NotAttempted(CourseError):
    """The learner's file is still as the course wrote it."""


def is_attempted(exercise: Exercise, text: str, name: str) -> bool:
    """False while the code of ``text`` is the exercise as the course wrote it; comments, docstrings and layout are not code.

    Raises: Unreadable if the text does not parse, or lacks an entry point of the exercise.
    """
    shape = extract_kernels.fingerprint if exercise.kind == "kernel" else extract_functions.fingerprint
    unsolved = shape(make_unsolved_text(exercise), exercise.file, exercise.entry_points)
    return shape(text, name, exercise.entry_points) != unsolved


def read_own_attempt(exercise: Exercise) -> str:
    """The text of the learner's own file.

    Raises: NotAttempted while it is as the course wrote it; Unreadable if it cannot be read, does not parse, or lacks an entry point.
    """
    path = find_file(exercise)
    text = extract_kernels.read_text(path, f"`course reset {exercise.id}` writes it anew.")
    if not is_attempted(exercise, text, path.name):
        raise NotAttempted(f"{paths.shown(path)} is still as the course wrote it.")
    return text


def extract(exercise: Exercise, text: str, name: str) -> Kernels:
    """The code of the exercise's entry points, and what it needs, out of ``text``.

    Raises: Unreadable if it is not there, or cannot be run apart from the rest.
    """
    if exercise.kind == "kernel":
        return extract_kernels.extract(text, name, exercise.entry_points)
    return extract_functions.extract(text, name, exercise.entry_points, exercise.kind, exercise.forbidden)
