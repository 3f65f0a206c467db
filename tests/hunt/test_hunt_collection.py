"""Every hunt can be won, says nothing of its answer before the end, and is as fresh as what it was
built of."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace

import pytest

from course_lib import catalog
from course_lib.authoring import hunts as builder
from course_lib.catalog import mutants, texts
from course_lib.grading.judging.causes import CAUSES
from course_lib.grading.trials import run_cases
from course_lib.hunt import collection, game
from course_lib.hunt.asking import Answer, Cell, Table, arrange, ask
from course_lib.hunt.collection import Hunt, read_hunts
from course_lib.hunt.probe import Probe, find_options
from course_lib.hunt.session import Session

HUNTS = list(read_hunts().values())
BY_EXERCISE = pytest.mark.parametrize(
    "exercise", builder.list_exercises(), ids=lambda exercise: exercise.id
)

pytestmark = pytest.mark.usefixtures("state")


@BY_EXERCISE
def test_the_hunts_are_as_fresh_as_what_they_were_built_of(exercise):
    assert collection.read_built()["digests"][exercise.id] == builder.digest(exercise), (
        f"the solution, the wrong solutions or the cases of {exercise.id} have changed: `python -m"
        " course_lib.authoring.hunts` builds the hunts anew"
    )


def list_hunts(is_wrong: Callable[[Hunt], bool]) -> list[str]:
    """Return the ids of the hunts of which ``is_wrong`` is true."""
    return [hunt.id for hunt in HUNTS if is_wrong(hunt)]


def test_a_hunt_is_what_its_wrong_solution_makes():
    def is_other(hunt: Hunt) -> bool:
        (entry,) = [
            entry for entry in mutants.read_mutants(hunt.exercise) if entry["id"] == hunt.mutant
        ]
        made = builder.make_text(hunt.exercise, entry)
        return (hunt.text, hunt.lines) != made or hunt.id != builder.name_hunt(
            hunt.exercise, hunt.mutant
        )

    assert list_hunts(is_other) == []
    assert (
        list_hunts(lambda hunt: not (1 <= hunt.killers <= hunt.cases and hunt.grader_needs >= 1))
        == []
    )


def test_what_is_shown_does_not_name_the_cause():
    """The code, its names, and all that a session says before the end."""

    def names_the_cause(hunt: Hunt) -> bool:
        play = Session(hunt.id, hunt, game.BLIND)
        headline, question = CAUSES[hunt.cause].word_for(
            hunt.exercise.kind, hunt.exercise.entry_points
        )
        shown = "\n".join(
            [hunt.text, play.title, play.aim, play.task, hunt.id, play.options.write(play.last)]
        ).lower()
        secrets = [hunt.cause, hunt.mutant, headline.lower(), question.lower()]
        return any(secret in shown and len(secret) >= 5 for secret in secrets)

    assert list_hunts(names_the_cause) == []
    assert (
        list_hunts(
            lambda hunt: "#" in hunt.text or ast.get_docstring(ast.parse(hunt.text)) is not None
        )
        == []
    )


def test_the_wrong_line_is_there_to_be_named():
    def has_no_wrong_line(hunt: Hunt) -> bool:
        lines = hunt.text.splitlines()
        right = builder.strip(texts.make_plain_solution(hunt.exercise)).splitlines()
        wrong = [lines[number - 1] for number in hunt.lines]
        return not (
            1 <= len(wrong) <= 3
            and all(line.strip() for line in wrong)
            and any(line not in right for line in wrong)
        )

    assert list_hunts(has_no_wrong_line) == []


def test_its_input_can_be_chosen_and_what_is_written_of_it_tells_it_apart():
    def cannot_be_told_apart(hunt: Hunt) -> bool:
        options = find_options(hunt.exercise_id)
        written = options.write(options.check(hunt.probe)).split()
        first = options.write(options.first()).split()
        changed = {
            name
            for name in vars(hunt.probe)
            if getattr(hunt.probe, name) != getattr(options.first(), name)
        }
        return not changed <= set(options.names) or (set(written) != set(first)) != bool(changed)

    assert list_hunts(cannot_be_told_apart) == []


@pytest.mark.parametrize("number", range(0, len(HUNTS), 6))
def test_a_hunt_can_be_won_by_its_input_and_its_line(number):
    """Every sixth, which is one of each exercise: to run them all is what building them did."""
    hunt = HUNTS[number]
    play = Session(hunt.id, hunt, game.BLIND)
    assert play.claim(hunt.probe).good
    assert play.name_line(hunt.lines[0]).good and play.game.won and play.game.score == 1
    assert (
        CAUSES[hunt.cause].word_for(hunt.exercise.kind, hunt.exercise.entry_points)[0][1:]
        in play.debrief()[0]
    )


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
    assert (
        "tl.load" not in text and not any(hunt.mutant in text for hunt in HUNTS) and "game" in text
    )


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
        (judged,) = run_cases(
            catalog.get(name),
            texts.read_solution(catalog.get(name)),
            "s.py",
            [options.make_case(options.first())],
        )
        assert judged.passed and set(judged.plan.inputs["w"]) == {1.0}


def test_what_is_expected_stands_below_what_came_out_and_shows_that_it_is_another_number():
    out = Table(
        "y",
        "output",
        ("0", "mean", "std"),
        (("y[0]", (Cell("1.042"), Cell("1"), Cell("0"))), ("...", ())),
    )
    want = Table(
        "y",
        "expected",
        out.columns,
        (("y[0]", (Cell("1.042", "wrong", "1.0421827"), Cell("1"), Cell("0"))), ("...", ())),
    )
    given = Table("w", "input", ("0",), (("w", (Cell("2"),)),))
    answer = Answer(Probe(), (given, out), (want,), (), True)
    (shown,) = arrange(answer, compared=True)
    assert [row.name for row in shown.rows] == ["y[0]", "expected", "..."] and shown.rows[1].cells[
        0
    ].text == "1.0421827"
    (asked,) = arrange(answer, compared=False)
    assert [row.name for row in asked.rows] == ["w", "y[0]", "..."] and asked.columns == out.columns


def test_an_input_on_which_the_right_kernel_is_off_too_costs_nothing(monkeypatch):
    """In fp16 next to its largest number: whatever the tolerance says of such a row, a learner
    never pays for it."""
    hunt = next(h for h in HUNTS if h.exercise_id == "07a")
    play = Session(hunt.id, hunt, game.BLIND)
    monkeypatch.setattr(
        "course_lib.hunt.asking.run_cases",
        lambda exercise, text, name, cases: [Wrong() for _ in cases],
    )
    told = play.ask(play.last)
    assert "costs nothing" in told.words and not play.game.questions


class Wrong:
    right = False
