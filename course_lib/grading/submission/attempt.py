"""What a file's text holds for an exercise: nothing yet, or code. Run on texts that may be hostile: see ``reader.py``."""

from __future__ import annotations

from course_lib.catalog import Exercise
from course_lib.grading.submission import extract_functions, extract_kernels
from course_lib.grading.submission.extract_kernels import Kernels


def read_attempt(exercise: Exercise, unsolved: str, text: str, name: str) -> Kernels | None:
    """The code of the exercise's entry points, and what it needs, out of ``text``; None while the file is as the course wrote it.

    Args:
        unsolved: the exercise's file as the course wrote it. Comments, docstrings and layout are not code.

    Raises: Unreadable if the text does not parse, lacks an entry point, or cannot be run apart from the rest.
    """
    shape = extract_kernels.fingerprint if exercise.kind == "kernel" else extract_functions.fingerprint
    wanted = exercise.entry_points
    if shape(text, name, wanted) == shape(unsolved, exercise.file, wanted):
        return None
    return extract(exercise, text, name)


def extract(exercise: Exercise, text: str, name: str) -> Kernels:
    """The code of the exercise's entry points, and what it needs, out of ``text``.

    Raises: Unreadable if it is not there, or cannot be run apart from the rest.
    """
    if exercise.kind == "kernel":
        return extract_kernels.extract(text, name, exercise.entry_points)
    return extract_functions.extract(text, name, exercise.entry_points, exercise.kind, exercise.forbidden)
