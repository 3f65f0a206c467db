"""Questions that a later lesson asks again: which ones, in which words, and what is kept."""

from __future__ import annotations

import html
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_lib.authoring.notebooks import list_sources, read_source
from course_lib.base.errors import CourseError
from course_lib.learner import progress
from course_lib.learner.progress import Prediction
from course_lib.lessons.live import VIEW
from course_lib.lessons.prediction import read_lesson
from course_lib.lessons.recalling import choose_questions, recall

LESSONS = [f"{number:02}" for number in range(1, 19)]
ASKED_AGAIN = {
    question.id: question
    for lesson in ["00", *LESSONS]
    for question in read_lesson(lesson).values()
    if question.recall
}
RIGHT, WRONG = Prediction("4", surprised=False), Prediction("5", surprised=True)


def choose(lesson, made=(), recalled=()):
    return [question.id for question in choose_questions(lesson, dict(made), dict(recalled))]


@pytest.mark.parametrize("lesson", LESSONS)
def test_each_lesson_begins_with_two_questions_of_earlier_lessons(lesson):
    first, second = choose(lesson)
    assert first[:2] == f"{int(lesson) - 1:02}" and second[:2] < lesson and first != second
    (source,) = [source for source in list_sources() if source.stem[:2] == lesson]
    code = [cell.source for cell in read_source(source).cells if cell.cell_type == "code"]
    assert f'recall("{lesson}")' in code[1]


def test_no_lesson_asks_what_the_one_before_it_asked_if_nothing_was_answered():
    asked = [set(choose(lesson)) for lesson in LESSONS[1:]]
    assert not [
        lesson
        for lesson, one, next_one in zip(LESSONS[1:], asked, asked[1:], strict=False)
        if one & next_one
    ]


def test_surprises_come_first_until_they_are_answered_well():
    made = {"00-last": WRONG, "03-ones": WRONG, "04-halves": RIGHT}
    assert set(choose("09", made)) == {"00-last", "03-ones"}
    assert set(choose("09", made, {"05 03-ones": WRONG})) == {"00-last", "03-ones"}, (
        "wrong again, so once more"
    )
    assert "03-ones" not in choose("09", made, {"05 03-ones": WRONG, "06 03-ones": RIGHT})


def test_a_lesson_that_is_opened_again_asks_the_same_two():
    first = choose("09")
    recalled = {f"09 {name}": RIGHT for name in first}
    assert set(choose("09", {"00-last": WRONG, "01-largest": WRONG}, recalled)) == set(first)


def test_a_question_that_was_asked_again_waits_for_the_others():
    seen: set[str] = set()
    recalled = {}
    for lesson in LESSONS[4:]:
        asked = choose(lesson, recalled=recalled)
        assert not seen & set(asked)
        seen |= set(asked)
        recalled |= {f"{lesson} {name}": RIGHT for name in asked}


_RECORDS = st.dictionaries(
    st.sampled_from([*ASKED_AGAIN, "03-gone"]), st.sampled_from([RIGHT, WRONG]), max_size=12
)


@given(st.sampled_from(LESSONS), _RECORDS, _RECORDS, st.sampled_from(LESSONS))
def test_any_progress_gives_two_different_earlier_questions(lesson, made, again, where):
    first, second = choose(
        lesson, made, {f"{where} {name}": answer for name, answer in again.items()}
    )
    assert first != second and first[:2] < lesson and second[:2] < lesson


def test_lesson_00_has_nothing_to_ask_again():
    with pytest.raises(
        CourseError, match="no lesson before 00 has two predictions with the field `recall`"
    ):
        recall("00")


def test_its_words_need_no_page_and_do_not_tell_the_answer():
    for question in ASKED_AGAIN.values():
        numbers = re.findall(r"(?<![\w.])-?\d+(?:\.\d+)?", question.recall)
        assert question.kind != "cells" and question.recall.endswith(("?", "."))
        assert not re.search(
            r"\b(above|below|this page|the picture|the figure|at the top|here)\b",
            question.recall,
            re.IGNORECASE,
        ), question.id
        assert (
            question.kind != "number" or len(numbers) != 1 or float(numbers[0]) != question.answer
        ), question.id


def test_an_answer_is_kept_apart_from_the_prediction(state):
    progress.note_prediction("01-largest", "1", surprised=True)
    asked = next(one for one in recall("02").asked if one.question.id == "01-largest")
    assert (
        "where you said 1" in asked.children[0].value
        and "Do you remember?" in asked.children[0].value
    )
    asked._field.value = "3,0"
    asked._commit.click()
    assert "Right: " in html.unescape(asked._revealed.value)
    kept = progress.read_recalled()["02 01-largest"]
    assert (kept.said, kept.surprised, progress.read_predictions()["01-largest"].said) == (
        "3 of 9",
        False,
        "1",
    )
    again = next(one for one in recall("02").asked if one.question.id == "01-largest")
    assert "You answered <b>3 of 9</b>" in again._revealed.value


def test_who_does_not_answer_sees_it_and_nothing_is_kept(state):
    asked = recall("02").asked[0]
    asked._skip.click()
    assert "The answer: " in asked._revealed.value and not progress.read_recalled()


def test_without_a_kernel_both_questions_stand_there_and_no_answer(state):
    bundle = recall("04")._repr_mimebundle_()
    assert VIEW in bundle
    for question in choose_questions("04", {}, {}):
        assert (
            html.escape(question.recall.split("`")[0], quote=False) in bundle["text/html"]
            and question.result not in bundle["text/html"]
        )
    assert bundle["text/plain"].count("Do you remember?") == 2


def test_progress_of_an_older_course_has_no_recalled_answers(state, tmp_path):
    progress.note_prediction("01-largest", "1", surprised=True)
    file = progress.file()
    text = file.read_text().replace('"recalled"', '"of_another_course"')
    file.write_text(text)
    assert progress.read_recalled() == {} and progress.read_predictions()
