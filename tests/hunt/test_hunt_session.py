"""A session of a hunt: what it says is never against what was played, and a begun hunt is there
when one comes back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from course_lib import catalog
from course_lib.base.errors import CourseError
from course_lib.grading.judging.causes import CAUSES
from course_lib.grading.verdict import PASS, Verdict
from course_lib.hunt import draw, game, session
from course_lib.hunt.collection import Hunt, read_hunts
from course_lib.hunt.probe import HAND_COLUMNS
from course_lib.hunt.session import Session
from course_lib.learner import progress

HUNT = draw.draw(draw.list_open(set()), 0)
assert HUNT is not None

pytestmark = pytest.mark.usefixtures("state")


def open_twice(level: str = game.SEEN) -> tuple[Session, Session]:
    """The same play in two windows."""
    return Session(HUNT.id, HUNT, level), Session(HUNT.id, HUNT, level)


def find_right_line() -> int:
    return next(number for number in range(1, 20) if number not in HUNT.lines)


def test_a_right_line_is_told_as_right_and_before_the_input_the_task_does_not_call_it_wrong():
    play = Session(HUNT.id, HUNT, game.SEEN)
    assert play.name_line(HUNT.lines[0]).good
    assert f"found the mistake, in line {HUNT.lines[0]}" in play.task and "wrong" not in play.task


def test_a_right_line_is_not_called_as_it_should_be_after_another_window_gave_up():
    first, second = open_twice()
    first.give_up()
    with pytest.raises(CourseError, match="has ended"):
        second.name_line(HUNT.lines[0])


def test_a_wrong_line_is_not_called_right_after_another_window_named_the_right_one():
    first, second = open_twice()
    first.name_line(HUNT.lines[0])
    told = second.name_line(find_right_line())
    assert f"line {HUNT.lines[0]}" in told.words and not second.game.wrong_lines and not told.good


def test_a_question_that_could_not_be_kept_is_said(monkeypatch):
    monkeypatch.setattr(progress, "_MOST_MOVES", 0)
    play = Session(HUNT.id, HUNT, game.BLIND)
    with pytest.raises(CourseError, match="not kept"):
        play.ask(play.last)


@pytest.mark.parametrize("wrong_lines", [0, 9])
def test_questions_are_compared_with_the_graders_cases_and_the_price_is_not(wrong_lines):
    """A wrong line costs, and is no question: the grader, who only asks, is compared in what both
    do."""
    hunt = next(h for h in read_hunts().values() if h.grader_needs > 5)
    play = Session(hunt.id, hunt, game.SEEN)
    others = [n for n in range(1, len(hunt.text.splitlines()) + 1) if n not in hunt.lines]
    for line in others[:wrong_lines]:
        play.name_line(line)
    play.claim(hunt.probe)
    play.ask(play.options.first())  # asked to find the line, when the input was found
    play.name_line(hunt.lines[0])
    assert play.game.won and play.game.searched == 1
    assert (
        "You needed fewer questions." in play.write_score()
        and "1 of them until" in play.write_score()
    )


def test_who_asks_more_than_the_grader_is_told_so():
    hunt = next(h for h in read_hunts().values() if h.killers == h.cases)
    play = Session(hunt.id, hunt, game.SEEN)
    for n in (17, 18, 19):
        play.ask(replace(play.last, N=n))
    play.claim(hunt.probe)
    play.name_line(hunt.lines[0])
    assert "You needed more questions." in play.write_score()


def test_a_begun_hunt_of_an_exercise_is_there_when_one_comes_back():
    progress.note_verdict(Verdict("01b", PASS, "none", "right"))
    first = session.resume_or_draw(game.SEEN, "00a")
    first.name_line(find_right_line())
    other = session.resume_or_draw(None, "01b")
    assert other.hunt.exercise_id == "01b"
    while other is not None:  # more hunts are ended meanwhile, which moves the draw on
        other.give_up()
        other = session.resume_or_draw(None, "01b")
    again = session.resume_or_draw(None, "00a")
    assert again.hunt == first.hunt and again.game == first.game
    assert session.resume_or_draw(None).hunt == first.hunt


def test_a_hunt_on_an_exercise_is_not_todays():
    progress.note_verdict(Verdict("00a", PASS, "none", "right"))
    for daily in (h for h in read_hunts().values() if h.daily and h.exercise_id == "00a"):
        progress.note_hunt(draw.name_day(), daily.id, game.BLIND)
    assert session.resume_or_draw(None, "00a").play != draw.name_day()


def test_a_hunt_keeps_the_level_it_was_begun_at_and_says_so():
    session.resume_or_draw(None)
    again = session.resume_or_draw(game.SEEN)
    assert "stays as it was begun: blind" in session.explain_level(again, game.SEEN)
    assert session.explain_level(again, None) == "" == session.explain_level(again, game.BLIND)


def test_an_input_that_does_not_show_the_mistake_is_not_said_to_come_out_as_expected():
    """Its numbers may differ in the digits that the check allows, and the learner sees them."""
    hunt = next(h for h in read_hunts().values() if h.exercise_id == "01b" and h.level == 3)
    play = Session(hunt.id, hunt, game.BLIND)
    told = play.compare(replace(play.last, N=8, weights="drawn"))
    assert "within what the check allows" in told.words


def find_hunt(cause: str) -> Hunt:
    return next(hunt for hunt in read_hunts().values() if hunt.cause == cause)


def test_a_run_that_shows_the_mistake_by_itself_need_not_be_paid_twice():
    """The run was stopped at a store outside: the right numbers beside it would say no more."""
    hunt = find_hunt("store_outside")
    play = Session(hunt.id, hunt, game.BLIND)
    told = play.compare(hunt.probe)
    assert told.good and told.answer.notes and play.game.score == game.QUESTION


@pytest.mark.parametrize(
    ("cause", "told"),
    [("cancellation", "llm.c"), ("stride_ignored", "one stride for x and y"), ("w_misapplied", "")],
)
def test_the_story_at_the_end_is_of_the_same_mistake_or_there_is_none(cause, told):
    hunt = find_hunt(cause)
    play = Session(hunt.id, hunt, game.SEEN)
    play.give_up()
    stories = [text for text in play.debrief() if text.startswith("Such a mistake elsewhere")]
    assert [told in story for story in stories] == [True] * bool(told)


def test_every_story_belongs_to_a_cause_and_an_exercise_that_exist():
    causes = {cause.split(" ")[-1] for cause in session._STORIES}
    assert causes <= set(CAUSES) and all(
        catalog.get(teller).debrief for teller in session._STORIES.values()
    )


def test_a_small_input_has_whole_numbers_and_one_with_a_mean_has_drawn_ones():
    for hunt in (
        next(h for h in read_hunts().values() if h.exercise_id == name)
        for name in ("00a", "01b", "05a", "09a", "11a", "13b")
    ):
        play = Session(hunt.id, hunt, game.BLIND)
        options = play.options
        for probe, whole in [
            (replace(options.first(), N=5, BLOCK=8), True),
            (replace(options.first(), N=HAND_COLUMNS + 1, BLOCK=32), False),
        ]:
            case = options.make_case(probe)
            assert case.by_hand is whole, hunt.exercise_id
        if "mean" in options.names:
            assert not options.make_case(replace(options.first(), mean=100.0)).by_hand
    for hunt in (find_hunt("w_misapplied"), find_hunt("cancellation")):
        play = Session(hunt.id, hunt, game.BLIND)
        answer = play.ask(play.options.first()).answer
        given = [
            cell.text
            for table in answer.tables
            if table.name == "x"
            for name, cells in table.rows
            for cell in cells[:4]
        ]
        assert given and all(float(text).is_integer() for text in given), given
