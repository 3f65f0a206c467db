"""``python -m course_lib.authoring.lesson_size``: estimate from its script how long each lesson
takes a newcomer.

A page that says "*About N minutes" a second time has two sittings. The second begins with the cell
that says so.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from nbformat import NotebookNode

from course_lib import catalog
from course_lib.authoring.notebooks import (
    ANSWER,
    CALL,
    DIVE,
    MINUTES,
    STEP,
    list_sources,
    read_source,
)
from course_lib.lessons.prediction import Question, find

WORDS_A_MINUTE = 150
STEP_MINUTES = 2.0
PREDICTION_MINUTES = 0.5
_OPTIONAL = "## Without rails"  # the section of the optional task


@dataclass(frozen=True)
class LessonSize:
    """The size of one sitting of a lesson's page as a learner sees it, without its dives and the
    section of its optional task.

    Attributes:
        sitting: 1 for the first sitting of the lesson; most lessons have one.
        words: number of words in the text and in the predictions with their reasons. A formula
            counts like text.
        code_lines: number of code lines that are not folded, steps included.
        longest_cell: lines of the longest open code cell.
        exercise_minutes: the sum of the minutes that the catalog gives for the exercises of the
            sitting, without an optional task.
        said: the minutes that the sitting itself names; 0 if it names none.
    """

    lesson: str
    sitting: int
    words: int
    code_lines: int
    longest_cell: int
    predictions: int
    steps: int
    dives: int
    exercise_minutes: int
    said: int

    @property
    def page_minutes(self) -> float:
        """The minutes for the page without the exercises."""
        return (
            self.words / WORDS_A_MINUTE
            + self.steps * STEP_MINUTES
            + self.predictions * PREDICTION_MINUTES
        )

    @property
    def minutes(self) -> float:
        return self.page_minutes + self.exercise_minutes


def measure(source: Path) -> list[LessonSize]:
    """Return the size of each sitting of the learner's page that is built from the script
    ``source``."""
    sittings: list[list[NotebookNode]] = [[]]
    for cell in read_source(source).cells:
        if sittings[0] and cell.cell_type == "markdown" and MINUTES.search(cell.source):
            sittings.append([])
        sittings[-1].append(cell)
    return [
        _measure_sitting(source.name[:2], number, cells) for number, cells in enumerate(sittings, 1)
    ]


def _measure_sitting(lesson: str, sitting: int, cells: Sequence[NotebookNode]) -> LessonSize:
    texts, codes, calls, steps = [], [], [], 0
    for cell in _leave_out_dives(cells):
        tags = cell.metadata.get("tags", [])
        if cell.cell_type == "markdown":
            texts.append(cell.source)
            continue
        steps += STEP in tags
        calls += CALL.findall(cell.source)
        if ANSWER not in tags:
            codes.append([line for line in cell.source.splitlines() if line.strip()])
    questions = [find(argument) for call, argument in calls if call == "predict"]
    exercises = [
        catalog.required()[argument]
        for call, argument in calls
        if call == "exercise" and argument in catalog.required()
    ]
    minutes_match = MINUTES.search("\n".join(texts))
    texts += map(_write_question, questions)
    return LessonSize(
        lesson, sitting, sum(len(text.split()) for text in texts), sum(map(len, codes)),
        max(map(len, codes)), len(questions), steps,
        sum(DIVE in cell.metadata.get("tags", []) for cell in cells),
        sum(exercise.minutes for exercise in exercises),
        int(minutes_match[1]) if minutes_match else 0,
    )  # fmt: skip


def _leave_out_dives(cells: Sequence[NotebookNode]) -> Iterator[NotebookNode]:
    """Yield the cells outside dives and tasks without rails. Such a part ends with the next
    heading of its level or above."""
    level_of_part = 0
    for cell in cells:
        heading = re.match(r"(#+) ", cell.source) if cell.cell_type == "markdown" else None
        level = len(heading[1]) if heading else 0
        if 0 < level <= level_of_part:
            level_of_part = 0
        if DIVE in cell.metadata.get("tags", []) or cell.source.startswith(_OPTIONAL):
            level_of_part = level
        if not level_of_part:
            yield cell


def _write_question(question: Question) -> str:
    return " ".join([question.question, *question.choices, question.result, question.why])


def main() -> int:
    print(
        "lesson   words  open code lines  longest cell  predictions  steps  dives  page min "
        " exercises min  all  says"
    )
    for size in (size for source in list_sources() for size in measure(source)):
        name = size.lesson + f", {size.sitting}" * (size.sitting > 1)
        print(
            f"{name:<6} {size.words:7} {size.code_lines:16} {size.longest_cell:13}"
            f" {size.predictions:12} {size.steps:6} {size.dives:6} {size.page_minutes:9.0f}"
            f" {size.exercise_minutes:14} {size.minutes:4.0f} {size.said:5}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
