"""``recall``: two questions of earlier lessons, asked again where a lesson begins. They are
predictions that have the field ``recall``."""

from __future__ import annotations

import functools
import html
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import ipywidgets

from course_lib.base.errors import CourseError
from course_lib.base.translation import gettext as _
from course_lib.learner import progress
from course_lib.lessons.live import VIEW
from course_lib.lessons.prediction import Predict, Question, read_lesson


def recall(lesson: str) -> Recall:
    """Return two questions of lessons before ``lesson``, such as "05", as a widget. Call it in the
    last line of a cell.

    Raises: CourseError if no earlier lesson has a question to ask again.
    """
    return Recall(lesson, progress.read_predictions(), progress.read_recalled())


class Recall(ipywidgets.VBox):
    """The questions of :func:`recall`, one below the other, as :func:`choose_questions` chooses
    them."""

    def __init__(
        self,
        lesson: str,
        predictions: Mapping[str, progress.Prediction],
        recalled: Mapping[str, progress.Prediction],
    ) -> None:
        self.asked = [
            Recalled(lesson, question, predictions.get(question.id))
            for question in choose_questions(lesson, predictions, recalled)
        ]
        super().__init__(self.asked)

    def _repr_mimebundle_(
        self, include: Any = None, exclude: Any = None, **kwargs: Any
    ) -> dict[str, Any]:
        parts = [box._repr_mimebundle_() for box in self.asked]
        live = super()._repr_mimebundle_(**kwargs) or {}
        still: dict[str, Any] = {
            kind: "\n".join(part[kind] for part in parts) for kind in ("text/html", "text/plain")
        }
        return still | {kind: data for kind, data in live.items() if kind == VIEW}


class Recalled(Predict):
    """One question of an earlier lesson. Its answer is kept apart from the prediction, which stays
    as it was made.

    Args:
        before: what the learner predicted in the earlier lesson.
    """

    def __init__(self, lesson: str, question: Question, before: progress.Prediction | None) -> None:
        self._lesson, self._before = lesson, before
        super().__init__(replace(question, question=question.recall))

    def _choose_words(self) -> tuple[str, str, str, str]:
        return (
            _("Do you remember?"),
            _("That is my answer"),
            _("Show the answer"),
            _("You answered"),
        )

    def _read(self) -> progress.Prediction | None:
        return progress.read_recalled().get(_key(self._lesson, self.question))

    def _note(self, prediction: str, *, surprised: bool) -> None:
        progress.note_recalled(self._lesson, self.question.id, prediction, surprised=surprised)

    def _write_asked(self, more: str = "") -> str:
        before = self._before
        words = (
            _("From lesson {lesson}, where you said {said}.")
            if before and before.surprised
            else _("From lesson {lesson}.")
        )
        prediction = html.escape(before.said) if before else ""
        return super()._write_asked(
            f"{more}<p><small>{words.format(lesson=self.question.id[:2], said=prediction)}</small>"
            "</p>"
        )


def choose_questions(
    lesson: str,
    predictions: Mapping[str, progress.Prediction],
    recalled: Mapping[str, progress.Prediction],
) -> list[Question]:
    """Choose the questions that ``lesson`` asks again: first those that it asked before, then
    surprises, then those least often asked again.

    Among equals the first is of the lesson before, and the second of a lesson half way back. A
    surprise counts until its question was answered well.

    Args:
        predictions: the learner's predictions, by id.
        recalled: the learner's answers to questions that were asked again, by lesson and id.

    Raises: CourseError if no earlier lesson has a question to ask again.
    """
    answers: dict[str, list[progress.Prediction]] = {}
    for key, answer in recalled.items():
        answers.setdefault(key.partition(" ")[2], []).append(answer)
    number = int(lesson)
    questions: list[Question] = []
    for before in range(number):
        earlier_questions = _read_questions(before)
        # each later lesson begins with another question of the same lesson
        start = (number - before - 1) % max(len(earlier_questions), 1)
        questions += earlier_questions[start:] + earlier_questions[:start]
    chosen: list[Question] = []

    def rank(preferred_lesson: int, question: Question) -> tuple[bool, bool, bool, int, int]:
        again, before = answers.get(question.id, []), int(question.id[:2])
        surprised = (
            question.id in predictions
            and predictions[question.id].surprised
            and all(answer.surprised for answer in again)
        )
        repeats = any(before == int(earlier.id[:2]) for earlier in chosen)
        return (
            _key(lesson, question) not in recalled,
            not surprised,
            repeats,
            len(again),
            abs(before - preferred_lesson),
        )

    for preferred_lesson in (number - 1, number // 2):
        candidates = [question for question in questions if question not in chosen]
        if not candidates:
            raise CourseError(
                _(
                    "no lesson before {lesson} has two predictions with the field `recall`; it"
                    " stands in lessonNN/predictions.toml."
                ).format(lesson=lesson)
            )
        chosen.append(min(candidates, key=functools.partial(rank, preferred_lesson)))
    return chosen


def _read_questions(lesson: int) -> list[Question]:
    return [question for question in read_lesson(f"{lesson:02}").values() if question.recall]


def _key(lesson: str, question: Question) -> str:
    return f"{lesson} {question.id}"
