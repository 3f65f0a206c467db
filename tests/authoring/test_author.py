"""`course author`: what it lays out, that it changes no file, and that each thing it lays out says
what is missing."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
import tomllib

import polib
import pytest

from course_lib.authoring import check, skeletons, translations
from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.catalog import cut
from course_lib.catalog.exercise import read_exercise
from course_lib.cli import app as cli

PROJECT = paths.ROOT / "pyproject.toml"


@pytest.fixture(autouse=True)
def checkout(tmp_path, monkeypatch):
    """An empty checkout: what is laid out goes there."""
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    monkeypatch.setattr(paths, "SOLUTIONS", tmp_path / "solutions")
    monkeypatch.setattr(paths, "NOTEBOOK_SOURCES", tmp_path / "notebooks" / "source")
    return tmp_path


@pytest.mark.parametrize("kind", skeletons.KINDS)
def test_a_new_exercise_can_be_cut_and_read_and_has_something_left_to_say_in_each_file(
    checkout, kind
):
    written = skeletons.new_exercise("98b_two_words", kind)
    texts = {
        path.relative_to(checkout).as_posix(): path.read_text(encoding="utf-8") for path in written
    }
    assert texts.keys() == {
        "solutions/ex98b_two_words.py", "course_lib/exercises/ex98b_two_words/exercise.toml",
        "course_lib/exercises/ex98b_two_words/cases.py",
        "course_lib/exercises/ex98b_two_words/wrong.toml",
        "course_lib/exercises/ex98b_two_words/right/another_way.py",
    }  # fmt: skip
    folder = "course_lib/exercises/ex98b_two_words"
    exercise = read_exercise(checkout / folder / "exercise.toml")
    assert (exercise.id, exercise.lesson, exercise.kind) == ("98b", "98", kind)
    unsolved = cut.cut(texts["solutions/ex98b_two_words.py"])
    functions = {
        node.name for node in ast.parse(unsolved).body if isinstance(node, ast.FunctionDef)
    }
    assert set(exercise.entry_points) == functions and "YOUR CODE" in unsolved
    assert tomllib.loads(texts[f"{folder}/wrong.toml"]) == {"mutant": []} and exercise.title == ""
    assert all("SAY:" in text for name, text in texts.items() if name.endswith(".py"))


@pytest.mark.parametrize(
    ("what", "name"),
    [("exercise", "98a_some"), ("lesson", "98_some"), ("picture", "some"), ("kernel", "some")],
)
def test_nothing_is_ever_overwritten_and_nothing_half_written(what, name):
    first, *others = skeletons.NEW[what](name)
    for path in others:
        path.unlink()
    first.write_text("mine")
    with pytest.raises(CourseError, match="already"):
        skeletons.NEW[what](name)
    assert first.read_text() == "mine" and not any(path.exists() for path in others)


@pytest.mark.parametrize("what", ["lesson", "picture", "kernel"])
def test_what_is_laid_out_is_python_and_says_what_is_missing(what):
    files = skeletons.NEW[what]("98_some" if what == "lesson" else "some")
    texts = [path.read_text(encoding="utf-8") for path in files]
    assert all(
        ast.parse(path.read_text(encoding="utf-8")) for path in files if path.suffix == ".py"
    )
    assert any("SAY:" in text for text in texts)
    assert any("pytest.fail(" in text or "raise NotImplementedError(" in text for text in texts)


@pytest.mark.parametrize("name", ["some", "zz_a_rather_long_name"])
@pytest.mark.parametrize("what", ["exercise", "picture", "kernel"])
def test_what_is_laid_out_is_as_make_lint_wants_it(checkout, what, name):
    pytest.importorskip("ruff", reason="ruff is not installed; `make dev` installs it")
    (checkout / "course_lib").mkdir(exist_ok=True)  # what ruff takes for the course's own
    shutil.copy(PROJECT, checkout)
    written = skeletons.NEW[what](f"98a_{name}" if what == "exercise" else name)
    files = [str(path) for path in written if path.suffix == ".py"]
    for command in (
        ["format", "--check", "--force-exclude"],
        ["check", "--no-cache", "--force-exclude"],
    ):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *command, *files],
            cwd=checkout,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("exercise", "column sums"), "'column sums' is no name for an exercise"),
        (("lesson", "first"), "'first' is no name for a lesson"),
        (("picture", "../x"), "'../x' is no name for a picture"),
        (("kernel", "Norm"), "'Norm' is no name for a kernel"),
        (
            ("chapter", "x"),
            "there is no 'chapter' to be made. There are: exercise, lesson, picture, kernel.",
        ),
        (("lesson", "98_x", "--kind", "torch"), "--kind belongs to a new exercise"),
        (("exercise", "98a_x", "--kind", "jax"), "kind 'jax' is none of kernel, numpy, torch"),
    ],
)
def test_a_slip_is_one_line_and_writes_nothing(checkout, capsys, arguments, says):
    assert cli.run(["author", "new", *arguments]) == 3
    assert says in capsys.readouterr().err and not list(checkout.iterdir())


REPORT = """<testsuites><testsuite>
<testcase classname="tests.catalog.test_cut" name="test_it[ex98a]"/>
<testcase classname="tests.catalog.test_catalog" name="test_no_field[98a]"><failure message="AssertionError: `title` is empty&#10;assert ''"/>
</testcase>
<testcase classname="tests.grading.test_grading" name="test_the_solution_passes[98a]">
<failure message="course_lib.base.errors.CourseError: x.py: write it"/></testcase>
<testcase classname="tests.grading.test_grading" name="test_a_right[ex98a]"><failure message="Failed: run `make it`"/></testcase>
</testsuite></testsuites>"""  # noqa: E501


def test_a_report_of_the_tests_becomes_sentences(tmp_path):
    report = tmp_path / "report.xml"
    report.write_text(REPORT)
    assert [sentence and f"{sentence} ({test})" for _, sentence,
        test in check.read_report(report)] == [
        "", "`title` is empty (test_no_field[98a])",
        "x.py: write it (test_the_solution_passes[98a])", "run `make it` (test_a_right[ex98a])",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "subject"),
    [
        ("tests.catalog.test_cut.test_solving[ex07a]", "cut"),
        (
            "tests.grading.test_grading.test_a_mutant_fails_with_its_cause[07a-the_solution_again]",
            "mutants",
        ),
        ("tests.grading.test_grading.test_a_variant_is_not_the_solution_again[ex07a]", "variants"),
        (
            "tests.grading.test_causes.test_every_known_right_way_has_its_variants[fp64 inside]",
            "causes",
        ),
        ("tests.lessons.test_notebooks.test_the_notebook_is_built[06]", "notebook"),
        ("tests.authoring.test_prose.test_every_number_in_the_prose_comes_from_a_run[06]", "prose"),
    ],
)
def test_each_test_is_counted_under_its_subject(name, subject):
    assert check.find_subject(name) == subject


def test_a_finding_without_a_test_is_not_right():
    assert (
        not check.SubjectReport("cut").is_right
        and check.SubjectReport("cut", 1).is_right
        and not check.SubjectReport("cut", 1, ["x"]).is_right
    )


def test_the_share_of_the_course_that_is_translated_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(translations, "list_catalogs", lambda: ["causes"])
    monkeypatch.setattr(
        translations,
        "list_texts",
        lambda name: {"Which row is wrong here?": "", "Which column is wrong?": "", "New.": ""},
    )
    kept = polib.POFile()
    kept.append(polib.POEntry(msgid="Which row is wrong?", msgstr="哪一行错了？"))
    kept.append(polib.POEntry(msgid="Which column is wrong?", msgstr="哪一列错了？"))
    kept.save(str(tmp_path / "causes.po"))
    monkeypatch.setattr(
        translations, "find_catalog", lambda language, name: tmp_path / f"{name}.po"
    )
    said = check.describe_translations()
    assert (
        "1 of 3 texts" in said
        and "33 %" in said
        and "the English has changed in causes (1)" in said
    )
