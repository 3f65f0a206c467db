"""Which hunts are open, which comes next, which is today's: the same for the same learner and the
same day."""

from __future__ import annotations

import datetime

from hypothesis import given
from hypothesis import strategies as st

from course_lib import catalog
from course_lib.hunt import draw, game
from course_lib.hunt.collection import read_hunts
from course_lib.hunt.probe import Probe
from course_lib.learner.progress import HuntRecord

HUNTS = read_hunts()
EXERCISES = sorted({hunt.exercise_id for hunt in HUNTS.values()})
GIVE_UP = {"kind": "give up"}


def plays(*ended: str) -> dict[str, HuntRecord]:
    return {name: HuntRecord(name, game.BLIND, "2026-11-23T10:00:00", [GIVE_UP]) for name in ended}


def test_somebody_who_has_passed_nothing_has_two_or_three_hunts_on_the_first_kernel():
    open_at_first = draw.list_open(set())
    assert len(open_at_first) in (2, 3) and {hunt.exercise_id for hunt in open_at_first} == {"00a"}


@given(st.sets(st.sampled_from(sorted(catalog.exercises()))))
def test_a_hunt_opens_with_its_exercise_and_none_other(passed):
    own = [hunt for hunt in HUNTS.values() if not hunt.daily]
    assert {h.id for h in draw.list_open(passed)} == {
        h.id for h in own if h.starter or h.exercise_id in passed
    }


@given(st.sets(st.sampled_from(EXERCISES)), st.integers(0, 60))
def test_one_after_the_other_is_drawn_until_none_waits(passed, most):
    ended: list[str] = []
    while (
        hunt := draw.draw(draw.list_waiting(plays(*ended), passed), len(ended))
    ) is not None and len(ended) < most:
        assert hunt.id not in ended
        ended.append(hunt.id)
    assert len(ended) == min(most, len(draw.list_open(passed)))


@given(st.dates(datetime.date(2026, 1, 1), datetime.date(2060, 1, 1)))
def test_a_day_has_one_hunt_and_it_is_of_the_first_lessons(day):
    hunt = draw.draw_daily(draw.name_day(day))
    assert (
        hunt == draw.draw_daily(day.isoformat()) and hunt.daily and hunt.exercise_id in draw.DAILY
    )


def test_the_hunts_of_these_days_are_the_same_in_every_process_and_on_every_machine():
    """By their place in the pool, so that a rebuilt collection does not change what this test
    says."""
    pool = ["a", "b", "c", "d"]
    days = [draw.name_day(datetime.date(2026, 11, n)) for n in range(23, 27)]
    assert [min(pool, key=lambda name: draw._mix(f"{day} {name}")) for day in days] == [
        "a",
        "b",
        "b",
        "a",
    ]


def test_a_year_of_days_brings_all_of_the_pool():
    days = [datetime.date(2026, 1, 1) + datetime.timedelta(n) for n in range(365)]
    pool = {h.id for h in HUNTS.values() if h.daily}
    assert {draw.draw_daily(draw.name_day(day)).id for day in days} == pool and len(pool) >= 20


def test_the_hunt_that_was_begun_last_goes_on_and_a_daily_one_only_on_its_day():
    one, two = [hunt.id for hunt in draw.list_open(set())][:2]
    begun = {
        one: HuntRecord(one, game.BLIND, "2026-11-23T10:00:00"),
        two: HuntRecord(two, game.BLIND, "2026-11-23T11:00:00"),
        "2026-01-01": HuntRecord(one, game.BLIND, "2026-11-23T12:00:00"),
        "gone": HuntRecord("gone", game.BLIND, "2026-11-23T13:00:00"),
    }
    assert draw.find_unfinished(begun, set()) == two
    begun[draw.name_day()] = HuntRecord(one, game.BLIND, "2026-11-23T14:00:00")
    assert draw.find_unfinished(begun, set()) == draw.name_day()


def test_a_hunt_that_was_played_as_the_daily_one_does_not_wait_any_more():
    one = draw.list_open(set())[0].id
    daily = {"2026-01-01": HuntRecord(one, game.BLIND, "2026-01-01T10:00:00", [GIVE_UP])}
    assert one not in [hunt.id for hunt in draw.list_waiting(daily, set())]


def test_how_many_wait_is_said_in_words():
    assert (
        draw.say_waiting(0) == "No hunts wait for you."
        and draw.say_waiting(1) == "One hunt waits for you."
    )
    assert (
        draw.say_waiting(3) == "Three hunts wait for you."
        and draw.say_waiting(40) == "40 hunts wait for you."
    )


def test_the_smallest_input_of_a_hunt_is_one():
    assert all(isinstance(hunt.probe, Probe) for hunt in HUNTS.values())
