"""Predictions: what counts as expected, what is kept, what a page shows, and that nothing
blocks."""

from __future__ import annotations

import html
import re
from dataclasses import replace

import pytest

from course_lib.authoring.notebooks import list_sources
from course_lib.base.errors import CourseError
from course_lib.cli import status
from course_lib.learner import progress
from course_lib.lessons import answers, prediction
from course_lib.lessons.live import VIEW
from course_lib.lessons.prediction import (
    Question,
    find,
    predict,
    read_lesson,
    read_number,
    review_predictions,
)

LESSONS = [source.stem[:2] for source in list_sources() if read_lesson(source.stem[:2])]
DIGITS = Question(
    "03-a", "How many?", "number", 4, "4 digits are left.", "Because `x` is *small*.",
    unit="digits", within=1,
    others={"7": "Not 7: fp32 has 24 *binary* digits.", "5": "Close: 5 counts the sign."},
)  # fmt: skip
WORDS = Question(
    "03-b",
    "Which?",
    "choice",
    "two",
    "`two` is it.",
    "One is odd.",
    choices=("one", "two"),
    others={"one": "Not one: one is odd."},
)
LAST = Question("03-c", "How far?", "number", 100, "it goes 100 steps.", "It rounds.", factor=2)
SHARE = Question("03-f", "How much?", "number", 9, "it is 9 percent.", "8.594.", within=3)
GRID = Question(
    "03-e",
    "Which are lost?",
    "cells",
    [[1, 0], [0, 2]],
    "13 and 21 are lost.",
    "They are odd.",
    cells=(("11", "12", "13"), ("21", "0", "0")),
)


@pytest.fixture(autouse=True)
def learner(state, monkeypatch):
    monkeypatch.setattr(
        prediction, "read_lesson", lambda lesson: {q.id: q for q in (DIGITS, WORDS, LAST, GRID)}
    )


def words(widget) -> str:
    text = html.unescape(re.sub(r"<style>.*?</style>|<[^>]+>", " ", widget.value, flags=re.DOTALL))
    return re.sub(r" ([.,])", r"\1", " ".join(text.split()))


@pytest.mark.parametrize(
    ("question", "said", "expected"),
    [
        (DIGITS, 4, True), (DIGITS, 5.0, True), (DIGITS, 5.01, False), (DIGITS, -4, False),
        (WORDS, "two", True), (WORDS, "one", False),
        (LAST, 51, True), (LAST, 201, False),
        (Question("03-d", "?", "number", -100, "r", "w", factor=2), 100, False),
        (Question("03-d", "?", "number", 0, "r", "w", factor=2), 0, True),
    ],
)  # fmt: skip
def test_near_enough_is_no_surprise(question, said, expected):
    assert question.is_expected(said) is expected


@pytest.mark.parametrize(
    ("said", "lead"),
    [(9, "Right"), (8.6, "Right"), (8.594, "Right"), (8.4, "Close"), (10, "Close")],
)
def test_a_more_exact_number_than_the_answer_is_right(said, lead):
    assert SHARE.write_verdict(said).startswith(lead)


def test_an_answer_shows_what_comes_out_and_is_kept():
    asked = predict("03-a")
    assert "4" not in words(asked._revealed) and asked._row.layout.display != "none"
    asked._field.value = " 3,5 "
    asked._commit.click()
    assert (
        words(asked._revealed) == "Close: 4 digits are left. Because x is small."
        and asked._row.layout.display == "none"
    )
    kept = progress.read_predictions()["03-a"]
    assert (kept.said, kept.surprised) == ("3.5 digits", False)


@pytest.mark.parametrize(
    ("prediction_id", "said", "told", "look"),
    [
        ("03-a", "4", "Right: 4 digits are left.", "good"),
        ("03-a", "5", "Close: 5 counts the sign. 4 digits are left.", "good"),
        ("03-a", "7", "Not 7: fp32 has 24 binary digits. 4 digits are left.", "open"),
        ("03-a", "8", "Not 8: 4 digits are left.", "open"),
        ("03-b", "two", "Right: two is it.", "good"),
        ("03-b", "one", "Not one: one is odd. two is it.", "open"),
        ("03-c", "100.4", "Right: it goes 100 steps.", "good"),
        ("03-c", "120", "Close: it goes 100 steps.", "good"),
        ("03-c", "1", "Not 1: it goes 100 steps.", "open"),
    ],
)
def test_each_way_to_answer_has_a_sentence(prediction_id, said, told, look):
    asked = predict(prediction_id)
    asked._field.value = said
    asked._commit.click()
    assert (
        words(asked._revealed).startswith(f"{told} ")
        and f'class="course-box {look}"' in asked._revealed.value
    )
    assert progress.read_predictions()[prediction_id].surprised == (look == "open")


def test_an_answered_question_is_quiet_when_the_page_is_opened_again():
    progress.note_prediction("03-c", "1", surprised=True)
    asked = predict("03-c")
    assert words(asked._revealed) == "You predicted 1. It goes 100 steps. It rounds."
    assert (
        'class="course-box plain"' in asked._revealed.value and asked._row.layout.display == "none"
    )


@pytest.mark.parametrize(
    ("said", "number"),
    [
        ("0,0625", 0.0625),
        ("1/16", 0.0625),
        (" 1 / 16 ", 0.0625),
        ("-1/5", -0.2),
        ("6.25e-2", 0.0625),
        ("1,5/3", 0.5),
    ],
)
def test_a_number_is_read_as_it_is_written(said, number):
    assert read_number(said) == number


@pytest.mark.parametrize(
    ("said", "asks"),
    [
        ("", "Choose or write an answer first"),
        ("many", "Write a number"),
        ("1/0", "Write a number"),
    ],
)
def test_what_is_no_answer_is_asked_for_again(said, asks):
    asked = predict("03-a")
    asked._field.value = said
    asked._commit.click()
    assert (
        asks in words(asked._revealed)
        and asked._row.layout.display != "none"
        and not progress.read_predictions()
    )


@pytest.fixture
def closed(monkeypatch):
    """Run cells that answer some predictions, one call a cell; what the mark of each that was
    closed says at first."""
    marks = []

    class Mark:
        def display(self, shown):
            self.words = shown.data
            marks.append(self)

        def update(self, shown):
            self.words = shown.data

    monkeypatch.setattr(answers, "DisplayHandle", Mark)
    monkeypatch.setattr(answers, "_closed", [])
    monkeypatch.setattr(answers, "_shown", set())

    def run(*cells):
        marks.clear()
        for predictions in cells:
            answers._close(predictions)
        return run.are_closed()

    run.are_closed = lambda: ["Predict first, or open it here" in mark.words for mark in marks]
    return run


def test_an_answer_that_runs_before_its_prediction_opens_with_it(closed):
    assert closed(["03-a"], ["03-a"], ["03-b"], ["03-b", "03-c"], []) == [True] * 4, (
        "a cell that answers nothing is open"
    )
    asked = predict("03-a")
    assert closed.are_closed() == [True] * 4
    asked._field.value = "4"
    asked._commit.click()
    assert closed.are_closed() == [False, False, True, True]
    predict("03-b")._skip.click()
    assert closed.are_closed() == [False, False, False, True], (
        "one of two predictions is still to be made"
    )
    predict("03-c")._skip.click()
    assert closed.are_closed() == [False] * 4
    assert closed(["03-a"], ["03-b", "03-c"]) == [], "run again, the cells show their answers"


def test_who_does_not_want_to_predict_sees_it_and_nothing_is_kept():
    asked = predict("03-a")
    asked._skip.click()
    assert (
        words(asked._revealed) == "The answer: 4 digits are left. Because x is small."
        and not progress.read_predictions()
    )


def click(asked, *cells) -> None:
    for cell in cells:
        button = asked._field._buttons[cell]
        button.value = not button.value


def signs(asked) -> list[str]:
    return re.findall(r"<td[^>]*>(?:<b>(.)</b> )?", asked._revealed.value)


def test_cells_are_clicked_and_judged_exactly():
    asked = predict("03-e")
    asked._commit.click()
    assert (
        "Choose or write an answer first" in words(asked._revealed)
        and not progress.read_predictions()
    )
    click(asked, (1, 0), (0, 1), (0, 2))
    click(asked, (0, 1))  # taken back
    asked._commit.click()
    assert words(asked._revealed).startswith("Right: 13 and 21 are lost.")
    assert signs(asked) == ["", "", "✓", "✓", "", ""] and "They are odd." in words(asked._revealed)
    assert (
        progress.read_predictions()["03-e"].said,
        progress.read_predictions()["03-e"].surprised,
    ) == ("13; 21", False)


@pytest.mark.parametrize(
    ("clicked", "said", "shown"),
    [
        ([(0, 2)], "13", ["", "", "✓", "○", "", ""]),
        ([(0, 0), (0, 2), (1, 0)], "11; 13; 21", ["✗", "", "✓", "✓", "", ""]),
        ([(1, 2)], "0 (2, 3)", ["", "", "○", "○", "", "✗"]),
    ],
)
def test_one_cell_too_many_or_too_few_is_a_surprise_and_each_cell_says_which(clicked, said, shown):
    asked = predict("03-e")
    click(asked, *clicked)
    asked._commit.click()
    assert progress.read_predictions()["03-e"].said == said and words(asked._revealed).startswith(
        "Not these cells: 13 and 21 are lost."
    )
    assert signs(asked) == shown == signs(predict("03-e"))  # and when it is shown again


def test_who_does_not_click_sees_the_cells_and_an_old_answer_may_be_unreadable():
    asked = predict("03-e")
    asked._skip.click()
    assert signs(asked) == ["", "", "✓", "✓", "", ""] and not progress.read_predictions()
    progress.note_prediction("03-e", "row 7: 13; row 0", surprised=True)
    assert signs(predict("03-e")) == ["", "", "✓", "✓", "", ""]


def test_a_label_may_hold_a_comma():
    grid = replace(GRID, cells=(("0, 0", "0, 1", "0, 2"), ("1, 0", "1, 1", "1, 2")))
    assert prediction._read_cells(grid, grid.write([[1, 0], [0, 1]])) == [(0, 1), (1, 0)]


def test_without_a_kernel_the_table_stands_there_and_no_sign():
    page = predict("03-e")._repr_mimebundle_()["text/html"]
    assert (
        page.count("<td>") == 6
        and "They are odd" not in page
        and not set("✓✗○") & set(page.split("</style>")[1])
    )


def test_the_first_answer_stays_and_is_shown_again():
    for said in ("9", "4"):
        asked = prediction.Predict(DIGITS)
        asked._field.value = said
        asked._commit.click()
    assert progress.read_predictions()["03-a"].said == "9 digits"
    assert words(predict("03-a")._revealed).startswith("You predicted 9 digits. 4 digits are left.")


def test_a_review_follows_what_is_predicted_after_it_was_shown():
    review = review_predictions("03")
    assert "0 of 4 predictions made. What you predict above is summed up here." in words(
        review._words
    )
    for key, said in (("03-a", "4"), ("03-b", "one")):
        asked = predict(key)
        asked._field.value = said
        asked._commit.click()
    told = words(review._words)
    assert (
        "2 of 4 predictions made, 1 as you thought. What surprised you: Which? You said one; it is"
        " two." in told
    )


def test_course_status_tells_them():
    assert status._tell_predictions() == []
    progress.note_prediction("03-a", "9", surprised=True)
    assert status._tell_predictions() == [
        "Predictions made in the lessons: 1, surprises among them: 1."
    ]


def test_a_full_disk_costs_the_record_and_not_the_answer(monkeypatch):
    def refuse(*_, **__):
        raise OSError("No space left on device")

    monkeypatch.setattr(progress, "note_prediction", refuse)
    asked = predict("03-a")
    asked._field.value = "4"
    asked._commit.click()
    assert "could not be kept" in words(asked._revealed) and words(asked._revealed).startswith(
        "Right: 4 digits are left."
    )


def test_without_a_kernel_the_question_stands_there_and_the_answer_does_not():
    bundle = predict("03-b")._repr_mimebundle_()
    assert (
        VIEW in bundle
        and "Which?" in bundle["text/html"]
        and "One is odd" not in bundle["text/html"]
    )


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"kind": "guess"}, "kind is one of"),
        ({"kind": "number", "answer": "4"}, "answer must be a number"),
        ({"kind": "choice", "choices": ("a", "b")}, "answer must be one of"),
        ({"why": " "}, "question, result and why must say something"),
        ({"kind": "choice", "answer": "a", "choices": ("a", "b")},
            "others must have a sentence for each other choice"),
        ({"others": {"5": "No."}}, "others begin with Not or Close:"),
        ({"factor": 0.5}, "factor is above 1"), ({"kind": "cells"}, "cells must be rows of labels"),
        ({"kind": "cells", "cells": (("a", "b"), ("c",)), "answer": [[0, 0]]},
            "cells must be rows of labels, all as long"),
        ({"kind": "cells", "cells": (("a", "b"),), "answer": []},
            "answer must name row and column"),
        ({"kind": "cells", "cells": (("a", "b"),), "answer": [[1, 0]]},
            "answer must name row and column"),
        ({"kind": "cells", "cells": (("a", "b"),), "answer": [[0, 1], [0, 1]]},
            "answer must name row and column"),
        ({"kind": "cells", "cells": (("a", "b"),), "answer": "0, 1"},
            "answer must name row and column"),
        ({"kind": "cells", "cells": (("a", "b"),), "answer": [[0, 1]],
            "others": {"a": "Not a: no."}}, "cells are for the kind cells, which has no others"),
        ({"cells": (("a", "b"),)}, "cells are for the kind cells"),
    ],
)  # fmt: skip
def test_a_question_that_is_not_whole_is_named(changes, says):
    with pytest.raises(CourseError, match=f"prediction 03-a: {says}"):
        Question(
            **{
                "id": "03-a",
                "question": "q",
                "kind": "number",
                "answer": 4,
                "result": "r",
                "why": "w",
            }
            | changes
        )


def test_an_unknown_question_is_named(monkeypatch):
    with pytest.raises(
        CourseError, match=r"there is no prediction '03-z'\. Lesson 03 has 03-a, 03-b, 03-c, 03-e"
    ):
        find("03-z")


@pytest.mark.parametrize("lesson", LESSONS)
def test_no_question_says_its_answer(lesson):
    for question in read_lesson(lesson).values():
        if question.kind == "number":
            numbers = re.findall(r"(?<![\w.])-?\d+(?:\.\d+)?", question.question)
            assert len(numbers) != 1 or float(numbers[0]) != question.answer, question.id


@pytest.mark.parametrize(("unit", "one", "two"),
    [("times", "1 time", "2 times"), ("passes", "1 pass", "2 passes"), ("us", "1 us", "2 us"),
        ("of 4", "1 of 4", "2 of 4"),
        ("times as long", "1 time as long", "2 times as long")])  # fmt: skip
def test_one_of_a_unit_is_said_in_the_singular(unit, one, two):
    question = Question("98-some", "How many?", "number", 1.0, "one.", "So.", unit=unit)
    assert (question.write(1.0), question.write(2.0)) == (one, two)


def test_a_number_that_is_no_text_is_refused_as_a_key():
    """In TOML 2.4 = "..." is a table in a table."""
    with pytest.raises(CourseError, match="needs quotes"):
        Question(
            "98-some",
            "How many?",
            "number",
            3.4,
            "3.4.",
            "So.",
            others={"2": {"4": "Not 2.4: that is one of them."}},
        )  # type: ignore[dict-item]
