"""The catalog: every field of every exercise is there and points at something."""

from __future__ import annotations

import ast
import dataclasses
import tomllib

import pytest

from course_lib import catalog
from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.catalog import Exercise

EXERCISES = list(catalog.exercises().values())
FILES = {path.stem for path in paths.SOLUTIONS.glob("ex*.py")}
# what a lesson may ask for besides exercises and lessons
KNOWN = {"Python functions", "NumPy slices"}
every_exercise = pytest.mark.parametrize("exercise", EXERCISES, ids=lambda e: e.id)


@every_exercise
def test_no_field_is_empty(exercise):
    for field in dataclasses.fields(Exercise):
        value = getattr(exercise, field.name)
        if field.name == "needs_gpu":
            assert isinstance(value, bool)
            continue
        assert value, field.name
        texts = value if isinstance(value, tuple) else (value,)
        assert all(not isinstance(text, str) or (text.strip() == text and text) for text in texts), field.name


@every_exercise
def test_numbers_are_in_range(exercise):
    assert isinstance(exercise.difficulty, int) and 1 <= exercise.difficulty <= 5
    assert isinstance(exercise.minutes, int) and 5 <= exercise.minutes <= 120


@every_exercise
def test_names_follow_one_stem(exercise):
    assert exercise.file.startswith(f"ex{exercise.id}_") and exercise.file in FILES
    assert exercise.id[:2] == exercise.lesson and len(exercise.id) == 3 and exercise.id[2].islower()
    assert list(paths.NOTEBOOK_SOURCES.glob(f"{exercise.lesson}_*.py")), "its lesson has no source"
    assert (paths.ROOT / "tests" / "mutants" / f"ex{exercise.id}.toml").is_file()


@every_exercise
def test_there_are_three_different_hints_and_the_last_gives_most_away(exercise):
    assert len(set(exercise.hints)) == 3
    lines = {line.strip() for line in (paths.SOLUTIONS / f"{exercise.file}.py").read_text().splitlines() if "=" in line or "(" in line}
    assert not any(line and line in exercise.hints[0] for line in lines), "the first hint already has a line of the solution"


@every_exercise
def test_prerequisites_come_earlier_or_are_known(exercise):
    order = list(catalog.exercises())
    for needed in exercise.prerequisites:
        if needed in order:
            assert order.index(needed) < order.index(exercise.id), f"{needed} comes after {exercise.id}"
        else:
            assert needed in KNOWN or needed.startswith("lesson "), needed
            if needed.startswith("lesson "):
                assert needed.split()[1] <= exercise.lesson


@every_exercise
def test_entry_points_are_kernels_or_functions_of_the_solution(exercise):
    tree = ast.parse((paths.SOLUTIONS / f"{exercise.file}.py").read_text())
    decorators = ["triton.jit"] if exercise.kind == "kernel" else []
    found = {n.name for n in tree.body if isinstance(n, ast.FunctionDef) and [ast.unparse(d) for d in n.decorator_list] == decorators}
    assert set(exercise.entry_points) <= found


def test_ids_are_unique_and_in_the_order_of_the_course():
    assert list(catalog.exercises()) == sorted(exercise.id for exercise in EXERCISES)
    assert len({exercise.file for exercise in EXERCISES}) == len(EXERCISES) == len(FILES)


@pytest.mark.parametrize("spelled", ["06a", "6a", "06A", " 6A ", "ex06a"])
def test_an_exercise_is_found_however_it_is_spelled(spelled):
    assert catalog.get(spelled).id == "06a"


@pytest.mark.parametrize("unknown", ["", "99z", "06", "06a_layer_norm", "../06a"])
def test_an_unknown_one_is_answered_with_those_there_are(unknown):
    with pytest.raises(CourseError) as refused:
        catalog.get(unknown)
    assert repr(unknown) in str(refused.value) and all(exercise.id in str(refused.value) for exercise in EXERCISES)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda entries: entries[0].pop("stretch"), "exercise 00a.*stretch"),
        (lambda entries: entries[0].update(extra=1), "exercise 00a.*extra"),
        (lambda entries: entries.append(entries[0]), "00a stands there twice"),
        (lambda entries: entries[0].update(kind="jax"), "exercise 00a.*'jax' is none of"),
    ],
)
def test_an_authors_slip_is_named(monkeypatch, change, says):
    entries = tomllib.loads((paths.ROOT / "course_lib" / "catalog" / "exercises.toml").read_text())["exercise"]
    change(entries)
    monkeypatch.setattr(tomllib, "loads", lambda text: {"exercise": entries})
    with pytest.raises(CourseError, match=says):
        catalog.exercises.__wrapped__()
