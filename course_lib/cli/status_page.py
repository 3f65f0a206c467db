"""Write the page of ``course status --html``, which lesson 18 writes, too: what is passed, the code
of it, the mistakes that the learner found, the predictions that surprised, what was asked again,
the ladder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from markupsafe import Markup

import course_lib
from course_lib import catalog
from course_lib.catalog import Exercise
from course_lib.cli import status
from course_lib.cli.page import write_page
from course_lib.grading.report import SIGNS, describe_status
from course_lib.grading.verdict import NOT_ATTEMPTED
from course_lib.learner import progress
from course_lib.learner.progress import ExerciseProgress, Prediction

_STYLES = {NOT_ATTEMPTED: "unattempted"}  # the other states are called as their style is


def write(file: Path) -> None:
    """Write the page of this course folder into ``file``. The progress is read and not changed.

    Raises: CourseError if the times of the ladder are missing; OSError if the file cannot be
    written.
    """
    _ = course_lib.MODE  # chooses GPU or interpreter now: the ladder imports PyTorch
    from course_lib.lessons import own_work
    from course_lib.lessons.figures.ladder import ladder

    records, predictions, recalled = (
        progress.read(),
        progress.read_predictions(),
        progress.read_recalled(),
    )
    required = list(catalog.required().values())
    tasks = [exercise for exercise in catalog.exercises().values() if exercise.optional]
    surprises = {key: prediction for key, prediction in predictions.items() if prediction.surprised}
    write_page(
        file,
        "status.html",
        picture=ladder(required[-1].lesson, with_libraries=True),
        required=_describe_exercises(required, records),
        tasks=_describe_exercises(tasks, records),
        own_code=own_work.list_own_code(),
        hunts=own_work.count_hunts(),
        steps=status.tell_steps(),
        made=len(_describe_answers(predictions)),
        surprises=_describe_answers(surprises),
        recalled=_describe_answers(recalled),
    )


def _describe_exercises(
    exercises: Iterable[Exercise], records: Mapping[str, ExerciseProgress]
) -> list[dict[str, Any]]:
    """Return what the table says of each exercise."""
    rows = []
    for exercise in exercises:
        record = records.get(exercise.id, ExerciseProgress())
        state = status.state(record)
        rows.append(
            {
                "exercise": exercise,
                "record": record,
                "state": describe_status(state),
                "sign": SIGNS[state],
                "style": _STYLES.get(state, state),
            }
        )
    return rows


def _describe_answers(answers: Mapping[str, Prediction]) -> list[dict[str, Any]]:
    """Return what the page says of each answer, in the order of the course; a question that the
    course no longer has is left out.

    A question that needs the lesson's page stands in its other words, if it has any.

    Args:
        answers: by a question's id, or by a lesson that asked it again and the id.
    """
    from course_lib.lessons.panel_page import write_markdown
    from course_lib.lessons.prediction import read_lesson

    rows = []
    for key, answer in sorted(answers.items()):
        name = key.split(" ")[-1]
        lesson_questions = read_lesson(name[:2])
        if question := lesson_questions.get(name):
            question_text, result = (
                Markup(write_markdown(text))
                for text in (question.recall or question.question, question.write_result())
            )
            place = key[:2], list(lesson_questions).index(name)
            rows.append(
                {
                    "question": question_text,
                    "result": result,
                    "place": place,
                    "said": answer.said,
                    "surprised": answer.surprised,
                }
            )
    return sorted(rows, key=lambda row: row["place"])
