"""A failing case that a person can work out by hand: looked for after the verdict, true of the
code, and shown only where it tells the same."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib import catalog
from course_lib.base import paths
from course_lib.catalog import Exercise, mutants, texts
from course_lib.exercises import by_hand, find_parts
from course_lib.grading import grade, smaller
from course_lib.grading.cases.case import Case
from course_lib.grading.cases.plan import Plan
from course_lib.grading.cases.small import list_small_cases
from course_lib.grading.check import check
from course_lib.grading.execution import runner
from course_lib.grading.judging.judge import judge_case
from course_lib.grading.smaller import SmallCases, has_whole_inputs, make_small_plans
from course_lib.grading.submission.attempt import extract
from course_lib.grading.verdict import Verdict, from_dict

# its entry points get kernels, and no case has a size
EXERCISES = [exercise for exercise in catalog.exercises().values() if exercise.kind != "tests"]
VARIANTS = [(exercise, file) for exercise in EXERCISES for file in exercise.list_right_ways()]
MUTANTS = [
    pair for pair in mutants.list_mutants() if pair[0] in EXERCISES and not pair[1].get("slow")
]
SEVERAL = 200  # plans a job


def list_plans(exercise: Exercise, take=lambda number: True) -> list[Plan]:
    """The candidates for the cases of the exercise of which ``take`` says so, each once."""
    found = {}
    for entry_point, part in find_parts(exercise).items():
        for number, case in enumerate(part.battery):
            if take(number):
                for plan in make_small_plans(part, case, entry_point):
                    found[entry_point, dataclasses.replace(plan.case, name="", why="")] = plan
    return list(found.values())


def find_wrong(exercise: Exercise, text: str, name: str, plans: list[Plan]) -> list[str]:
    """The plans on which a file's code is not right, in words."""
    kernels, wrong = extract(exercise, text, name), []
    mode = "cpu" if exercise.kind == "kernel" else exercise.kind
    for first in range(0, len(plans), SEVERAL):
        some = plans[first : first + SEVERAL]
        run = runner.run(kernels, some, mode)
        assert run.ended == "finished", run
        for number, plan in enumerate(some):
            judged = judge_case(plan, run.data.get(number), run.errors.get(number))
            wrong += (
                []
                if judged.passed
                else [
                    f"{plan.case.describe()}: {judged.raised or judged.fault or judged.deviations}"
                ]
            )
    return wrong


# ---- a small case refuses nothing that is right


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda e: e.id)
def test_the_solution_is_right_on_every_small_case(exercise):
    text = (paths.SOLUTIONS / f"{exercise.file}.py").read_text(encoding="utf-8")
    plans = list_plans(exercise)
    assert plans and find_wrong(exercise, text, exercise.file, plans) == []


@pytest.mark.parametrize(
    ("exercise", "file", "turn"),
    [
        pytest.param(
            exercise,
            file,
            number,
            id=f"ex{exercise.id}_{file.stem}",
            marks=pytest.mark.sweep if number % 4 else (),
        )
        for number, (exercise, file) in enumerate(VARIANTS)
    ],
)
def test_another_right_way_is_right_on_small_cases_of_every_kind(exercise, file, turn):
    """On those for a fifth of the cases, another fifth than the variant before."""
    plans = list_plans(exercise, lambda number: (number + turn) % 5 == 0)
    assert plans and find_wrong(exercise, file.read_text(encoding="utf-8"), file.name, plans) == []


@pytest.mark.parametrize(("exercise", "file"), VARIANTS[::20])
def test_for_what_is_right_none_is_looked_for(exercise, file, monkeypatch):
    monkeypatch.setattr(SmallCases, "find", lambda *rest: pytest.fail("looked for"))
    assert check(exercise, file).passed


# ---- the cases


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda e: e.id)
def test_small_cases_hold_whole_numbers(exercise):
    """Where this fails, the family draws its numbers without a look at ``Case.by_hand``:
    exercises/tensors.py and by_hand.py have some."""
    plans = list_plans(exercise)
    assert [plan.case.describe() for plan in plans if not has_whole_inputs(plan)] == []


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda e: e.id)
def test_a_small_case_is_small_and_says_what_it_is(exercise):
    for part in find_parts(exercise).values():
        for case in part.battery:
            for small in list_small_cases(case, part.battery):
                assert (
                    min(case.M * case.N, 24) >= small.M * small.N
                    and small.block <= 8
                    and small.by_hand
                )
                assert (
                    "made to be worked out by hand" in small.describe()
                    and "{" not in small.describe()
                )
                assert not small.is_far and (small.M > 1 or not small.has_bad_row)


def test_by_hand_does_not_show_in_the_repr():
    """The hunts are kept under the repr of the batteries."""
    case = Case("name", 1, 2, 4, "why")
    assert "by_hand" not in repr(case) and case != dataclasses.replace(case, by_hand=True)


@pytest.mark.parametrize("N", [2, 4, 5, 6])
@pytest.mark.parametrize("row", [0, 1, 2])
def test_rows_have_whole_statistics(N, row):
    x = by_hand.choose_rows(3, N)[row]
    for statistic in (x.mean(), x.std(), np.sqrt((x**2).mean())):
        assert statistic == round(statistic) and statistic > 1
    assert x.mean() != x.std() and (x == x.round()).all()


@pytest.mark.parametrize("N", [1, 2, 3, 4, 5, 6, 9])
def test_rows_and_weights_differ_from_one_another(N):
    x = by_hand.choose_rows(2, N)
    w = by_hand.choose_weights(N)
    b = by_hand.choose_shifts(N)
    dy = by_hand.choose_gradient(2, N)
    assert len(set(w)) == len(set(b)) == N and not {0, 1, -1} & set(w) and (x[0] != x[1]).any()
    assert N == 1 or (len({*dy[0]}) > 1 and len({*x[0]}) > 1)
    assert (dy[0] != dy[1]).all() and (dy > 0).all()


# ---- what is shown


def check_mutant(exercise: Exercise, mutant: str, folder: Path, **how) -> tuple[Verdict, list]:
    entry = next(entry for entry in mutants.read_mutants(exercise) if entry["id"] == mutant)
    file = folder / "mine.py"
    file.write_text(mutants.make_text(exercise, entry), encoding="utf-8")
    cases = []
    return check(exercise, file, mode="cpu", take_cases=cases.extend, **how), cases


def test_a_person_can_work_it_out(tmp_path):
    verdict, _ = check_mutant(catalog.get("05a"), "unmasked_variance", tmp_path)
    first = verdict.first
    assert first is not None and first.inputs == (("x", "[[1, 7]]"),)
    assert (
        first.case == "M = 1, N = 2, BLOCK = 4, fp32: made to be worked out by hand, 2 padded lanes"
    )
    assert (first.element, first.want, first.got) == ("var[0]", 9.0, 25.0)
    assert "x = [[1, 7]], var is off by" in verdict.message and "by hand" not in str(verdict.cases)


def test_what_eps_does_is_shown_with_an_eps_that_counts(tmp_path):
    verdict, _ = check_mutant(catalog.get("01a"), "eps_outside_the_root", tmp_path)
    assert verdict.first is not None and dict(verdict.first.inputs)["eps"] == "7"
    assert (verdict.first.want, round(verdict.first.got or 0, 5)) == (-0.5, 0.4)


def test_no_row_is_asked_for_that_is_shorter_than_the_exercise_says(tmp_path):
    verdict, judged = check_mutant(catalog.get("03b"), "equal_numbers", tmp_path)
    assert "`defeating_row(8)` returned equal numbers" in verdict.message and len(judged) == len(
        verdict.cases
    )


def test_a_store_outside_is_shown_by_its_lane(tmp_path):
    verdict, _ = check_mutant(catalog.get("00a"), "no_store_mask", tmp_path)
    assert verdict.first is not None and verdict.first.case.startswith("n = 1, BLOCK = 2, fp32: ")
    # the numbers play no part
    assert "1 of 2 lanes" in verdict.first.words and verdict.first.inputs == ()


@pytest.mark.parametrize(
    ("exercise", "mutant"),
    [("05b", "one_pass"), ("06a", "row_in_32_bits"), ("07a", "stored_over_x")],
)
def test_what_needs_its_size_or_has_no_number_is_shown_as_it_is(exercise, mutant, tmp_path):
    verdict, judged = check_mutant(catalog.get(exercise), mutant, tmp_path)
    assert (
        verdict.first is not None
        and verdict.first.inputs == ()
        and "by hand" not in verdict.first.case
    )
    assert verdict.first.case in {j.plan.case.describe() for j in judged} and len(judged) == len(
        verdict.cases
    )


def run_alone(exercise: Exercise, text: str, plan: Plan):
    mode = "cpu" if exercise.kind == "kernel" else exercise.kind
    run = runner.run(extract(exercise, text, "mine.py"), [plan], mode)
    return judge_case(plan, run.data.get(0), run.errors.get(0))


@settings(max_examples=20, deadline=None)
@given(pair=st.sampled_from(MUTANTS))
def test_of_any_wrong_solution_the_shown_case_is_wrong_and_the_verdict_is_what_it_was(
    pair, tmp_path_factory
):
    exercise, entry = pair
    folder = tmp_path_factory.mktemp("mutant")
    verdict, judged = check_mutant(exercise, entry["id"], folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SmallCases, "find", lambda *rest: None)
        before, of_battery = check_mutant(exercise, entry["id"], folder)
    for name in ("status", "cause", "headline", "question", "cases", "printed", "mode", "tier"):
        assert getattr(verdict, name) == getattr(before, name), name
    # how many cases are wrong stays; what they share has to hold for the shown case, too
    assert verdict.common.split(",")[0].rstrip(".") == before.common.split(",")[0].rstrip(".")
    if len(judged) == len(of_battery):
        # a NaN that is shown differs from itself
        assert repr(verdict) == repr(dataclasses.replace(before, seconds=verdict.seconds))
        return
    shown = judged[-1]
    assert verdict.first is not None and before.first is not None
    assert verdict.first.case == shown.plan.case.describe() != before.first.case
    [larger] = {
        j.plan.case.M * j.plan.case.N
        for j in of_battery
        if j.plan.case.describe() == before.first.case
    }
    assert larger >= shown.plan.case.M * shown.plan.case.N
    alone = run_alone(exercise, mutants.make_text(exercise, entry), shown.plan)
    assert alone.ran and not alone.passed
    assert [(d.output, d.kind, d.where) for d in alone.deviations] == [
        (d.output, d.kind, d.where) for d in shown.deviations
    ]
    assert bool(verdict.first.inputs) >= bool(verdict.first.element)


def test_a_family_that_knows_no_whole_numbers_shows_its_own_cases(tmp_path, monkeypatch):
    monkeypatch.setattr(by_hand, "choose_rows", lambda M, N: np.full((M, N), 0.3) + np.arange(N))
    verdict, judged = check_mutant(catalog.get("05a"), "unmasked_variance", tmp_path)
    assert (
        verdict.first is not None
        and verdict.first.inputs == ()
        and len(judged) == len(verdict.cases)
    )


# ---- code that does not bear small cases

NORM = catalog.get("01a")
WRONG = "import torch\n\ndef layer_norm(x, w, b, eps):\n{first}    return (x + b).to(x.dtype)\n"


def hand_in(tmp_path, first: str, **how) -> tuple[Verdict, list]:
    file = tmp_path / "mine.py"
    file.write_text(WRONG.format(first=first))
    cases = []
    return check(NORM, file, take_cases=cases.extend, **how), cases


def test_a_candidate_that_raises_is_passed_over(tmp_path):
    easiest, _ = hand_in(tmp_path, "")
    assert easiest.first is not None and easiest.first.case.startswith("M = 1, N = 2, fp32")
    verdict, _ = hand_in(
        tmp_path, "    if x.shape == (1, 2):\n        raise ValueError('too small')\n"
    )
    assert verdict.first is not None and verdict.first.case.startswith(
        "M = 1, N = 4, fp32: made to be"
    )
    assert verdict.status == "fail" and "too small" not in verdict.as_json()


@pytest.mark.parametrize(
    "ends", ["while True:\n            pass", "raise SystemExit", "print('x' * 10_000_000)"]
)
def test_who_bears_no_small_case_gets_the_verdict_that_there_is(tmp_path, ends, monkeypatch):
    monkeypatch.setattr(smaller, "_CASE_SECONDS", 0.2)
    verdict, judged = hand_in(
        tmp_path, f"    if x.dim() == 2 and x.numel() <= 4:\n        {ends}\n"
    )
    assert verdict.status == "fail" and len(judged) == len(verdict.cases) and verdict.printed == ""
    assert (
        verdict.first is not None
        and verdict.first.inputs == ()
        and "by hand" not in verdict.first.case
    )


def test_a_machine_that_runs_no_second_process_changes_nothing(tmp_path, monkeypatch):
    stock, runs = runner.run, []

    def run(*arguments):
        runs.append(arguments)
        if len(runs) > 1:
            raise OSError("no more processes")
        return stock(*arguments)

    monkeypatch.setattr(runner, "run", run)
    verdict, judged = hand_in(tmp_path, "")
    assert len(runs) == 2 and verdict.status == "fail" and len(judged) == len(verdict.cases)


# ---- on a GPU, whose process is stood in for by the interpreter's


@pytest.mark.parametrize("both", [True, False])
def test_on_a_gpu_a_small_case_is_shown_if_the_interpreter_fails_it_too(
    tmp_path, monkeypatch, both
):
    exercise = catalog.get("05a")
    entry = next(entry for entry in mutants.read_mutants(exercise) if entry["id"] == "unbiased")
    wrong = mutants.make_text(exercise, entry)
    file = tmp_path / f"{exercise.file}.py"
    file.write_text(wrong if both else texts.read_solution(exercise))
    broken, stock, modes = extract(exercise, wrong, file.name), runner.run, []

    def run(kernels, plans, mode, *arguments, **named):
        modes.append(mode)
        return stock(broken if mode == "gpu" else kernels, plans, "cpu", *arguments, **named)

    monkeypatch.setattr(runner, "run", run)
    verdict, judged = grade.grade(exercise, file, "gpu", 0, None, None)
    assert (verdict.status, verdict.cause, modes[-1]) == ("fail", "unbiased_variance", "cpu")
    assert verdict.first is not None and bool(verdict.first.inputs) == both
    assert len(judged) == len(verdict.cases) + both


# ---- who is not told


def test_with_hidden_cases_none_is_looked_for(tmp_path, monkeypatch):
    monkeypatch.setattr(SmallCases, "find", lambda *rest: pytest.fail("looked for"))
    verdict, _ = hand_in(tmp_path, "", secret="a secret of mine")
    assert verdict.status == "fail" and verdict.first is not None and verdict.first.inputs == ()


def test_a_second_look_shows_its_own_case(tmp_path, monkeypatch):
    """Right in the first run, wrong in the second: a small case would be a third."""
    monkeypatch.setattr(SmallCases, "find", lambda *rest: pytest.fail("looked for"))
    exercise, entry = next(pair for pair in MUTANTS if pair[1]["cause"] == "right_only_once")
    verdict, cases = check_mutant(exercise, entry["id"], tmp_path)
    assert verdict.cause == "right_only_once" and verdict.first is not None
    assert [case for case in cases if case.is_shown] == cases[-1:]
    assert cases[-1].plan.case.describe() == verdict.first.case


# ---- what is kept


def test_a_verdict_comes_back_from_json_with_its_inputs_and_an_older_one_without(tmp_path):
    verdict, _ = hand_in(tmp_path, "")
    kept = json.loads(verdict.as_json())
    assert (
        kept["first"]["inputs"]["x"] == "[[1, 7]]"
        and from_dict(kept).first.inputs == verdict.first.inputs
    )
    assert kept == verdict.as_dict()
    del kept["first"]["inputs"]
    assert from_dict(kept).first == dataclasses.replace(
        from_dict(json.loads(verdict.as_json())).first, inputs=()
    )
