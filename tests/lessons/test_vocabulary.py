"""One thing has one name in all that a learner reads: pages, predictions, steps, exercises,
pictures and README."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from course_lib.authoring.notebooks import list_sources
from course_lib.base import paths

_THING = r"(?:threads?|programs?|rows?|columns?|elements?|lanes?|numbers?|steps?|seconds?|chunks?|tiles?|warps?|launch|pass|call|multiprocessor|token|layer)"  # noqa: E501
_COUNTED = r"(?:registers|numbers|rows|elements|bytes|reads|columns|warps|threads|lanes|programs|steps|tiles|chunks|operations|additions|sectors|loads)"  # noqa: E501
# the words that stand for something else, or for nothing, and the word that is used
WRONG_WORDS = {
    r"\b(?:spare|padded) (?:lanes?|columns?)\b|\blanes? (?:are|is) (?:spare|padded)\b|\blanes? "
    r"outside\b": ("lane past the end"),
    # an algorithm is one-pass or two-pass, gradients have a backward pass, and kernels pass a check
    r"\b(?:first|second|third|further|another|elementwise) pass\b|"
    r"(?<!-)(?<!backward.)\bpass over\b|"
    r"\b(?:two|three|four|five|six|eight|[1-9]|how many|fewer|these|those|both|of the)"
    r" passes\b": ("sweep"),
    r"\b(?:block|program) instances?\b|\bthread blocks?\b|\bblock (?:index|number|id)\b": "program",
    # a rate; "how many lanes a thread has" is none
    rf"\b(?:{_COUNTED}|1 row|one row|a row) an? {_THING}\b(?! "
    rf"(?:has|have|holds|hold|loads|reads|takes|gets|keeps|can|may|does|adds)\b)": ("per"),
}
FILES = [
    *list_sources(),
    *sorted((paths.ROOT / "course_lib/lessons").glob("lesson*/predictions.toml")),
    *sorted((paths.ROOT / "course_lib/lessons").glob("lesson*/steps.py")),
    *sorted(paths.EXERCISE_FOLDERS.glob("*/exercise.toml")),
    *sorted(paths.SOLUTIONS.glob("ex*.py")),
    *sorted((paths.ROOT / "course_lib/lessons").glob("**/picture.js")),
    *sorted((paths.ROOT / "course_lib/lessons").glob("**/figures.py")),
    paths.ROOT / "README.md",
]


def find_wrong_words(text: str) -> list[tuple[int, str, str]]:
    """Return line, words and the right word of each wrong word. A line break, with a comment's # or
    a string's \\, counts as a space."""
    found = []
    for pattern, right in WRONG_WORDS.items():
        for match in re.finditer(
            pattern.replace(" ", r"(?:[ \n]|\n# |\\\n)+"), text, re.IGNORECASE
        ):
            found.append(
                (
                    text.count("\n", 0, match.start()) + 1,
                    " ".join(match[0].replace("#", " ").split()),
                    right,
                )
            )
    return found


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_one_thing_has_one_name(file: Path):
    text = file.read_text(encoding="utf-8")
    # README quotes an exercise and a verdict, as they are, in fenced blocks
    if file.suffix == ".md":
        text = re.sub(r"(?ms)^```.*?^```$", lambda block: "\n" * block[0].count("\n"), text)
    wrong = find_wrong_words(text)
    assert not wrong, "\n".join(
        f"{file.relative_to(paths.ROOT)}:{line}: {words!r}, where the course says {right!r}"
        for line, words, right in wrong
    )


@pytest.mark.parametrize(
    ("text", "line", "right"),
    [
        ("one\nThe 24 spare lanes add 0.", 2, "lane past the end"),
        ("# three lanes are\n# padded", 1, "lane past the end"),
        ("The second pass", 1, "sweep"),
        ("a\n# pass over the row", 2, "sweep"),
        ("it makes 4\n# passes", 1, "sweep"),
        ("the thread block", 1, "program"),
        ("# 40 registers a\n# thread, and no more", 1, "per"),
        ("as many rows a program as fit", 1, "per"),
    ],
)
def test_a_wrong_word_is_found_with_its_line(text, line, right):
    assert [(found, said) for found, _, said in find_wrong_words(text)] == [(line, right)]


@pytest.mark.parametrize(
    "text",
    [
        "how many lanes a thread has",
        "the rows of a program",
        "on 4 warps, a thread",
        "three lanes past the end",
        "two-pass needs two sweeps",
        "the backward pass of 4 norms that pass",
    ],
)
def test_a_right_word_is_left_alone(text):
    assert not find_wrong_words(text)
