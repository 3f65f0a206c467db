"""The grader on the course's own exercises: solutions and variants pass, unsolved files are not attempted, every mutant
fails with its cause."""

from __future__ import annotations

import dataclasses
import tomllib
from pathlib import Path

import pytest

import course_lib
from course_lib import catalog, paths, workspace
from course_lib.grading.causes import CAUSES
from course_lib.grading.check import check
from course_lib.grading.runner import Limits

HERE = Path(__file__).parent
EXERCISES = list(catalog.exercises().values())
# a GPU's first case has to be compiled before it can hang
SHORT = dataclasses.replace(Limits.for_mode(course_lib.MODE), case=1.5 if course_lib.MODE == "cpu" else 20.0)
UNREADABLE_CAUSES = {"undefined_name", "not_allowed", "no_kernel", "no_function"}


def mutants():
    return [
        pytest.param(exercise, entry, id=f"{exercise.id}-{entry['id']}")
        for exercise in EXERCISES
        for entry in tomllib.loads((HERE / "mutants" / f"ex{exercise.id}.toml").read_text(encoding="utf-8"))["mutant"]
    ]


def mutated(exercise, entry) -> str:
    prose, imports, text = workspace.solution_text(exercise).partition("\nimport ")
    for find, replacement in entry["edits"]:
        assert text.count(find) == 1, f"{entry['id']}: {find!r} stands {text.count(find)} times in the solution's code"
        text = text.replace(find, replacement)
    return prose + imports + text


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda e: e.id)
def test_the_solution_passes(exercise):
    verdict = check(exercise, paths.SOLUTIONS / f"{exercise.file}.py")
    assert verdict.status == "pass", verdict.message + verdict.printed
    assert {case.status for case in verdict.cases} == {"pass"} and max(case.error for case in verdict.cases) <= 1


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda e: e.id)
def test_the_unsolved_file_is_not_attempted(exercise, tmp_path):
    file = tmp_path / f"{exercise.file}.py"
    file.write_text(workspace.generated_text(exercise) + "\n# a note of my own\n")
    verdict = check(exercise, file)
    assert (verdict.status, verdict.exit_code, verdict.cases) == ("not attempted", 2, ())


@pytest.mark.parametrize("file", sorted((HERE / "variants").glob("ex*.py")), ids=lambda f: f.stem)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_right_but_different_kernel_passes(file, seed):
    verdict = check(catalog.get(file.stem[2:5]), file, seed=seed)
    assert verdict.status == "pass", verdict.message + verdict.printed


@pytest.mark.parametrize(("exercise", "entry"), mutants())
def test_a_mutant_fails_with_its_cause(exercise, entry, tmp_path):
    file = tmp_path / "mutant.py"
    file.write_text(mutated(exercise, entry), encoding="utf-8")
    verdict = check(exercise, file, limits=SHORT if entry.get("slow") else None)
    assert verdict.status in ("fail", "error"), "the mutant survived"
    expected = entry.get(f"cause_{verdict.mode}", entry["cause"])
    assert verdict.cause == expected, f"{verdict.cause}: {verdict.message}"
    assert verdict.message


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda e: e.id)
def test_every_exercise_has_mutants_and_a_variant(exercise):
    entries = tomllib.loads((HERE / "mutants" / f"ex{exercise.id}.toml").read_text(encoding="utf-8"))["mutant"]
    assert len(entries) >= 3 and len({e["id"] for e in entries}) == len(entries)
    assert {
        cause for e in entries for cause in (e["cause"], e.get("cause_cpu", e["cause"]), e.get("cause_gpu", e["cause"]))
    } <= CAUSES.keys() | UNREADABLE_CAUSES
    assert list((HERE / "variants").glob(f"ex{exercise.id}_*.py"))
