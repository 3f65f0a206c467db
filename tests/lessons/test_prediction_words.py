"""The words of every prediction: each way to answer gets whole sentences, and no text below a
question tells its answer."""

from __future__ import annotations

import html
import math
import re

import pytest

from course_lib.authoring.notebooks import ANSWER, list_sources, read_source
from course_lib.base.words import format_number
from course_lib.lessons.panel_page import write_markdown
from course_lib.lessons.prediction import Question, find, predict, read_lesson

SOURCES = {source.stem[:2]: source for source in list_sources()}
IDS = [prediction_id for lesson in SOURCES for prediction_id in read_lesson(lesson)]
_MOST_WORDS = 95  # of a `why`
_SENTENCE_ENDS = re.compile(r"(?<=[.?])[)*]* (?=\S)")


def list_ways(question: Question) -> list[tuple[object, str]]:
    """Return each way to answer, with the words that the box has to begin with; None is no
    answer."""
    ways: list[tuple[object, str]] = [(question.answer, "Right: "), (None, "The answer: ")]
    if question.kind == "cells":
        return [*ways, ([], "Not these cells: ")]
    if question.kind == "choice":
        return [
            *ways,
            *((choice, "Not ") for choice in question.choices if choice != question.answer),
        ]
    assert isinstance(question.answer, (int, float))
    ways += [(float(key), told.split(" ", 1)[0]) for key, told in question.others.items()]
    near = (
        question.answer * question.factor**0.9
        if question.factor
        else question.answer + 0.9 * question.within
    )
    digits = len(str(question.answer).partition(".")[2])
    if question.is_expected(near) and not (
        math.isclose(near, question.answer, rel_tol=0.006) or round(near, digits) == question.answer
    ):
        ways.append((near, "Close: "))
    return [*ways, (-12.5, "Not -12.5: ")]


def read_words(markup: str) -> list[str]:
    """Return the paragraphs of the box as plain text; what stands in code is written as CODE."""
    markup = re.sub(r"<table.*?</table>", "", markup, flags=re.DOTALL)
    markup = re.sub(r"<code>.*?</code>", "CODE", markup, flags=re.DOTALL)
    return [
        html.unescape(re.sub(r"<[^>]+>", "", part))
        for part in re.findall(r"<p>(.*?)</p>", markup, re.DOTALL)
    ]


@pytest.mark.parametrize("prediction_id", IDS)
def test_each_way_to_answer_gets_whole_sentences(prediction_id, tmp_path, monkeypatch):
    monkeypatch.setattr("course_lib.learner.progress.note_prediction", lambda *_, **__: None)
    monkeypatch.setattr("course_lib.lessons.prediction.progress.read_predictions", dict)
    question = find(prediction_id)
    asked = predict(prediction_id)
    seen = set()
    for said, begins in list_ways(question):
        asked._reveal(said)
        first, why = read_words(asked._revealed.value)
        assert first.startswith(begins), f"{said}: {first}"
        for paragraph in (first, why):
            assert paragraph.endswith((".", ".)")) and ".." not in paragraph.replace("...", ""), (
                paragraph
            )
            assert not re.search(r"[`!]|\]\(|\*\*|(?<!\w)\*\w|\w\*(?!\w)|\$", paragraph), (
                f"Markdown is left: {paragraph}"
            )
            assert not re.search(r"\b([A-Za-z]+) \1\b", paragraph), f"a word twice: {paragraph}"
            for sentence in _SENTENCE_ENDS.split(paragraph):
                assert re.match(
                    r"[A-Z0-9(\"\-]|kappa|mean|rstd|eps|xhat|wdy|bf16|fp16|fp32|gradcheck|dw|dx|dy|db|n_b|u"
                    r" |w |x |y |c1 |torch|quack",
                    sentence,
                ), sentence
        assert first.count("It is ") < 2 and first not in seen, first
        seen.add(first)
    assert len(re.findall(r"\S+", question.why)) <= _MOST_WORDS, "the reason is a page of its own"
    assert not re.match(r"(?!a\b)(xhat|wdy|d[wxyb]|rstd|eps|[a-z]\d?)\b", question.result), (
        "a name in code keeps its small letter"
    )
    assert question.result.rstrip(".").lower() not in question.why.lower(), (
        "the reason repeats the result"
    )
    assert question.result.rstrip(".").lower() not in question.question.lower(), (
        "the question tells its answer"
    )
    assert not any(re.search(r"`|\*\S", choice) for choice in question.choices), (
        "a choice is plain text"
    )


@pytest.mark.parametrize("lesson", SOURCES)
def test_no_text_below_a_question_tells_its_answer(lesson):
    cells = read_source(SOURCES[lesson]).cells
    assert not [
        cell.source
        for cell in cells
        if cell.cell_type == "markdown" and ANSWER in cell.metadata.get("tags", [])
    ], (
        "the argument of a prediction stands in its box, and what later cells need stands on the"
        " page"
    )
    for number, cell in enumerate(cells):
        for prediction_id in (
            re.findall(r'^predict\("([^"]+)"\)', cell.source, re.MULTILINE)
            if cell.cell_type == "code"
            else ()
        ):
            below = next(
                (later.source for later in cells[number + 1 :] if later.cell_type == "markdown"), ""
            )
            told = find_told(find(prediction_id), below)
            assert not told, f"{prediction_id}: the text below says {told!r}"


def find_told(question: Question, text: str) -> str:
    """Return the answer if ``text`` tells it; "" otherwise. A number below 10 counts only beside
    its unit or after "is"."""
    if question.kind == "cells":
        return ""
    if question.kind == "number":
        assert isinstance(question.answer, (int, float))
        number = format_number(question.answer, 6)
        unit = question.unit.split(" ")[0]
        pattern = rf"(?<![\w.,]){re.escape(number)}(?![\w]|[.,]\d)"
        if len(number) < 2:
            pattern = (
                rf"{pattern} {re.escape(unit)}"
                if unit and unit.isalpha()
                else rf"\b(?:is|holds|gives|finds) {pattern}"
            )
    else:
        pattern = re.escape(str(question.answer).split(":")[0])
        pattern = pattern if len(pattern) > 5 else rf"\b(?:is|are|gives|forgot) {pattern}\b"
    found = re.search(pattern, text, re.IGNORECASE)
    return found[0] if found else ""


def test_the_words_of_markdown_are_rendered():
    assert (
        write_markdown("`a * b` is *not* 2 * 3 * 4 **at all**, <b>")
        == "<code>a * b</code> is <em>not</em> 2 * 3 * 4 <b>at all</b>, &lt;b&gt;"
    )
    assert (
        write_markdown("[a page](https://example.org/x?a=1&b=2), `[b](c)`")
        == '<a href="https://example.org/x?a=1&amp;b=2">a page</a>, <code>[b](c)</code>'
    )
    assert (
        write_markdown("[a](javascript:alert(1)) and f(*args, **more)")
        == "[a](javascript:alert(1)) and f(*args, **more)"
    )
