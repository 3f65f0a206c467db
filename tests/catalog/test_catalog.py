"""The catalog: every field of every exercise is there and points at something."""

from __future__ import annotations

import ast
import dataclasses
import re

import pytest

from course_lib import catalog
from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.catalog import Exercise
from course_lib.catalog.exercise import read_catalog
from course_lib.exercises import find_parts

EXERCISES = list(catalog.exercises().values())
FILES = {path.stem for path in paths.SOLUTIONS.glob("ex*.py")}
# what a lesson may ask for besides exercises and lessons
KNOWN = {"Python functions", "NumPy slices"}
every_exercise = pytest.mark.parametrize("exercise", EXERCISES, ids=lambda e: e.id)


@every_exercise
def test_no_field_is_empty(exercise):
    for field in dataclasses.fields(Exercise):
        value = getattr(exercise, field.name)
        if field.name in ("needs_gpu", "short_path", "optional"):
            assert isinstance(value, bool)
            continue
        if field.name == "forbidden":  # not every exercise forbids something
            assert all(
                word.isidentifier() and why and why.strip(" .") == why
                for word, why in value.items()
            )
            continue
        assert value, f"{exercise.file}/exercise.toml: the field `{field.name}` is empty; write it"
        texts = value if isinstance(value, tuple) else (value,)
        complete = all(
            not isinstance(text, str) or (text.strip() == text and text) for text in texts
        )
        assert complete, (
            f"{exercise.file}/exercise.toml: a text of `{field.name}` is empty, or has"
            " space around it"
        )


@every_exercise
def test_nothing_of_a_skeleton_is_left_to_say(exercise):
    files = [paths.SOLUTIONS / f"{exercise.file}.py", exercise.folder / "cases.py"]
    for file in (*files, *exercise.list_right_ways()):
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
            assert "SAY:" not in line, (
                f"{paths.shown(file)}, line {number}, still has to say{line.partition('SAY:')[2]}"
            )


@every_exercise
def test_every_case_says_its_mistake_and_its_words_fit_its_shape(exercise):
    file = f"course_lib/exercises/{exercise.file}/cases.py"
    for case in (case for part in find_parts(exercise).values() for case in part.battery):
        assert case.mistake, (
            f"{file}, {case.name!r}: say as `mistake` what a wrong solution does that this case"
            " finds"
        )
        right = {
            "M": case.M,
            "N": case.N,
            case.block_name: case.block,
            case.rows_name: case.rows,
            "padded lanes": case.padded_lanes,
        }
        said = [
            *re.findall(r"\b([A-Z_]+) = (\d+)", case.why),
            *(pair[::-1] for pair in re.findall(r"(\d+) (padded lanes)", case.why)),
        ]
        fits = all(right.get(name, int(number)) == int(number) for name, number in said)
        assert fits, f"{file}, {case.name!r}: the words do not fit the shape: {case.describe()}"


@every_exercise
def test_numbers_are_in_range(exercise):
    assert isinstance(exercise.difficulty, int) and 1 <= exercise.difficulty <= 5
    assert isinstance(exercise.minutes, int) and 5 <= exercise.minutes <= 120


@every_exercise
def test_names_follow_one_stem(exercise):
    assert exercise.file.startswith(f"ex{exercise.id}_") and exercise.file in FILES
    assert exercise.id[:2] == exercise.lesson and len(exercise.id) == 3 and exercise.id[2].islower()
    assert list(paths.NOTEBOOK_SOURCES.glob(f"{exercise.lesson}_*.py")), (
        f"notebooks/source has no lesson {exercise.lesson}: `course author new lesson"
        f" {exercise.lesson}_NAME` lays one out"
    )
    assert (exercise.folder / "wrong.toml").is_file()


@every_exercise
def test_there_are_three_different_hints_or_more_and_the_last_gives_most_away(exercise):
    assert len(set(exercise.hints)) == len(exercise.hints) >= 3, (
        f"{exercise.file}/exercise.toml: `hints` has to hold three different ones, or more"
    )
    lines = {
        line.strip()
        for line in (paths.SOLUTIONS / f"{exercise.file}.py").read_text().splitlines()
        if "=" in line or "(" in line
    }
    assert not any(line and line in exercise.hints[0] for line in lines), (
        "the first hint already has a line of the solution"
    )


@every_exercise
def test_prerequisites_come_earlier_or_are_known(exercise):
    order = list(catalog.exercises())
    for needed in exercise.prerequisites:
        if needed in order:
            assert order.index(needed) < order.index(exercise.id), (
                f"{needed} comes after {exercise.id}"
            )
        else:
            assert needed in KNOWN or needed.startswith("lesson "), needed
            if needed.startswith("lesson "):
                assert needed.split()[1] <= exercise.lesson


@every_exercise
def test_entry_points_are_kernels_or_functions_of_the_solution(exercise):
    tree = ast.parse((paths.SOLUTIONS / f"{exercise.file}.py").read_text())
    functions = [n for n in tree.body if isinstance(n, ast.FunctionDef)]
    kernels = {
        n.name for n in functions if [ast.unparse(d) for d in n.decorator_list] == ["triton.jit"]
    }
    found = kernels if exercise.kind == "kernel" else {n.name for n in functions} - kernels
    assert set(exercise.entry_points) <= found


def test_ids_are_unique_and_in_the_order_of_the_course():
    assert list(catalog.exercises()) == sorted(exercise.id for exercise in EXERCISES)
    assert len({exercise.file for exercise in EXERCISES}) == len(EXERCISES) == len(FILES)


@pytest.mark.parametrize("spelled", ["07a", "7a", "07A", " 7A ", "ex07a"])
def test_an_exercise_is_found_however_it_is_spelled(spelled):
    assert catalog.get(spelled).id == "07a"


@pytest.mark.parametrize("unknown", ["", "99z", "06", "07a_layer_norm", "../07a"])
def test_an_unknown_one_is_answered_with_those_there_are(unknown):
    with pytest.raises(CourseError) as refused:
        catalog.get(unknown)
    assert repr(unknown) in str(refused.value) and all(
        exercise.id in str(refused.value) for exercise in EXERCISES
    )


COPY = "ex00a_masked_copy"
FILE = f"{COPY}/exercise.toml"


def edit(pattern: str, new: str, name: str = COPY):
    """What an author does to the file of 00a, saved in the folder ``name``."""

    def change(folder):
        text = (folder / COPY / "exercise.toml").read_text(encoding="utf-8")
        text, times = re.subn(pattern, new, text, count=1)
        assert times == 1
        (folder / name).mkdir(exist_ok=True)
        (folder / name / "exercise.toml").write_text(text, encoding="utf-8")

    return change


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (edit('stretch = """[^"]*"""\n', ""), "exercise 00a.*stretch"),
        (edit("title", "extra = 1\ntitle"), "exercise 00a.*extra"),
        (edit("", "", "ex00a_once_more"), "00a stands there twice"),
        (edit('"kernel"', '"jax"'), "exercise 00a.*'jax' is none of"),
        (
            edit("minutes = 10", 'minutes = "10"'),
            f"{FILE}, exercise 00a, field minutes: it has to be a whole number, and is '10'",
        ),
        (
            edit("minutes = 10", "minutes = true"),
            f"{FILE}, exercise 00a, field minutes: it has to be a whole number, and is True",
        ),
        (
            edit(r'\["copy_kernel"\]', '"copy_kernel"'),
            f"{FILE}, exercise 00a, field entry_points: it has to be a list of texts",
        ),
        (edit("title =", "title"), f"{FILE}, exercise 00a: it is not valid TOML: .*line 1"),
        (edit("", "", "copy"), "copy/exercise.toml: the name of an exercise's folder has the form"),
    ],
)
def test_an_authors_slip_is_named(tmp_path, change, says):
    for file in paths.EXERCISE_FOLDERS.glob("*/exercise.toml"):
        (tmp_path / file.parent.name).mkdir()
        (tmp_path / file.parent.name / file.name).write_bytes(file.read_bytes())
    change(tmp_path)
    with pytest.raises(CourseError, match=says):
        read_catalog(tmp_path)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            {"file": "ex00a_another"},
            "exercise 00a has no cases: there is no course_lib/exercises/ex00a_another/cases.py",
        ),
        ({"file": "tensors"}, "there is no course_lib/exercises/tensors/cases.py"),
        (
            {"entry_points": ("copy_kernel", "sum_kernel")},
            "course_lib/exercises/ex00a_masked_copy/cases.py: its PARTS have no sum_kernel",
        ),
    ],
)
def test_missing_cases_are_named(change, says):
    with pytest.raises(CourseError, match=says):
        find_parts(dataclasses.replace(catalog.get("00a"), **change))


@every_exercise
def test_there_is_a_part_for_each_entry_point(exercise):
    assert tuple(find_parts(exercise)) == exercise.entry_points
