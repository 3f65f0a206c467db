"""The comments of an exercise in another language: its code stays as it is."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from course_lib import catalog
from course_lib.base.translation import LANGUAGES
from course_lib.catalog.comments import translate_comments
from course_lib.catalog.texts import is_unsolved, make_learners_text, make_unsolved_text
from course_lib.grading.submission import reader

CODE = '''"""Two words.

More words
here.

    y = x

The end.
"""

import numpy  # a package


def run(
    x,  # a row
):
    """What it does.

        z: a number
        y
    """
    # YOUR CODE, 1 line: First
    # and second.
    # YOUR CODE, 1 line: Third.
    return "# no comment"
'''


def test_comments_and_paragraphs_are_translated_one_by_one():
    seen: list[str] = []
    assert translate_comments(CODE, lambda text: seen.append(text) or text) == CODE
    assert sorted(seen) == sorted(
        [
            "Two words.",
            "More words here.",
            "y = x",
            "The end.",
            "What it does.",
            "z: a number\ny",
            "a package",
            "a row",
            "YOUR CODE, 1 line: First and second.",
            "YOUR CODE, 1 line: Third.",
        ]
    )


def test_a_translation_takes_the_place_of_the_english():
    chinese = {
        "More words here.": "这里还有一些话。",
        "a row": "一行",
        "What it does.": "它的作用。",
        "z: a number\ny": "z: 一个数\ny",
        "YOUR CODE, 1 line: First and second.": "YOUR CODE，1 行：第一和第二。",
    }
    translated = translate_comments(CODE, lambda text: chinese.get(text, text))
    assert "\n\n这里还有一些话。\n\n    y = x\n" in translated
    assert "    x,  # 一行\n" in translated
    assert '    """它的作用。\n\n        z: 一个数\n        y\n    """\n' in translated
    assert "    # YOUR CODE，1 行：第一和第二。\n    # YOUR CODE, 1 line: Third.\n" in translated
    assert 'return "# no comment"' in translated


@given(st.text(st.sampled_from("一二，。ab c"), min_size=1, max_size=400))
def test_a_long_translation_is_wrapped_by_the_width_of_its_characters(words):
    code = "def f():\n    # text\n    pass\n"
    translated = translate_comments(code, lambda _text: words.strip() or "一")
    assert ast.dump(ast.parse(translated)) == ast.dump(ast.parse(code))
    lines = [line for line in translated.splitlines() if "#" in line]
    # a mark of punctuation may follow the last column
    assert all(cell_len(line) <= 104 or " " not in line.strip("# ") for line in lines)
    assert "".join("".join(line.strip().removeprefix("#") for line in lines).split()) == "".join(
        (words.strip() or "一").split()
    )


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("exercise", catalog.exercises().values(), ids=lambda exercise: exercise.id)
def test_an_exercise_in_another_language_is_the_same_code_and_not_attempted(exercise, language):
    text, english = make_learners_text(exercise, language), make_unsolved_text(exercise)
    assert _dump(text) == _dump(english)
    assert is_unsolved(exercise, text.encode()) and not is_unsolved(exercise, text.encode() + b"\n")
    assert all(
        english.count(f"# {mark}") == text.count(f"# {mark}") for mark in ("YOUR CODE", "REPAIR")
    )


def test_an_exercise_in_another_language_is_read_as_not_attempted():
    exercise = catalog.get("00a")
    assert (
        reader.read(exercise, make_learners_text(exercise, "zh_CN"), "ex00a_masked_copy.py") is None
    )


def _dump(code: str) -> str:
    module = ast.parse(code)
    for node in ast.walk(module):
        if isinstance(node, (ast.Module, ast.FunctionDef)) and ast.get_docstring(node) is not None:
            node.body = node.body[1:]
    return ast.dump(module)
