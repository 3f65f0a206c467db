"""Turns a built notebook into a page: outputs stay, answers are folded, and a sentence stands where
Python is needed.

Nothing is run. A prediction shows its question, with the answer folded below. Steps, exercises and
controls that need Python are replaced by words for what they do and how the lesson is run. A dive
is folded under its heading.
"""

from __future__ import annotations

import copy
import html
import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import nbformat
from nbformat.v4 import new_markdown_cell

from course_lib import catalog
from course_lib.authoring.notebooks import ANSWER, CALL, DIVE, MINUTES, STEP
from course_lib.authoring.site.html import (
    CourseSource,
    close_fold,
    open_fold,
    write_headings_flat,
    write_launches,
    write_raw,
    write_start,
    write_tab_button,
)
from course_lib.base.errors import CourseError
from course_lib.base.translation import choose_language, join_sentences
from course_lib.base.translation import gettext as _
from course_lib.catalog import Exercise, texts
from course_lib.lessons import prediction
from course_lib.lessons.live import VIEW
from course_lib.lessons.panel_page import find_first_line, write_box, write_markdown
from course_lib.lessons.recalling import choose_questions

Cell = nbformat.NotebookNode

_HEADING = re.compile(r"(#{1,6}) +(.+)")
_CALL_ALONE = re.compile(
    r'\s*(from [\w.]+ import [\w, ]+\s+)*(predict|exercise|review_predictions)\("[^"]+"\)\s*'
)
# styles for JupyterLab's page; a page of the site has its own
_STYLE_ALONE = re.compile(r"\s*<style>.*</style>\s*", re.DOTALL)

RUN = _('<a href="#run-this-lesson">run the lesson</a>')
_REVIEW = _(
    "Here the lesson sums up your predictions: how many came out as you thought, and what surprised"
    " you. For that, {run}."
).format(run=RUN)
_CONTROLS = (
    '<p class="needs-python">'
    + _(
        "Here are controls that have Python compute another picture. For them, {run}. The picture"
        " below moves without them."
    ).format(run=RUN)
    + "</p>"
)
# words of a notebook for a reader who can run its cells, as they are saved or translated -> the
# words that replace them on a page
_INSTEAD = {
    f"<p><em>{words}</em></p>": instead
    for english, instead in (
        ("Run this cell for the controls that ask Python.", _CONTROLS),
        (
            "Run this cell to wake the picture.",
            f"<p><em>{_('It moves in a browser that runs scripts.')}</em></p>",
        ),
    )
    for words in (english, _(english))
}
_TO_RUN = re.compile(r"Run this cell (to|for) ([^.;<]+)")


@dataclass(frozen=True)
class Lesson:
    """A lesson as the first page describes it.

    Attributes:
        name: the notebook's name without its ending, "03_large_means".
        sittings: the minutes of each sitting; most lessons have one.
        about: its subject, as Markdown: the words behind its link in the README's table, else the
            first sentences of the page.
        exercises: the exercises on the page, by id, in their order.
    """

    name: str
    title: str
    sittings: tuple[int, ...]
    about: str
    exercises: tuple[str, ...]
    predictions: int
    steps: int

    @property
    def minutes(self) -> int:
        return sum(self.sittings)


def read_lesson(notebook: Cell, name: str, readme: str) -> Lesson:
    """Read the lesson from its built ``notebook`` and from the text of README.md.

    Raises: CourseError if the first cell lacks its title or "*About N minutes".
    """
    first_text = notebook.cells[0].source
    title = _HEADING.match(first_text)
    if title is None or not MINUTES.search(first_text):
        raise CourseError(
            f"notebooks/{name}.ipynb: the first cell has no `# title`, or no line `*About N"
            " minutes`."
        )
    paragraph = " ".join(first_text.split("\n\n")[1].split())
    named = re.search(rf"\]\(notebooks/{name}\.ipynb\)(?:: |：)([^|\n]+?) *\|", readme)
    in_english = choose_language() == "en"
    space = " " if in_english else ""
    about = (
        f"{named[1][0].upper() if in_english else named[1][0]}{named[1][1:]}{_('.')}"
        if named
        else space.join(re.split(r"(?<=[.?]) |(?<=[。？])", paragraph)[:2])
    )
    calls = [
        call
        for cell in notebook.cells
        if cell.cell_type == "code"
        for call in CALL.findall(cell.source)
    ]
    return Lesson(
        name,
        title[2],
        tuple(
            int(minutes)
            for cell in notebook.cells
            if cell.cell_type == "markdown"
            for minutes in MINUTES.findall(cell.source)
        ),
        about,
        tuple(argument for call, argument in calls if call == "exercise"),
        sum(call == "predict" for call, _argument in calls),
        sum(call == "step" for call, _argument in calls),
    )


def make_page(notebook: Cell, name: str, source: CourseSource) -> Cell:
    """Make the notebook that the site shows. ``notebook`` itself is not changed.

    Raises: CourseError if an output still tells the reader to run a cell.
    """
    page = copy.deepcopy(notebook)
    title_cell, *later_cells = page.cells
    moves = any(
        "data-picture=" in output.get("data", {}).get("text/html", "")
        for cell in later_cells
        for output in cell.get("outputs", [])
    )
    page.cells = [
        title_cell,
        _markdown(_write_way_to_run(name, source, moves)),
        *_make_cells(later_cells),
    ]
    for index, cell in enumerate(page.cells):
        cell["id"] = f"page-{index:03}"
    _check_nothing_is_to_run(page, name)
    return page


def _make_cells(cells: Sequence[Cell]) -> Iterator[Cell]:
    """Yield what the page shows of a lesson's cells: dives and answers are folded."""
    left, diving = deque(cells), False
    while left:
        cell = left.popleft()
        heading = _HEADING.match(cell.source) if cell.cell_type == "markdown" else None
        if diving and heading and len(heading[1]) <= 2:
            yield _markdown(close_fold())
            diving = False
        if heading and DIVE in _get_tags(cell):
            title, _newline, below = cell.source.partition("\n")
            yield _markdown(title)
            yield _markdown(open_fold("Open this dive", look="dive"))
            yield _markdown(below)
            diving = True
        elif lesson := _find_call(cell, "recall"):
            for question in choose_questions(lesson, {}, {}):
                asked = replace(question, question=question.recall)
                yield from _make_fold([], asked, _("Do you remember?"))
        elif question_id := _find_call(cell, "predict"):
            yield from _make_fold(_take_answers(left), prediction.find(question_id))
        elif ANSWER in _get_tags(cell):
            yield from _make_fold([cell, *_take_answers(left)], None)
        else:
            yield _make_cell(cell, flat=diving)
            if exercise_id := _find_call(cell, "exercise"):
                yield _markdown(_write_unsolved(catalog.get(exercise_id)))
    if diving:
        yield _markdown(close_fold())


def _write_way_to_run(name: str, source: CourseSource, moves: bool) -> str:
    folded = (
        _(
            "No cell runs on this page. Its pictures move, and its answers are folded: predict"
            " first, then open them."
        )
        if moves
        else _("No cell runs on this page. The answers are folded: predict first, then open them.")
    )
    notebook = f"notebooks/{name}.ipynb"
    in_tab = write_tab_button(source, notebook, "../")
    reading_hint = (
        join_sentences(_("Or read it on this page."), folded)
        if 'class="button' in in_tab
        else folded
    )
    return write_raw(
        f'<div class="run" id="run-this-lesson">{in_tab}<p>{reading_hint}</p>'
        f"{write_start(source, '../')}<p>"
        + _("There this lesson is <code>{file}</code>.").format(
            file=(
                f"notebooks/{'' if choose_language() == 'en' else f'{choose_language()}/'}{name}.ipynb"  # noqa: E501
            )
        )
        + f"</p>{write_launches(source, notebook)}<p>"
        + _(
            '<a class="button" download href="{name}.ipynb">Download this notebook</a> It runs'
            " only in the course's folder."
        ).format(name=name)
        + "</p></div>"
    )


def _write_unsolved(exercise: Exercise) -> str:
    """Write the file of an unsolved exercise without its task: the panel above it shows the
    task."""
    text = texts.make_learners_text(exercise)
    code = "".join(text.splitlines(keepends=True)[find_first_line(text) - 1 :])
    words = _("Your file as you get it, `exercises/{file}.py`:").format(file=exercise.file)
    return f"{words}\n\n```python\n{code.rstrip()}\n```"


def _find_call(cell: Cell, call: str) -> str | None:
    """Return the argument of the cell's ``call("...")``; None if there is no such call."""
    arguments = [argument for name, argument in CALL.findall(cell.source) if name == call]
    return arguments[0] if cell.cell_type == "code" and arguments else None


def _take_answers(cells: deque[Cell]) -> list[Cell]:
    """Take the cells tagged ``answer`` from the front of ``cells``."""
    answers = []
    while cells and ANSWER in _get_tags(cells[0]):
        answers.append(cells.popleft())
    return answers


def _make_fold(
    answers: list[Cell], question: prediction.Question | None, label: str = ""
) -> list[Cell]:
    """Return the question of a prediction, if there is one, and the answer to it, folded."""
    fold = []
    if question is None:
        fold.append(_markdown(open_fold(_("What came out"))))
    else:
        fold += [
            _markdown(write_raw(_write_question(question, label or _("Predict.")))),
            _markdown(open_fold(_("Show what comes out"), answers=question.id)),
        ]
        fold.append(
            _markdown(
                write_raw(f"{_write_verdicts(question)}<p>{write_markdown(question.why)}</p>")
            )
        )
    fold += [_make_cell(cell, flat=True) for cell in answers]
    return [*fold, _markdown(close_fold())]


def _write_question(question: prediction.Question, label: str) -> str:
    """Write the question with a field for the reader's prediction. site.js shows the prediction
    again when the fold below is opened."""
    parts = [f"<b>{label}</b> {write_markdown(question.question)}", _write_field(question)]
    parts.append(
        f'<p class="needs-python">{_("To have it kept and summed up at the end, {run}.").format(run=RUN)}</p>'  # noqa: E501
    )
    return write_box("".join(parts), "task", role=None).replace(
        "<div", f'<div data-question="{question.id}"', 1
    )


def _write_field(question: prediction.Question) -> str:
    if question.kind == "choice":
        choices = "".join(
            f'<label><input type="radio" name="{question.id}">'
            f" <span>{html.escape(choice)}</span></label>"
            for choice in question.choices
        )
        return (
            f'<fieldset class="prediction"><legend>{_("Your answer")}</legend>{choices}</fieldset>'
        )
    if question.kind == "cells":
        rows = "".join(
            "<tr>"
            + "".join(
                f'<td><label><input type="checkbox" value="{row},{column}">'
                f" <span>{html.escape(label)}</span></label></td>"
                for column, label in enumerate(labels)
            )
            + "</tr>"
            for row, labels in enumerate(question.cells)
        )
        return f'<table class="course-cells prediction">{rows}</table>'
    assert isinstance(question.answer, (int, float))
    # on a phone the decimal keyboard often has no minus
    keys = ' inputmode="decimal"' if question.answer >= 0 else ""
    return (
        f'<label class="prediction">{_("Your answer")} <input type="text"{keys} size="12"'
        f' autocomplete="off"> {html.escape(question.unit)}</label>'
    )


def _write_verdicts(question: prediction.Question) -> str:
    """Write each sentence that the question's box may begin with. site.js shows the one that fits
    the reader's prediction; else the last is shown."""
    answer, judged = question.answer, {}
    if isinstance(answer, (int, float)):
        judged = {"answer": answer, "within": question.within, "factor": question.factor}
    elif isinstance(answer, Sequence) and question.kind == "cells":
        judged = {
            "answer": " ".join(f"{row},{column}" for row, column in sorted(map(tuple, answer)))
        }
    else:
        judged = {"answer": str(answer)}
    attributes = "".join(
        f' data-{name}="{html.escape(str(value))}"' for name, value in judged.items()
    )
    lines = {
        choice: f"{verdict_text} {question.write_result()}"
        for choice, verdict_text in question.others.items()
    }
    leads = {
        "right": _("Right: {result}"),
        "close": _("Close: {result}"),
        "skipped": _("The answer: {result}"),
    }
    lines |= {when: lead.format(result=question.result) for when, lead in leads.items()}
    written = "".join(
        f'<p data-when="{html.escape(when)}"{"" if when == "skipped" else " hidden"}>{write_markdown(line)}</p>'  # noqa: E501
        for when, line in lines.items()
    )
    other_answer = _("these cells") if question.kind == "cells" else "<span></span>"
    other_verdict = _("Not {answer}: {result}").format(
        answer=other_answer, result=write_markdown(question.result)
    )
    written = f'<p data-when="other" hidden>{other_verdict}</p>{written}'
    return f'<div class="said" data-kind="{question.kind}"{attributes}>{written}</div>'


def _make_cell(cell: Cell, *, flat: bool) -> Cell:
    if cell.cell_type == "markdown":
        return _markdown(write_headings_flat(cell.source) if flat else cell.source)
    page_cell = copy.deepcopy(cell)
    page_cell.metadata = nbformat.NotebookNode(
        tags=["remove-input"] if _CALL_ALONE.fullmatch(cell.source) else []
    )
    page_cell.outputs = [
        output for output in page_cell.outputs if not _STYLE_ALONE.fullmatch(_get_html(output))
    ]
    for output in page_cell.outputs:
        _mend_output(output, cell)
        if alt := output.get("metadata", {}).get("image/png", {}).get("alt"):
            page_cell.metadata["mystnb"] = {"image": {"alt": alt}}
    return page_cell


def _get_html(output: Cell) -> str:
    return output.get("data", {}).get("text/html", "")


def _mend_output(output: Cell, cell: Cell) -> None:
    data = output.get("data", {})
    data.pop(VIEW, None)
    if "text/html" not in data:
        return
    if STEP in _get_tags(cell) and (step := _find_call(cell, "step")):
        mark = "REPAIR" if "# REPAIR" in cell.source else "YOUR CODE"
        data["text/html"] = write_box(
            _(
                "<b>Step {id}.</b> You change the part marked {mark}, run the cell, and it is"
                " checked at once. For that, {run}."
            ).format(id=step, mark=mark, run=RUN),
            "open",
            role=None,
        )
    elif _find_call(cell, "review_predictions"):
        data["text/html"] = write_box(_REVIEW, role=None)
    data["text/html"] = mend_words(data["text/html"])


def mend_words(markup: str) -> str:
    """Replace the words in an output's HTML that are for a reader who can run its cell by words for
    a page."""
    for words, instead in _INSTEAD.items():
        markup = markup.replace(words, instead)
    if choose_language() != "en":
        markup = markup.replace(_("Run this cell"), RUN)
    return _TO_RUN.sub(lambda match: f"{match[1].capitalize()} {match[2]}, {RUN}", markup)


def _check_nothing_is_to_run(page: Cell, name: str) -> None:
    for cell in page.cells:
        for output in cell.get("outputs", []):
            if match := re.search(r".{0,60}[Rr]un this cell.{0,60}", _get_html(output)):
                raise CourseError(
                    f"notebooks/{name}.ipynb: an output tells a reader without Python to run a"
                    f" cell: {match[0]!r}. Say in {__name__} what stands there on the site."
                )


def list_exercises(lesson: Lesson) -> list[str]:
    """Return id and title of each exercise of the lesson, as in "03a One pass and two passes"; ◆
    marks those of the short path, and an optional task is called so."""
    exercises = map(catalog.get, lesson.exercises)
    return [
        f"{'◆ ' * exercise.short_path}{exercise.id}"
        f" {exercise.title}{_(' (optional)') * exercise.optional}"
        for exercise in exercises
    ]


def _markdown(text: str) -> Cell:
    return new_markdown_cell(text)


def _get_tags(cell: Cell) -> list[str]:
    return cell.metadata.get("tags", [])
