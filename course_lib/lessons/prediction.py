"""``predict``: a question that the learner answers before the page does. Predictions are stored; a
skipped question blocks nothing.

The questions are in ``lessonNN/predictions.toml``, so that no cell of a page shows an answer. A
lesson proves its answers in ``check`` cells: they compare ``find("03-digits").answer`` with the
computed value.
"""

from __future__ import annotations

import html
import math
import re
import tomllib
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import ipywidgets

from course_lib.base.errors import CourseError
from course_lib.base.translation import Translate, choose_language, join_sentences, translate
from course_lib.base.translation import gettext as _
from course_lib.base.translation import mark as N_
from course_lib.base.words import format_count, format_number
from course_lib.hunt import draw
from course_lib.learner import progress
from course_lib.lessons import answers, stepping
from course_lib.lessons.hunt_panel import hunt
from course_lib.lessons.live import VIEW
from course_lib.lessons.panel_page import write_box, write_inline, write_markdown
from course_lib.lessons.stylesheets import BOX_STYLE

_FOLDER = Path(__file__).parent
KINDS = ("number", "choice", "cells")
Cells = Sequence[Sequence[int]]  # (row, column) of each cell
# An expected number is called right, not close, if it is off by at most this part of the answer, or
# if the answer is what it is rounded to: 8.6 where the answer is 9. site.js has the same rule.
_EXACT = 0.005


@dataclass(frozen=True)
class Question:
    """One question of a lesson.

    Attributes:
        kind: "number", "choice" or "cells". For "cells" the learner clicks cells of a table.
        answer: a number, one of ``choices``, or the row and column of each cell to click.
        result: what comes out, as one sentence that may follow a colon: it begins with a small
            letter, and ends with a full stop.
        why: the explanation after the answer. It may have the Markdown of :func:`write_markdown`,
            as question, result and others.
        unit: unit of a number.
        within: a number is as expected if it is off by at most this.
        factor: if set, replaces ``within``: 2 accepts half to double the answer.
        others: a sentence for each other choice, or for likely numbers, by that answer. It begins
            with "Not ... :" or "Close:".
        cells: the table's labels, row by row.
        recall: the question in words that need no page, which a later lesson may ask again; "" if
            none may. In the file, ``true`` says that ``question`` itself needs no page.
    """

    id: str
    question: str
    kind: str
    answer: float | str | Cells
    result: str
    why: str
    choices: tuple[str, ...] = ()
    unit: str = ""
    within: float = 0.0
    factor: float = 0.0
    others: dict[str, str] = field(default_factory=dict)
    cells: tuple[tuple[str, ...], ...] = ()
    recall: str = ""

    def __post_init__(self) -> None:
        """Raise CourseError, whose reader is the lesson's author, if the parts do not fit
        together."""
        in_english = choose_language() == "en"  # a translation may begin in other words
        faults = [
            (self.kind not in KINDS, f"kind is one of {', '.join(KINDS)}"),
            (self.kind == "number" and not isinstance(self.answer, (int, float)),
                "answer must be a number"),
            (self.kind == "choice" and (self.answer not in self.choices or len(self.choices) < 2),
                "answer must be one of at least two choices"),
            (not all(isinstance(verdict_text, str) for verdict_text in self.others.values()),
                "others must be texts; a number such as 2.4 needs quotes as a key"),
            (self.kind == "choice" and self.others.keys() != set(self.choices) - {self.answer},
                "others must have a sentence for each other choice"),
            (in_english and any(not str(verdict_text).startswith(("Not ", "Close: "))
                for verdict_text in self.others.values()), "others begin with Not or Close:"),
            (self.kind == "cells" and (not self.cells
                or not self.cells[0] or len(set(map(len, self.cells))) > 1),
                "cells must be rows of labels, all as long"),
            (self.kind == "cells" and not self._names_cells(),
                "answer must name row and column of one cell at least, from 0, each once"),
            (bool(self.cells) != (self.kind == "cells") or (bool(self.cells) and bool(self.others)),
                "cells are for the kind cells, which has no others"),
            (not all(text.strip() for text in (self.question, self.result, self.why)),
                "question, result and why must say something"),
            (bool(self.factor) and self.factor <= 1, "factor is above 1"),
        ]  # fmt: skip
        for wrong, words in faults:
            if wrong:
                raise CourseError(
                    f"prediction {self.id}: {words}. It stands in"
                    f" lesson{self.id[:2]}/predictions.toml."
                )

    def translate(self, translate: Translate) -> Question:
        """Return the question with its words in another language."""
        choice = self.kind == "choice"
        return replace(
            self,
            question=translate(self.question), result=translate(self.result),
            why=translate(self.why), recall=translate(self.recall),
            choices=tuple(map(translate, self.choices)), unit=translate(self.unit),
            cells=tuple(tuple(map(translate, labels)) for labels in self.cells),
            answer=translate(self.answer) if isinstance(self.answer, str) else self.answer,
            others={translate(key) if choice else key: translate(verdict_text) for key,
                verdict_text in self.others.items()},
        )  # fmt: skip

    def _names_cells(self) -> bool:
        if not isinstance(self.answer, Sequence) or isinstance(self.answer, str):
            return False
        pairs = [tuple(pair) if isinstance(pair, Sequence) else () for pair in self.answer]
        inside = {
            (row, column) for row, labels in enumerate(self.cells) for column in range(len(labels))
        }
        return bool(pairs) and len(set(pairs)) == len(pairs) and set(pairs) <= inside

    def is_expected(self, prediction: float | str | Cells) -> bool:
        """Return whether ``prediction`` is the answer or near enough."""
        if self.kind == "cells":
            return _sort_cells(prediction) == _sort_cells(self.answer)
        if self.kind != "number":
            return prediction == self.answer
        assert isinstance(prediction, (int, float)) and isinstance(self.answer, (int, float))
        if self.factor and prediction * self.answer > 0:
            return 1 / self.factor <= prediction / self.answer <= self.factor
        return abs(prediction - self.answer) <= self.within

    def write_verdict(self, prediction: float | str | Cells) -> str:
        """Write whether the prediction is right, close or wrong, and what comes out: one sentence,
        two for an answer with words of its own.

        The site's script (site.js) chooses among the same sentences by the same rule.
        """
        if verdict_text := next(
            (
                other_text
                for key, other_text in self.others.items()
                if prediction == (float(key) if self.kind == "number" else key)
            ),
            "",
        ):
            return f"{verdict_text} {self.write_result()}"
        if not self.is_expected(prediction):
            return _("Not {answer}: {result}").format(
                answer=(
                    format_number(prediction, 6)
                    if isinstance(prediction, (int, float))
                    else _("these cells")
                ),
                result=self.result,
            )
        exact = self.kind != "number" or self._is_rounded(prediction)  # type: ignore[arg-type]
        return (_("Right: {result}") if exact else _("Close: {result}")).format(result=self.result)

    def _is_rounded(self, prediction: float) -> bool:
        """Return whether ``prediction`` is the answer, or a more exact number that is rounded to
        it."""
        assert isinstance(self.answer, (int, float))
        half_a_digit = 0.5 * 10.0 ** -len(str(self.answer).partition(".")[2])
        return abs(prediction - self.answer) < half_a_digit or math.isclose(
            prediction, self.answer, rel_tol=_EXACT
        )

    def write_result(self) -> str:
        """Write what comes out as a sentence that stands alone."""
        return self.result[0].upper() + self.result[1:]

    def write(self, value: float | str | Cells) -> str:
        """Write an answer in words. Cells are written by their names: "13; 14"."""
        if isinstance(value, (int, float)):
            # the singular after 1: "1 pass", "1 lane"
            unit = (
                re.sub(r"^(\w{3,}?)(?:(?<=ss)es|s)\b", r"\1", self.unit)
                if value == 1
                else self.unit
            )
            return " ".join(filter(None, [format_number(value, 6), unit]))
        if isinstance(value, str):
            return value
        names = self.name_cells()
        return "; ".join(names[cell] for cell in _sort_cells(value)) or _("none")

    def name_cells(self) -> dict[tuple[int, int], str]:
        """Return the name of each cell by its row and column: its label, with its place where
        several cells have this label."""
        flat = [label for labels in self.cells for label in labels]
        return {
            (row, column): label if flat.count(label) == 1 else f"{label} ({row + 1}, {column + 1})"
            for row, labels in enumerate(self.cells)
            for column, label in enumerate(labels)
        }


def _sort_cells(cells: Any) -> list[tuple[int, int]]:
    return sorted((row, column) for row, column in cells)


@cache
def read_lesson(lesson: str) -> dict[str, Question]:
    """Read the questions of a lesson, such as "03", by id, in the order of the page; none if there
    is no file.

    Raises: CourseError if a question is invalid.
    """
    file = _FOLDER / f"lesson{lesson}" / "predictions.toml"
    if not file.exists():
        return {}
    with file.open("rb") as opened:
        entries = tomllib.load(opened)["prediction"]
    questions = []
    for entry in entries:
        lists = {
            "choices": tuple(entry.get("choices", ())),
            "cells": tuple(map(tuple, entry.get("cells", ()))),
        }
        again = {"recall": entry["question"]} if entry.get("recall") is True else {}
        questions.append(
            Question(**entry | lists | again).translate(
                partial(translate, catalog=f"lesson{lesson}")
            )
        )
    for question in questions:
        if not re.fullmatch(rf"{lesson}-[a-z0-9-]+", question.id):
            raise CourseError(
                f"lesson{lesson}/{file.name}: {question.id!r} does not begin with {lesson}-."
            )
    if len({question.id for question in questions}) < len(questions):
        raise CourseError(f"lesson{lesson}/{file.name}: two predictions have the same id.")
    return {question.id: question for question in questions}


def find(prediction_id: str) -> Question:
    """Find a question by its id.

    Raises: CourseError if there is no such prediction.
    """
    questions = read_lesson(prediction_id[:2])
    if prediction_id not in questions:
        raise CourseError(
            f"there is no prediction {prediction_id!r}. Lesson {prediction_id[:2]} has"
            f" {', '.join(questions) or 'none'}."
        )
    return questions[prediction_id]


def predict(prediction_id: str) -> Predict:
    """Return the question as a widget. Call it in the last line of a cell.

    Raises: CourseError if there is no such prediction.
    """
    question = find(prediction_id)
    # here, because a lesson's first prediction usually comes before its first step
    stepping.warm_lesson(question.id[:2])
    return Predict(question)


class Predict(ipywidgets.VBox):
    """A question and a field for the prediction; after the prediction, the answer and its
    explanation. Callbacks never raise."""

    def __init__(self, question: Question) -> None:
        self.question = question
        self._LABEL, self._COMMIT, self._SKIP, self._SAID = self._choose_words()
        self._field = _make_field(question)
        self._commit = _make_button(self._COMMIT, self._answer, style="primary")
        self._skip = _make_button(self._SKIP, lambda: self._reveal(None))
        buttons = ipywidgets.HBox([self._commit, self._skip])
        kind = ipywidgets.VBox if question.kind in ("choice", "cells") else ipywidgets.HBox
        self._row = kind(
            [self._field, buttons],
            layout=ipywidgets.Layout(flex_flow="row wrap" if kind is ipywidgets.HBox else "column"),
        )
        self._revealed = ipywidgets.HTML()
        super().__init__(
            [
                ipywidgets.HTML(BOX_STYLE + _write_asleep() + self._write_asked()),
                self._row,
                self._revealed,
            ]
        )
        self.add_class("course-exercise")
        if before := self._read():
            self._show(
                f"{self._SAID} <b>{html.escape(before.said)}</b>."
                f" {write_markdown(question.write_result())}",
                before.said,
                "plain",
            )

    def _choose_words(self) -> tuple[str, str, str, str]:
        return (
            _("Predict."),
            _("That is my prediction"),
            _("Show without predicting"),
            _("You predicted"),
        )

    def _read(self) -> progress.Prediction | None:
        return progress.read_predictions().get(self.question.id)

    def _note(self, prediction: str, *, surprised: bool) -> None:
        progress.note_prediction(self.question.id, prediction, surprised=surprised)

    def _write_asked(self, more: str = "") -> str:
        return write_box(
            f"<b>{self._LABEL}</b> {write_markdown(self.question.question)}{more}",
            "task",
            role=None,
        )

    def _answer(self) -> None:
        if isinstance(self._field, _CellsField):
            prediction: Any = self._field.cells
        else:
            prediction = (
                self._field.number if isinstance(self._field, _NumberField) else self._field.value
            )
        if prediction is None or prediction in ("", []):
            self._revealed.value = write_box(
                _("Choose or write an answer first; or have it shown without one."), "open"
            )
        elif isinstance(prediction, float) and not math.isfinite(prediction):
            self._revealed.value = write_box(_("Write a number."), "open")
        else:
            self._reveal(prediction)

    def _reveal(self, prediction: float | str | Cells | None) -> None:
        question = self.question
        if prediction is None:
            self._show(
                _("The answer: {result}").format(result=write_markdown(question.result)),
                "",
                "plain",
            )
            return
        surprised, problem_note, words = (
            not question.is_expected(prediction),
            "",
            question.write(prediction),
        )
        try:
            self._note(words, surprised=surprised)
        except OSError as problem:
            problem_note = f"<p>{_('It could not be kept in your progress ({problem}).').format(problem=html.escape(str(problem)))}</p>"  # noqa: E501
        self._show(
            write_markdown(question.write_verdict(prediction)),
            words,
            "open" if surprised else "good",
            problem_note,
        )
        for review in list(_REVIEWS):
            review.show()

    def _show(self, verdict_text: str, prediction: str, look: str, more: str = "") -> None:
        question = self.question
        table = _write_cells(question, prediction) if question.cells else ""
        self._revealed.value = write_box(
            f"<p>{verdict_text}</p>{table}<p>{write_markdown(question.why)}</p>{more}", look
        )
        self._row.layout.display = "none"
        answers.open_answers(question.id)

    def _repr_mimebundle_(
        self, include: Any = None, exclude: Any = None, **kwargs: Any
    ) -> dict[str, Any]:
        live = super()._repr_mimebundle_(**kwargs) or {}
        still = self._write_asked(
            f"{_write_labels(self.question)}<p><em>{_('Run this cell to answer.')}</em></p>"
        )
        text = f"{self._LABEL} {self.question.question}"
        return {"text/html": BOX_STYLE + still, "text/plain": text} | {
            k: v for k, v in live.items() if k == VIEW
        }


class Review(ipywidgets.VBox):
    """A summary of a lesson's predictions: how many were made, and which surprised. Later
    predictions update it."""

    def __init__(self, lesson: str) -> None:
        self.lesson = lesson
        self._words = ipywidgets.HTML()
        self._hunt = _make_button(_("Begin a hunt"), self._begin_hunt)
        self._style = ipywidgets.HTML(BOX_STYLE)
        super().__init__([self._style, self._words, self._hunt])
        self.add_class("course-exercise")
        self.show()
        _REVIEWS.add(self)

    def show(self) -> None:
        self._words.value = write_box(write_review(self.lesson))
        self._hunt.layout.display = "" if _count_hunts(self.lesson) else "none"

    def _begin_hunt(self) -> None:
        self.children = (self._style, self._words, hunt())

    def _repr_mimebundle_(
        self, include: Any = None, exclude: Any = None, **kwargs: Any
    ) -> dict[str, Any]:
        live = super()._repr_mimebundle_(**kwargs) or {}
        invitation = _("Run this cell to see what you predicted in this lesson.")
        still = {
            "text/html": BOX_STYLE + write_box(invitation, role=None),
            "text/plain": invitation,
        }
        return still | {k: v for k, v in live.items() if k == VIEW}


_REVIEWS: weakref.WeakSet[Review] = weakref.WeakSet()


def review_predictions(lesson: str) -> Review:
    """Return the summary of a lesson's predictions, for the lesson's last cell.

    Raises: CourseError if the lesson has none.
    """
    if not read_lesson(lesson):
        raise CourseError(f"lesson {lesson} has no predictions.")
    return Review(lesson)


def write_review(lesson: str) -> str:
    questions, predictions = read_lesson(lesson), progress.read_predictions()
    predictions_here = {key: predictions[key] for key in questions if key in predictions}
    surprises = [key for key, prediction in predictions_here.items() if prediction.surprised]
    counts = {
        "made": len(predictions_here),
        "predictions": format_count(len(questions), "prediction"),
        "prediction_count": len(questions),
        "right": len(predictions_here) - len(surprises),
    }
    summed = (
        _("<b>{made} of {predictions} made</b>, {right} as you thought.")
        if predictions_here
        else _("<b>{made} of {predictions} made</b>. What you predict above is summed up here.")
    )
    summary = f"<p>{summed.format(**counts)}</p>"
    rows = "".join(
        "<li>"
        + _("{question} You said {said}; it is {answer}.").format(
            question=write_markdown(questions[key].question),
            said=html.escape(predictions_here[key].said),
            answer=write_inline(questions[key].write(questions[key].answer)),
        )
        + "</li>"
        for key in surprises
    )
    steps = stepping.count_passed(lesson)
    surprised = f"<p>{_('What surprised you:')}</p><ul>{rows}</ul>" if rows else ""
    return summary + surprised + (f"<p>{steps}{_('.')}</p>" if steps else "") + _write_hunts(lesson)


def _write_hunts(lesson: str) -> str:
    waiting = _count_hunts(lesson)
    words = join_sentences(
        draw.say_waiting(waiting), _("`course hunt` in a terminal opens a page of them.")
    )
    return f"<p>{write_inline(words)}</p>" if waiting else ""


def _count_hunts(lesson: str) -> int:
    """Count the hunts that wait; 0 in lesson 00, because it has not shown a wrong kernel yet."""
    return draw.count_waiting() if lesson > "00" else 0


def _write_asleep() -> str:
    words = _(
        "<b>This question is asleep</b>: it is from an earlier session. Run this cell to wake it."
    )
    return f'<div class="course-box open course-asleep">{words}</div>'


# (predicted, in the answer)
_CELL_SIGNS = {(True, True): "✓", (True, False): "✗", (False, True): "○"}
_CELL_WORDS = {"✓": N_("right"), "✗": N_("clicked, and wrong"), "○": N_("not clicked, and right")}


def _write_cells(question: Question, prediction: str) -> str:
    """Write the table, with a sign in each cell of the answer and of the prediction."""
    assert not isinstance(question.answer, (int, float, str))
    answer, chosen = _sort_cells(question.answer), _read_cells(question, prediction)
    rows, used = "", set()
    for row, labels in enumerate(question.cells):
        rows += "<tr>"
        for column, label in enumerate(labels):
            is_answer = (row, column) in answer
            sign = _CELL_SIGNS.get(
                (is_answer if chosen is None else (row, column) in chosen, is_answer), ""
            )
            used |= {sign} - {""}
            look = {"✓": "good", "✗": "bad", "○": "open"}.get(sign, "")
            rows += (
                f'<td class="{look}">{f"<b>{sign}</b> " if sign else ""}{html.escape(label)}</td>'
            )
        rows += "</tr>"
    key = ", ".join(f"{sign} {_(words)}" for sign, words in _CELL_WORDS.items() if sign in used)
    return f'<table class="course-cells"><caption>{key}</caption>{rows}</table>'


def _read_cells(question: Question, prediction: str) -> list[tuple[int, int]] | None:
    """Return the cells that :meth:`Question.write` wrote as ``prediction``; None if ``prediction``
    is empty or cannot be read, as one of an earlier version or in another language."""
    places = {name: cell for cell, name in question.name_cells().items()}
    names = prediction.split("; ")
    return [places[name] for name in names] if set(names) <= set(places) else None


def _write_labels(question: Question) -> str:
    rows = "".join(
        f"<tr>{''.join(f'<td>{html.escape(label)}</td>' for label in labels)}</tr>"
        for labels in question.cells
    )
    return f'<table class="course-cells">{rows}</table>' if rows else ""


def _make_field(question: Question) -> Any:
    if question.kind == "cells":
        return _CellsField(question.cells)
    if question.kind == "choice":
        return ipywidgets.RadioButtons(
            options=question.choices,
            value=None,
            layout=ipywidgets.Layout(width="auto"),
            disabled=False,
        )
    # A screen reader reads a description as the field's name, but not a tooltip.
    named = {"description": _("Your answer"), "style": {"description_width": "initial"}}
    return _NumberField(
        placeholder=question.unit or _("a number"), layout=ipywidgets.Layout(width="290px"), **named
    )


class _CellsField(ipywidgets.VBox):
    """A table of labels, each a toggle button."""

    def __init__(self, cells: Sequence[Sequence[str]]) -> None:
        self._buttons = {
            (row, column): ipywidgets.ToggleButton(
                description=label,
                tooltip=f"row {row}, column {column}",
                layout=ipywidgets.Layout(width="auto", min_width="4em"),
            )
            for row, labels in enumerate(cells)
            for column, label in enumerate(labels)
        }
        grid = ipywidgets.GridBox(
            list(self._buttons.values()),
            layout=ipywidgets.Layout(
                grid_template_columns=f"repeat({len(cells[0])}, max-content)",
                grid_gap="2px",
                overflow="auto",
            ),
        )
        grid.add_class("course-cells")
        super().__init__(
            [
                ipywidgets.HTML(
                    f"<span>{_('Click each cell that you mean; a second click takes it back.')}</span>"  # noqa: E501
                ),
                grid,
            ]
        )

    @property
    def cells(self) -> list[tuple[int, int]]:
        return [place for place, button in self._buttons.items() if button.value]


class _NumberField(ipywidgets.Text):
    """A text field for a number. The number fields of ipywidgets are not used because they start
    with a 0."""

    @property
    def number(self) -> float | None:
        return read_number(self.value) if self.value.strip() else None


def read_number(words: str) -> float:
    """Return the number that a learner wrote: 0.0625, 0,0625 or 1/16; NaN if it is not a number.
    The site's script (site.js) has the same rule."""
    above, slash, below = words.replace(",", ".").partition("/")
    try:
        return float(above) / float(below) if slash else float(above)
    except (ValueError, ZeroDivisionError):
        return math.nan


def _make_button(words: str, action: Callable[[], None], style: str = "") -> ipywidgets.Button:
    button = ipywidgets.Button(
        description=words, button_style=style, layout=ipywidgets.Layout(width="auto")
    )
    button.on_click(lambda _button: action())
    return button
