"""``python -m course_lib.authoring.lesson_size``: estimate from its script how long each lesson takes a newcomer."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

from course_lib import catalog
from course_lib.authoring.notebooks import ANSWER, DIVE, STEP, list_sources, read_source
from course_lib.lessons.prediction import Question, read_lesson

WORDS_A_MINUTE = 150
STEP_MINUTES = 2.0
PREDICTION_MINUTES = 0.5
_OPTIONAL = "## Without rails"  # the section of the optional task
_SAYS = re.compile(r"\*About (\d+) minutes")


@dataclass(frozen=True)
class LessonSize:
    """The size of a lesson's page as a learner sees it, without its dives and the section of its optional task.

    Attributes:
        words: number of words in the text and in the predictions with their reasons. A formula counts like text.
        code_lines: number of code lines that are not folded, steps included.
        longest_cell: lines of the longest open code cell.
        exercise_minutes: the sum of the minutes that the catalog gives for the lesson's exercises, without its optional task.
        said: the minutes that the page itself names; 0 if it names none.
    """

    lesson: str
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
        return self.words / WORDS_A_MINUTE + self.steps * STEP_MINUTES + self.predictions * PREDICTION_MINUTES

    @property
    def minutes(self) -> float:
        return self.page_minutes + self.exercise_minutes


def measure(source: Path) -> LessonSize:
    """Return the size of the learner's page that is built from the script ``source``."""
    lesson = source.name[:2]
    questions = read_lesson(lesson).values()
    texts, codes, steps, dives, below = [], [], 0, 0, 0
    for cell in read_source(source).cells:
        tags = cell.metadata.get("tags", [])
        level = len(heading[1]) if (heading := re.match(r"(#+) ", cell.source)) and cell.cell_type == "markdown" else 0
        if below and level and level <= below:  # the next section of the same level ends a dive
            below = 0
        if DIVE in tags or cell.source.startswith(_OPTIONAL):
            dives, below = dives + (DIVE in tags), level
        if below:
            continue
        if cell.cell_type == "markdown":
            texts.append(cell.source)
            continue
        steps += STEP in tags
        if ANSWER not in tags:
            codes.append([line for line in cell.source.splitlines() if line.strip()])
    texts += [_write_question(question) for question in questions]
    said = _SAYS.search("\n".join(texts))
    return LessonSize(
        lesson, sum(len(text.split()) for text in texts), sum(map(len, codes)), max(map(len, codes)), len(questions), steps, dives,
        sum(exercise.minutes for exercise in catalog.required().values() if exercise.lesson == lesson), int(said[1]) if said else 0,
    )  # fmt: skip


def _write_question(question: Question) -> str:
    return " ".join([question.question, *question.choices, question.result, question.why])


def main() -> int:
    print("lesson   words  open code lines  longest cell  predictions  steps  dives  page min  exercises min  all  says")
    for size in map(measure, list_sources()):
        print(
            f"{size.lesson:<6} {size.words:7} {size.code_lines:16} {size.longest_cell:13} {size.predictions:12} {size.steps:6} {size.dives:6} "
            f"{size.page_minutes:9.0f} {size.exercise_minutes:14} {size.minutes:4.0f} {size.said:5}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
