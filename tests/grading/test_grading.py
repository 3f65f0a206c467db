"""The grader on the course's own exercises: solutions and variants pass, unsolved files are not
attempted, every mutant fails with its cause."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

import course_lib
from course_lib import catalog
from course_lib.authoring import killing_cases, verdicts
from course_lib.base import paths
from course_lib.catalog import mutants, texts
from course_lib.grading.cases.case import Case
from course_lib.grading.check import check
from course_lib.grading.execution import runner
from course_lib.grading.judging.causes import CAUSES
from course_lib.grading.judging.judge import judge
from course_lib.grading.kind import find_mode
from course_lib.grading.plans import make_plans
from course_lib.grading.submission import attempt

HERE = Path(__file__).parent.parent
PAGE = verdicts.PAGE.read_text(encoding="utf-8") if verdicts.PAGE.exists() else ""
EXERCISES = list(catalog.exercises().values())
# a GPU's first case has to be compiled before it can hang
SHORT = dataclasses.replace(
    find_mode(course_lib.MODE).limits, case=1.5 if course_lib.MODE == "cpu" else 20.0
)
MANY_BLOCKS = 16
UNREADABLE_CAUSES = {"undefined_name", "not_allowed", "no_kernel", "no_function"}


MUTANTS = [
    pytest.param(exercise, entry, id=f"{exercise.id}-{entry['id']}")
    for exercise, entry in mutants.list_mutants()
]
KILLING_CASES = killing_cases.read_killing_cases()
SHOWN = {
    (exercise.id, entry["id"]): cause
    for cause, (exercise, entry) in verdicts.choose_mutants().items()
}


@pytest.mark.usefixtures("recall_compilations")
@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda e: e.id)
def test_the_solution_passes(exercise):
    verdict = check(exercise, paths.SOLUTIONS / f"{exercise.file}.py")
    assert verdict.status == "pass", verdict.message + verdict.printed
    assert {case.status for case in verdict.cases} == {"pass"}
    assert max(case.error or 0 for case in verdict.cases) <= 1  # what was timed has no error


@pytest.mark.parametrize(
    ("exercise", "old", "new", "common"),
    [
        ("00a", "    tl.store(y_ptr + offsets, x, mask=mask)",
            "    if program == 0:\n        tl.store(y_ptr + offsets, x, mask=mask)",
            "with more than one block."),
        ("00a", "mask = offsets < n", "mask = offsets < tl.minimum(n, 1)",
            "with 2 elements or more."),
        ("06a", "for start in range(0, N, BLOCK):", "for start in range(0, BLOCK, BLOCK):",
            "with more than one block per row."),
    ],
)  # fmt: skip
def test_what_failing_cases_share_is_said_of_rows_only_where_there_are_some(
    exercise, old, new, common, tmp_path
):
    exercise, file = catalog.get(exercise), tmp_path / "own.py"
    text = texts.read_solution(exercise)
    assert text.count(old) == 1
    file.write_text(text.replace(old, new))
    verdict = check(exercise, file)
    assert verdict.status == "fail" and verdict.common.endswith(common), verdict.common


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda e: e.id)
def test_the_unsolved_file_is_not_attempted(exercise, tmp_path):
    file = tmp_path / f"{exercise.file}.py"
    file.write_text(texts.make_unsolved_text(exercise) + "\n# a note of my own\n")
    verdict = check(exercise, file)
    assert (verdict.status, verdict.exit_code, verdict.cases) == ("not attempted", 2, ())


VARIANTS = [(exercise, file) for exercise in EXERCISES for file in exercise.list_right_ways()]
NAMES = [f"ex{exercise.id}_{file.stem}" for exercise, file in VARIANTS]


@pytest.mark.usefixtures("recall_compilations")
@pytest.mark.parametrize(("exercise", "file"), VARIANTS, ids=NAMES)
def test_a_right_but_different_kernel_passes(exercise, file):
    verdict = check(exercise, file)
    assert verdict.status == "pass", verdict.message + verdict.printed


@pytest.mark.parametrize(("exercise", "file"), VARIANTS, ids=NAMES)
def test_a_variant_is_not_the_solution_again(exercise, file):
    own = attempt.read_attempt(
        exercise, texts.read_solution(exercise), file.read_text(encoding="utf-8"), file.name
    )
    assert own is not None, (
        f"{paths.shown(file)} has the solution's own code: write another right way"
    )


SEEDS = range(1, 20)
SEEDED = [
    pytest.param(
        exercise,
        file,
        number,
        seed,
        id=f"{NAMES[number]}-{seed}",
        marks=() if seed == SEEDS[number % len(SEEDS)] else pytest.mark.sweep,
    )
    for number, (exercise, file) in enumerate(VARIANTS)
    for seed in SEEDS
]


@pytest.mark.parametrize(("exercise", "file", "turn", "seed"), SEEDED)
def test_a_right_but_different_kernel_passes_with_another_seed(exercise, file, turn, seed):
    """Run a third of the cases with the numbers of another seed: three variants of an exercise run
    every case. `make test` takes one seed for each variant, by turns, and `make sweep` the other
    eighteen.

    Left out is what the numbers in a tensor do not touch, and seed 0 has in the test above: the
    orders in which programs can be interleaved, how often memory is read, the compiler's opinion,
    rows 2^30 elements apart, and which of many programs has which row. A few cases walk over dozens
    of blocks and cost the interpreter as much as all the others; they are there for the number of
    their blocks, and take part with the lowest three seeds."""
    kernel = exercise.kind == "kernel"
    submission = attempt.extract(exercise, file.read_text(encoding="utf-8"), file.name)
    concrete = [
        # programs of 16b wait for one another
        dataclasses.replace(plan, interleavings=int(exercise.id == "16b"), reads={})
        for number, plan in enumerate(make_plans(exercise, seed))
        if (number + seed + turn) % 3 == 0
        and not plan.case.is_far
        and not plan.sample
        and (seed <= 3 or blocks(plan.case) <= MANY_BLOCKS)
    ]
    run = runner.run(submission, concrete, course_lib.MODE if kernel else exercise.kind)
    assert run.ended == "finished" and len(run.data) == len(concrete), run
    wrong = [
        plan.case.describe()
        for n, plan in enumerate(concrete)
        if not judge(plan, run.data[n]).passed
    ]
    assert not wrong


def blocks(case: Case) -> int:
    """Blocks that the programs of a kernel walk over, all together."""
    return -(-case.M // case.rows) * -(-case.N // case.block) if case.block else 0


@pytest.mark.parametrize(("exercise", "entry"), MUTANTS)
def test_a_mutant_fails_with_its_cause(exercise, entry, tmp_path):
    """Those that the page of verdicts shows, and those without killing cases, go through the whole
    check; the others through it in the sweep."""
    cases = KILLING_CASES.get(exercise.id, {}).get(entry["id"])
    if (
        course_lib.MODE == "cpu"
        and cases
        and (exercise.id, entry["id"]) not in SHOWN
        and is_killed_by(exercise, entry, cases)
    ):
        return
    check_mutant(exercise, entry, tmp_path)


def is_killed_by(exercise, entry, cases) -> bool:
    try:
        verdict = killing_cases.check_on_cases(exercise, entry, cases)
    except IndexError:  # the exercise has fewer cases than it had
        return False
    return not verdict.passed and verdict.cause == entry.get("cause_cpu", entry["cause"])


@pytest.mark.sweep
@pytest.mark.parametrize(("exercise", "entry"), MUTANTS)
def test_a_mutant_fails_with_its_cause_in_the_whole_check(exercise, entry, tmp_path):
    check_mutant(exercise, entry, tmp_path)


def check_mutant(exercise, entry, folder):
    file = folder / verdicts.FILE
    file.write_text(mutants.make_text(exercise, entry), encoding="utf-8")
    verdict = check(exercise, file, limits=SHORT if entry.get("slow") else None)
    assert verdict.status in ("fail", "error"), "the mutant survived"
    expected = entry.get(f"cause_{course_lib.MODE}", entry["cause"])
    assert verdict.cause == expected, f"{verdict.cause}: {verdict.message}"
    assert verdict.message
    assert str(paths.PACKAGE) not in verdict.printed, "a warning about the grader is not theirs"
    if course_lib.MODE == "cpu" and (cause := SHOWN.get((exercise.id, entry["id"]))):
        shown = verdicts.write_section(cause, exercise, entry, verdict)
        assert shown in PAGE, (
            f"docs/verdicts.md says something else than\n{shown}\nRun `python -m"
            " course_lib.authoring.verdicts`."
        )


def test_the_page_of_verdicts_has_every_cause_and_counts_every_mutant():
    sections = [
        line for line in PAGE.splitlines() if line.startswith("## ") and line != "## Other ends"
    ]
    assert sections == [
        f"## {cause}: {CAUSES[cause].headline}" if cause in CAUSES else f"## {cause}"
        for cause in sorted(SHOWN.values())
    ]
    other_ends = PAGE.partition("\n## Other ends\n")[2]
    missing = [
        cause for cause in CAUSES if cause not in SHOWN.values() and f"`{cause}`" not in other_ends
    ]
    assert not missing, "`python -m course_lib.authoring.verdicts` writes the page anew"
    assert f"| all | {len(MUTANTS)} |" in PAGE, (
        "docs/verdicts.md counts other mutants; `python -m course_lib.authoring.verdicts` writes it"
        " anew"
    )


def test_sections_that_are_kept_stay_as_they_are():
    sections = verdicts.read_sections(PAGE)
    assert (
        verdicts.write_page({cause: sections[cause] for cause in verdicts.choose_mutants()}) == PAGE
    )


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda e: e.id)
def test_every_exercise_has_mutants_and_a_variant(exercise):
    entries = mutants.read_mutants(exercise)
    assert len(entries) >= 3, (
        f"{paths.shown(mutants.find_file(exercise))}: {len(entries)} wrong solutions; three at"
        " least have to be there"
    )
    assert len({e["id"] for e in entries}) == len(entries), (
        f"{paths.shown(mutants.find_file(exercise))}: two mutants have one id"
    )
    assert {
        cause
        for e in entries
        for cause in (e["cause"], e.get("cause_cpu", e["cause"]), e.get("cause_gpu", e["cause"]))
    } <= CAUSES.keys() | UNREADABLE_CAUSES
    assert exercise.list_right_ways(), f"{paths.shown(exercise.folder)}/right has no file"
