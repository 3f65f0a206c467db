"""The texts of an exercise: the learner's file, the course's solution, and the unsolved
exercise."""

from __future__ import annotations

from pathlib import Path

from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.base.translation import LANGUAGES, translate
from course_lib.base.translation import gettext as _
from course_lib.catalog.comments import translate_comments
from course_lib.catalog.cut import cut, drop_marks
from course_lib.catalog.exercise import Exercise


def find_file(exercise: Exercise) -> Path:
    """Return the path of the learner's file."""
    return paths.exercises() / f"{exercise.file}.py"


def is_learners_file(exercise: Exercise, path: Path) -> bool:
    """Return True if ``path`` is the learner's file. A class may be graded outside any course
    folder; then there is no such file."""
    return paths.find_folder() is not None and path == find_file(exercise)


def require_solution(exercise: Exercise) -> None:
    """Raise CourseError if this copy of the course was made without solutions."""
    if paths.is_release():
        raise CourseError(
            _(
                "the solution of {id} is not in this copy of the course: whoever made it for you"
                " left the solutions out. `course hint {id}` has {count} hints; for the solution"
                " ask the person who gave you this copy."
            ).format(id=exercise.id, count=len(exercise.hints))
        )


def read_solution(exercise: Exercise) -> str:
    """Return the course's own solution with its marks and task sentences.

    Raises: CourseError if this copy of the course was made without solutions.
    """
    require_solution(exercise)
    return (paths.SOLUTIONS / f"{exercise.file}.py").read_text(encoding="utf-8")


def make_plain_solution(exercise: Exercise) -> str:
    """Return the course's own solution without marks and task sentences, for display."""
    return drop_marks(read_solution(exercise))


def make_unsolved_text(exercise: Exercise) -> str:
    """Return the text of the unsolved exercise."""
    if paths.is_release():
        return (paths.RELEASED / f"{exercise.file}.py").read_text(encoding="utf-8")
    return cut(read_solution(exercise), f"{exercise.file}.py")


def make_learners_text(exercise: Exercise, language: str = "") -> str:
    """Return the unsolved exercise as a learner gets it: its docstring and its comments are in
    ``language``, or in the chosen one."""
    return translate_comments(
        make_unsolved_text(exercise),
        lambda text: translate(text, f"lesson{exercise.lesson}", language),
    )


def is_unsolved(exercise: Exercise, data: bytes) -> bool:
    """Return True if ``data`` is the unsolved exercise, byte for byte, in any language of the
    course."""
    return any(data == make_learners_text(exercise, language).encode() for language in LANGUAGES)
