"""The rules of a hunt: what is paid, and that no list of moves, of whatever kind, breaks them."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_lib.base.errors import CourseError
from course_lib.hunt import game
from course_lib.hunt.probe import Probe, find_options

A, B = Probe(N=5), Probe(N=6)
ASK_A, ASK_B = ({"kind": "ask", "probe": probe.as_dict()} for probe in (A, B))


def claim(question: int, exposes: bool) -> dict:
    return {"kind": "claim", "question": question, "exposes": exposes}


def name(line: int, right: bool) -> dict:
    return {"kind": "line", "line": line, "right": right}


MOVES = st.one_of(
    st.builds(lambda n: {"kind": "ask", "probe": Probe(N=n).as_dict()}, st.integers(1, 4)),
    st.builds(
        lambda n, e: {"kind": "compare", "question": n, "exposes": e},
        st.integers(-1, 5),
        st.booleans(),
    ),
    st.builds(claim, st.integers(-1, 5), st.booleans()),
    st.builds(name, st.integers(1, 9), st.booleans()),
    st.sampled_from(
        [
            {"kind": "code"},
            {"kind": "give up"},
            {},
            {"kind": "dance"},
            {"kind": "ask"},
            {"kind": "claim", "question": "1"},
        ]
    ),
)


def test_a_hunt_is_won_by_an_input_and_a_line():
    played = game.replay(game.BLIND, [ASK_A, ASK_B, claim(1, True), name(4, True)])
    assert (
        played.won
        and played.ended
        and played.score == 2
        and played.exposing == game.GameQuestion(B, exposes=True)
    )


@pytest.mark.parametrize(
    ("moves", "score"),
    [
        ([ASK_A, claim(0, True), name(1, True)], 1),
        ([ASK_A, ASK_A, claim(0, True), name(1, True)], 1),  # the same input again is free
        ([ASK_A, {"kind": "compare", "question": 0, "exposes": True}, name(1, True)], 2),
        ([ASK_A, claim(0, False), ASK_B, claim(1, True), name(1, True)], 4),
        ([ASK_A, claim(0, True), name(2, False), name(2, False), name(1, True)], 3),
        ([{"kind": "code"}, ASK_A, claim(0, True), name(1, True)], 5),
    ],
)
def test_what_is_paid(moves, score):
    assert game.replay(game.BLIND, moves).score == score and game.replay(game.BLIND, moves).won


def test_the_code_costs_nothing_where_it_is_seen_from_the_beginning():
    assert (
        game.replay(game.SEEN, [{"kind": "code"}, ASK_A, claim(0, True), name(1, True)]).score == 1
    )


def test_a_line_cannot_be_named_while_the_code_is_hidden():
    assert game.replay(game.BLIND, [name(1, True)]).named is None
    assert game.replay(game.BLIND, [{"kind": "code"}, name(1, True)]).named == 1


@given(st.sampled_from(game.LEVELS), st.lists(MOVES, max_size=30))
def test_the_score_of_who_has_won_is_never_better_than_possible(level, moves):
    played = game.replay(level, moves)
    assert played.score >= len(played.questions) >= played.won
    if played.won:
        assert played.score >= 1 and played.exposing and played.named


@given(st.sampled_from(game.LEVELS), st.lists(MOVES, max_size=30), MOVES)
def test_no_move_makes_the_score_better_or_begins_again(level, moves, last):
    before, after = game.replay(level, moves), game.replay(level, [*moves, last])
    assert after.score >= before.score and len(after.questions) >= len(before.questions)
    assert after == before or not before.ended


@given(st.lists(MOVES, max_size=30), st.lists(MOVES, max_size=30))
def test_two_processes_may_play_one_hunt(mine, others):
    """Each move twice, as two panels send it that know nothing of one another, comes to the same as
    once."""
    moves = [*mine, *others]
    assert game.replay(game.BLIND, [move for move in moves for _ in range(2)]) == game.replay(
        game.BLIND, moves
    )


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"N": 0}, "between 1 and"),
        ({"BLOCK": 12}, "power of two"),
        ({"values": "strange"}, "can be normal"),
        ({"dtype": "fp8"}, "can be fp32"),
        ({"M": 1, "values": "nan"}, "at least 2"),
        ({"eps": 0.0}, "above 0"),
        ({"mean": math.inf}, "at most"),
        ({"M": 300, "N": 8000, "BLOCK": 1024}, "M times N"),
        ({"M": 16, "N": 2000, "BLOCK": 4}, "blocks of work"),
    ],
)
def test_an_input_that_cannot_be_is_refused_with_a_sentence(changed, words):
    options = find_options("07a")
    with pytest.raises(CourseError, match=words):
        options.check(replace(options.first(), **changed))


def test_what_is_chosen_is_what_is_asked_and_written():
    options = find_options("07a")
    probe = options.check(
        replace(options.first(), N=17, BLOCK=8, mean=-2.5, values="nan", weights="drawn")
    )
    assert {"N=17", "BLOCK=8", "mean=-2.5", "values=nan", "weights=drawn"} <= set(
        options.write(probe).split()
    )
    case = options.make_case(probe)
    assert (case.M, case.N, case.block, case.mean, case.fill, case.plain) == (
        2,
        17,
        8,
        -2.5,
        "nan row",
        False,
    )


def test_a_block_that_follows_n_holds_the_whole_row():
    options = find_options("01b")
    assert [options.make_case(Probe(N=n)).block for n in (1, 2, 5, 8, 129)] == [1, 2, 8, 8, 256]
    with pytest.raises(CourseError, match="whole row"):
        options.check(Probe(N=20, BLOCK=16))


@given(
    st.dictionaries(
        st.sampled_from(["M", "N", "mean", "dtype", "zeal"]),
        st.sampled_from([0, 3, 2.5, "fp16", None, [1]]),
    )
)
def test_what_a_file_holds_is_a_probe_or_refused(kept):
    try:
        probe = Probe.from_dict(kept)
    except ValueError:
        return
    assert Probe.from_dict(probe.as_dict()) == probe
