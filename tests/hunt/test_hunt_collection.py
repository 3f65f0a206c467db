"""Every hunt can be won, says nothing of its answer before the end, and is as fresh as what it was built of."""

from __future__ import annotations

import ast
from dataclasses import replace

import pytest

from course_lib import catalog
from course_lib.authoring import hunts as builder
from course_lib.authoring import mutants
from course_lib.catalog import texts
from course_lib.grading.judging.causes import CAUSES
from course_lib.grading.trials import run_cases
from course_lib.hunt import collection, game
from course_lib.hunt.asking import Answer, Cell, Table, arrange, ask
from course_lib.hunt.collection import read_hunts
from course_lib.hunt.probe import Probe, find_options
from course_lib.hunt.session import Session

HUNTS = list(read_hunts().values())
EVERY = pytest.mark.parametrize("hunt", HUNTS, ids=lambda hunt: hunt.id)
BY_EXERCISE = pytest.mark.parametrize("exercise", builder.list_exercises(), ids=lambda exercise: exercise.id)

pytestmark = pytest.mark.usefixtures("state")


@BY_EXERCISE
def test_the_hunts_are_as_fresh_as_what_they_were_built_of(exercise):
    assert collection.read_built()["digests"][exercise.id] == builder.digest(exercise), (
        f"the solution, the wrong solutions or the cases of {exercise.id} have changed: `python -m course_lib.authoring.hunts` builds the hunts anew"
    )


@EVERY
def test_a_hunt_is_what_its_wrong_solution_makes(hunt):
    (entry,) = [entry for entry in mutants.read_mutants(hunt.exercise) if entry["id"] == hunt.mutant]
    assert (hunt.text, hunt.lines) == builder.make_text(hunt.exercise, entry)
    assert hunt.id == builder.name_hunt(hunt.exercise, hunt.mutant)
    assert 1 <= hunt.killers <= hunt.cases and hunt.grader_needs >= 1


@EVERY
def test_what_is_shown_does_not_name_the_cause(hunt):
    """The code, its names, and all that a session says before the end."""
    play = Session(hunt.id, hunt, game.BLIND)
    headline, question = CAUSES[hunt.cause].word_for(hunt.exercise.kind, hunt.exercise.entry_points)
    shown = "\n".join([hunt.text, play.title, play.aim, play.task, hunt.id, play.options.write(play.last)]).lower()
    for secret in (hunt.cause, hunt.mutant, headline.lower(), question.lower()):
        assert secret not in shown or len(secret) < 5, secret
    assert "#" not in hunt.text and ast.get_docstring(ast.parse(hunt.text)) is None


@EVERY
def test_the_wrong_line_is_there_to_be_named(hunt):
    lines = hunt.text.splitlines()
    assert 1 <= len(hunt.lines) <= 3 and all(lines[number - 1].strip() for number in hunt.lines)
    right = builder.strip(texts.make_plain_solution(hunt.exercise)).splitlines()
    assert any(lines[number - 1] not in right for number in hunt.lines)


@EVERY
def test_its_input_can_be_chosen_and_what_is_written_of_it_tells_it_apart(hunt):
    options = find_options(hunt.exercise_id)
    written = options.write(options.check(hunt.probe)).split()
    first = options.write(options.first()).split()
    changed = {name for name in vars(hunt.probe) if getattr(hunt.probe, name) != getattr(options.first(), name)}
    assert changed <= set(options.names) and (set(written) != set(first)) == bool(changed)


@pytest.mark.parametrize("number", range(0, len(HUNTS), 6))
def test_a_hunt_can_be_won_by_its_input_and_its_line(number):
    """Every sixth, which is one of each exercise: to run them all is what building them did."""
    hunt = HUNTS[number]
    play = Session(hunt.id, hunt, game.BLIND)
    assert play.claim(hunt.probe).good
    assert play.name_line(hunt.lines[0]).good and play.game.won and play.game.score == 1
    assert CAUSES[hunt.cause].word_for(hunt.exercise.kind, hunt.exercise.entry_points)[0][1:] in play.debrief()[0]


def test_an_input_on_which_the_kernel_is_right_is_no_end():
    hunt = next(h for h in HUNTS if h.exercise_id == "01b" and h.level == 3)
    play = Session(hunt.id, hunt, game.BLIND)
    told = play.claim(replace(play.last, N=8, weights="drawn"))
    assert told.good is False and play.game.wrong_claims == 1 and play.game.exposing is None
    assert play.compare(play.last).good is None and play.game.score == 4


def test_the_numbers_of_an_input_are_the_same_each_time():
    hunt = HUNTS[0]
    assert ask(hunt, [hunt.probe]) == ask(hunt, [hunt.probe])


def test_nobody_reads_an_answer_by_accident():
    text = collection.FILE.read_text(encoding="utf-8")
    assert "tl.load" not in text and not any(hunt.mutant in text for hunt in HUNTS) and "game" in text


def test_every_exercise_that_can_be_hunted_has_some():
    own = [hunt.exercise_id for hunt in HUNTS if not hunt.daily]
    counts = [own.count(exercise.id) for exercise in builder.list_exercises()]
    assert min(counts) >= 4 and max(counts) <= builder.MOST


def test_stripped_code_is_the_same_code():
    for exercise in builder.list_exercises():
        whole = ast.parse(texts.make_plain_solution(exercise))
        functions = [node for node in whole.body if isinstance(node, ast.FunctionDef)]
        for node in functions:
            if ast.get_docstring(node) is not None:
                node.body = node.body[1:]
        stripped = ast.parse(builder.strip(texts.make_plain_solution(exercise)))
        assert [ast.dump(node) for node in stripped.body] == [ast.dump(node) for node in functions]


def test_the_right_kernel_is_right_on_a_plain_input():
    """The families' ``plain`` weights are 1 and 0, in the inputs and in what is expected."""
    for name in ("01b", "02b", "11a"):
        options = find_options(name)
        (judged,) = run_cases(catalog.get(name), texts.read_solution(catalog.get(name)), "s.py", [options.make_case(options.first())])
        assert judged.passed and set(judged.plan.inputs["w"]) == {1.0}


def test_what_is_expected_stands_below_what_came_out_and_shows_that_it_is_another_number():
    out = Table("y", "output", ("0", "mean", "std"), (("y[0]", (Cell("1.042"), Cell("1"), Cell("0"))), ("...", ())))
    want = Table("y", "expected", out.columns, (("y[0]", (Cell("1.042", "wrong", "1.0421827"), Cell("1"), Cell("0"))), ("...", ())))
    given = Table("w", "input", ("0",), (("w", (Cell("2"),)),))
    answer = Answer(Probe(), (given, out), (want,), (), True)
    (shown,) = arrange(answer, compared=True)
    assert [row.name for row in shown.rows] == ["y[0]", "expected", "..."] and shown.rows[1].cells[0].text == "1.0421827"
    (asked,) = arrange(answer, compared=False)
    assert [row.name for row in asked.rows] == ["w", "y[0]", "..."] and asked.columns == out.columns


def test_an_input_on_which_the_right_kernel_is_off_too_costs_nothing(monkeypatch):
    """In fp16 next to its largest number: whatever the tolerance says of such a row, a learner never pays for it."""
    hunt = next(h for h in HUNTS if h.exercise_id == "07a")
    play = Session(hunt.id, hunt, game.BLIND)
    monkeypatch.setattr("course_lib.hunt.asking.run_cases", lambda exercise, text, name, cases: [Wrong() for _ in cases])
    told = play.ask(play.last)
    assert "costs nothing" in told.words and not play.game.questions


class Wrong:
    right = False
