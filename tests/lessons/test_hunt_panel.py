"""The hunt in a notebook: rules, progress, and no exception unseen."""

from __future__ import annotations

import html
import re

import pytest

from course_lib.grading.judging.causes import CAUSES
from course_lib.grading.verdict import PASS, Verdict
from course_lib.hunt import draw, game
from course_lib.learner import progress
from course_lib.lessons import hunt_panel
from course_lib.lessons.hunt_panel import (
    ASK,
    BUY,
    CLAIM,
    COMPARE,
    GIVE_UP,
    NAME,
    NEXT,
    PLAY,
    hunt,
    offer_hunt,
)
from course_lib.lessons.live import VIEW
from course_lib.lessons.prediction import review_predictions, write_review

FIRST = draw.draw(draw.list_open(set()), 0)
assert FIRST is not None

pytestmark = pytest.mark.usefixtures("state")


def words(widget) -> str:
    return html.unescape(re.sub(r"<style>.*?</style>|<[^>]+>", "", widget.value))


def press(panel, name: str) -> None:
    assert not panel._buttons[name].layout.display, f"{name} is not there"
    panel._buttons[name].click()


def is_there(panel, name: str) -> bool:
    return not panel._buttons[name].layout.display


def fill(panel, probe) -> None:
    for name, field in panel._fields.items():
        field.value = getattr(probe, name)


def test_a_hunt_is_won_and_the_next_one_begins():
    panel = hunt()
    assert FIRST.id in words(panel._head) and not panel._code.value and not is_there(panel, NEXT)
    fill(panel, FIRST.probe)
    press(panel, CLAIM)
    assert (
        "shows the mistake" in words(panel._answer)
        and "copy_kernel" in words(panel._code)
        and not is_there(panel, BUY)
    )
    panel._line.value = FIRST.lines[0]
    press(panel, NAME)
    assert "The hunt is won" in words(panel._end) and CAUSES[FIRST.cause].headline[1:] in words(
        panel._end
    )
    assert not is_there(panel, ASK)
    press(panel, NEXT)
    assert FIRST.id not in words(panel._head) and is_there(panel, ASK) and not panel._end.value


def test_a_question_shows_what_came_out_and_not_what_was_expected():
    panel = hunt()
    press(panel, ASK)
    assert "y" in words(panel._answer) and "expected" not in words(panel._answer)
    press(panel, COMPARE)
    assert "expected" in words(panel._answer)
    assert "1 asked, 2 paid" in words(panel._log)


def test_before_the_end_nothing_names_the_cause():
    panel = hunt(seen=True)
    fill(panel, FIRST.probe)
    press(panel, ASK)
    press(panel, COMPARE)
    shown = " ".join(words(child) for child in panel.children if hasattr(child, "value")).lower()
    headline, question = CAUSES[FIRST.cause].word_for("kernel")
    assert not any(
        secret.lower() in shown for secret in (headline, question, FIRST.mutant, FIRST.cause)
    )


def test_what_cannot_be_asked_is_said_and_costs_nothing():
    panel = hunt()
    panel._fields["N"].value = 0
    press(panel, ASK)
    assert "between 1 and" in words(panel._answer) and not panel.session.game.questions
    assert all(not button.disabled for button in panel._buttons.values())


def test_a_fault_of_the_course_is_said(monkeypatch):
    panel = hunt()
    monkeypatch.setattr(panel.session, "ask", lambda probe: 1 / 0)
    press(panel, ASK)
    assert "The course itself failed: ZeroDivisionError" in words(panel._answer)


def test_another_panel_goes_on_with_it():
    press(hunt(), ASK)
    panel = hunt()
    assert len(panel.session.game.questions) == 1 and "1 asked, 1 paid" in words(panel._log)
    press(panel, BUY)
    (record,) = progress.read_hunts().values()
    assert game.replay(record.level, record.moves).score == 5


def test_when_none_waits_it_says_so():
    panel = hunt()
    for _ in draw.list_open(set()):
        press(panel, GIVE_UP)
        press(panel, NEXT)
    there = [name for name in panel._buttons if name != NAME and is_there(panel, name)]
    assert (
        "No hunt waits" in words(panel._head)
        and not there
        and panel._naming.layout.display == "none"
    )


def test_todays_hunt_is_todays():
    panel = hunt(daily=True)
    assert draw.draw_daily(draw.name_day()).id in words(panel._head) or "not passed" in words(
        panel._head
    )


def test_the_end_of_a_lesson_says_how_many_wait():
    assert "Three hunts wait for you." in html.unescape(write_review("01"))
    assert "wait" not in write_review("00")


def test_the_hunt_begins_at_the_end_of_a_lesson_by_one_button():
    review = review_predictions("01")
    review._hunt.click()
    assert FIRST.id in words(review.children[-1]._head)
    assert review_predictions("00")._hunt.layout.display == "none"


def test_without_a_kernel_the_page_says_what_it_is():
    bundle = hunt_panel.hunt()._repr_mimebundle_()
    assert (
        "Run this cell" in bundle["text/html"]
        and "Run this cell" in bundle["text/plain"]
        and VIEW in bundle
    )


def test_a_line_is_chosen_before_it_is_named_and_a_choice_stays():
    panel = hunt(seen=True)
    press(panel, NAME)
    assert "choose a line first" in words(panel._answer)
    panel._line.value = 7
    press(panel, ASK)
    assert panel._line.value == 7


def test_blind_the_page_holds_no_line_of_the_code():
    assert not hunt()._line.options


def test_todays_hunt_asks_first_where_it_would_give_a_solution_away(monkeypatch):
    monkeypatch.setattr(
        hunt_panel.session,
        "warn_of_daily",
        lambda: "today's hunt is on 02b, which you have not passed.",
    )
    panel = hunt(daily=True)
    assert (
        words(panel._head).startswith("Today's hunt")
        and panel.session is None
        and not progress.read_hunts()
    )
    press(panel, PLAY)
    assert "the hunt of" in words(panel._head) and list(progress.read_hunts()) == [draw.name_day()]


def test_the_next_hunt_is_on_the_same_exercise_and_a_begun_one_keeps_its_level():
    progress.note_verdict(Verdict("01b", PASS, "none", "right"))
    panel = hunt("01b")
    for _ in range(3):
        assert panel.session.hunt.exercise_id == "01b"
        press(panel, GIVE_UP)
        press(panel, NEXT)
    again = hunt("01b", seen=True)
    assert again.session.hunt == panel.session.hunt and "stays as it was begun: blind" in words(
        again._answer
    )


def test_a_page_offers_a_hunt_that_opens_with_the_pass_and_begins_when_asked():
    closed = offer_hunt("1b")
    assert (
        "opens when you have passed 01b" in words(closed._head)
        and not is_there(closed, PLAY)
        and not is_there(closed, ASK)
    )
    progress.note_verdict(Verdict("01b", PASS, "none", "right"))
    panel = offer_hunt("01b")
    assert (
        "if you like" in words(panel._head)
        and "opens when" not in words(panel._head)
        and not progress.read_hunts()
    )
    press(panel, PLAY)
    assert (
        panel.session.hunt.exercise_id == "01b"
        and is_there(panel, ASK)
        and not is_there(panel, PLAY)
    )


def test_an_offer_after_all_hunts_have_ended_says_so():
    progress.note_verdict(Verdict("01b", PASS, "none", "right"))
    panel = offer_hunt("01b")
    press(panel, PLAY)
    while panel.session is not None and panel.session.hunt.exercise_id == "01b":
        press(panel, GIVE_UP)
        panel._begin_next = panel._begin
        press(panel, NEXT)
    assert "No hunt waits" in words(panel._head)
