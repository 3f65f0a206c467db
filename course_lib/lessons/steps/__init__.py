"""The steps of each lesson: ``lessonNN/steps.py`` has ``STEPS``, in the order of the page."""

from __future__ import annotations

import importlib
from functools import cache, partial
from pathlib import Path

from course_lib.base.errors import CourseError
from course_lib.base.translation import translate
from course_lib.lessons.steps.step import Step

_LESSONS = Path(__file__).parents[1]


@cache
def read_lesson(lesson: str) -> dict[str, Step]:
    """Read the steps of a lesson, such as "03", by id, in the order of the page; none if there is
    no file.

    Raises: CourseError if a step is invalid.
    """
    where = f"lesson{lesson}/steps.py"
    if not (_LESSONS / where).exists():
        return {}
    steps: tuple[Step, ...] = importlib.import_module(
        f"course_lib.lessons.lesson{lesson}.steps"
    ).STEPS
    for step in steps:
        if step.lesson != lesson:
            raise CourseError(f"{where}: {step.id!r} does not begin with {lesson}-.")
    if len({step.id for step in steps}) < len(steps):
        raise CourseError(f"{where}: two steps have the same id.")
    return {
        step.id: step.translate(partial(translate, catalog=f"lesson{lesson}")) for step in steps
    }


def find(step_id: str) -> Step:
    """Find a step by its id.

    Raises: CourseError if there is no such step.
    """
    steps = read_lesson(step_id[:2])
    if step_id not in steps:
        raise CourseError(
            f"there is no step {step_id!r}. Lesson {step_id[:2]} has {', '.join(steps) or 'none'}."
        )
    return steps[step_id]
