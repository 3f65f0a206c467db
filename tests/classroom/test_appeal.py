"""One mark explained: the files are those of the mark, or say openly that they are not; and the
learner's copy holds nothing of a hidden case."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from fake_grading import fake_check, write_file

from course_lib import catalog
from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.catalog import texts
from course_lib.classroom import appeal, case_files, checking
from course_lib.classroom.grade_class import ClassOptions, find_best_tier, grade_class
from course_lib.classroom.record import Attempt
from course_lib.cli import app
from course_lib.grading.cases.hidden import Secret
from course_lib.grading.judging.judge import Judged
from course_lib.grading.plans import make_plans
from course_lib.grading.verdict import FAIL
from course_lib.sandbox import isolation

ONLY = ("01a", "07a")
SECRET = "a secret of sixteen letters\n"
CHANGES = {
    "divides by N - 1": (
        "01a",
        "(deviation * deviation).mean(dim=-1, keepdim=True)",
        "(deviation * deviation).sum(dim=-1, keepdim=True) / (x.shape[-1] - 1)",
    ),
    "raises": (
        "01a",
        "wide = x.float()",
        "wide = x.float()\n    if x.shape[-1] > 2: raise ValueError(x.tolist())",
    ),
    "pads": ("07a", "tl.where(cols < N, x - mean, 0.0)", "x - mean"),
    "stores outside": (
        "07a",
        "y.to(y_ptr.dtype.element_ty), mask=mask",
        "y.to(y_ptr.dtype.element_ty)",
    ),
}


def write_change(learner):
    """Return the solution with the mistake that the learner's name stands for."""
    exercise, right, wrong = CHANGES[learner]
    text = texts.read_solution(catalog.get(exercise))
    assert right in text
    return exercise, text.replace(right, wrong)


def grade(folder, out, secret, **how):
    tier = None if find_best_tier() != isolation.LIMITS else isolation.LIMITS
    options = ClassOptions(only=ONLY, secret_file=secret, tier=tier)
    return grade_class(folder, out, options, lambda: ThreadPoolExecutor(1), 2, **how)


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    home = tmp_path_factory.mktemp("appeal")
    (home / "secret").write_text(SECRET)
    for learner in CHANGES:
        write_file(home / "class" / learner, *write_change(learner))
    write_file(home / "class" / "right", "01a", texts.read_solution(catalog.get("01a")))
    grade(home / "class", home / "out", home / "secret")
    return home


def show(graded, learner, exercise):
    tier = None if find_best_tier() != isolation.LIMITS else isolation.LIMITS
    return appeal.show_mark(graded / "out", learner, exercise, graded / "secret", tier)


def read_marked(graded, learner, exercise):
    lines = (graded / "out" / "results.jsonl").read_text().splitlines()
    return next(
        mark
        for mark in map(json.loads, lines)
        if (mark["learner"], mark["exercise"]) == (learner, exercise)
    )


@pytest.mark.slow
@pytest.mark.parametrize("learner", CHANGES)
def test_what_is_shown_is_what_was_marked_and_runs_again(graded, learner):
    exercise = CHANGES[learner][0]
    shown = show(graded, learner, exercise)
    marked = read_marked(graded, learner, exercise)["verdict"]
    assert shown.is_same and shown.status == FAIL and "byte for byte" in shown.comparison
    about = (shown.folder / "mark.txt").read_text()
    for said in (marked["headline"], marked["first"]["case"], marked["place"]["source"].strip()):
        assert said in about
    name = f"{catalog.get(exercise).file}.py"
    handed_in = (graded / "class" / learner / name).read_bytes()
    assert (shown.folder / name).read_bytes() == handed_in
    _, plan = case_files.read_case(shown.folder)
    inputs = np.load(shown.folder / "inputs.npz", allow_pickle=False)
    assert set(inputs) == {tensor.name for tensor in plan.tensors if tensor.values is not None}
    first = marked["first"]
    if first["element"]:
        output, *index = re.findall(r"[^\[\], ]+", first["element"].replace("new ", "new_"))
        index = tuple(map(int, index))
        numbers = [np.load(shown.folder / f"{f}.npz")[output][index] for f in ("got", "expected")]
        assert numbers == [first["got"], first["want"]]
    run = [sys.executable, str(shown.folder / "run_case.py")]
    again = subprocess.run(run, capture_output=True, text=True, cwd=paths.ROOT, check=False)
    assert again.returncode == 1 and first["case"] in again.stdout, again.stderr
    if learner == "stores outside":
        assert "stores outside y" in again.stdout and "lanes" in again.stdout
        assert "it is not shown where" in about, "the mark itself withholds it"
    solution = paths.SOLUTIONS / name
    right = subprocess.run(
        [*run, str(solution)], capture_output=True, text=True, cwd=paths.ROOT, check=False
    )
    assert right.returncode == 0 and "  right" in right.stdout, right.stderr


@pytest.mark.slow
def test_the_learners_copy_holds_the_file_and_no_hidden_case(graded):
    shown = show(graded, "raises", "01a")
    copy = shown.folder / "for-the-learner"
    assert sorted(file.name for file in copy.iterdir()) == ["ex01a_layer_norm.py", "mark.txt"]
    text = (copy / "mark.txt").read_text()
    marked = read_marked(graded, "raises", "01a")["verdict"]
    assert marked["headline"] in text and "course check 01a --file ex01a_layer_norm.py" in text
    for case in marked["cases"]:
        assert case["detail"] not in text
    assert marked["first"]["case"] not in text and marked["hidden"] not in text
    for file in shown.folder.rglob("*"):
        assert file.stat().st_mode & 0o077 == 0, f"{file} can be read by others"


@pytest.mark.slow
def test_a_grader_that_changed_since_is_said_openly(graded, monkeypatch):
    monkeypatch.setattr(checking, "grader_version", lambda: "another")
    monkeypatch.setattr(appeal, "grader_version", lambda: "another")
    shown = show(graded, "divides by N - 1", "01a")
    assert not shown.is_same
    assert "NOT what was marked: the grader has changed since" in shown.comparison
    assert "now another" in shown.comparison and "Its verdict is the same" in shown.comparison
    assert shown.comparison in (shown.folder / "mark.txt").read_text()


@pytest.mark.slow
def test_the_language_makes_no_other_verdict(graded):
    german = "Die Varianz ist durch N - 1 geteilt."
    marked = read_marked(graded, "divides by N - 1", "01a")["verdict"]
    spoken = marked | {
        "message": german,
        "headline": german,
        "first": marked["first"] | {"words": german},
        "isolation": "another",
    }
    attempt = Attempt("", "the key", checking.grader_version())
    assert appeal.compare_verdicts(attempt, marked, spoken, "the key")[0]
    other = spoken | {"first": marked["first"] | {"got": 7.0}}
    is_same, comparison = appeal.compare_verdicts(attempt, marked, other, "the key")
    assert not is_same and "changes from run to run" in comparison


@pytest.mark.slow
def test_a_pass_has_the_file_and_no_case(graded, capsys):
    out, secret = str(graded / "out"), str(graded / "secret")
    command = ["grade", out, "--show", "right", "01a", "--secret-file", secret]
    if find_best_tier() == isolation.LIMITS:
        command += ["--require-tier", "limits"]
    assert app.run(command) == 0
    said = capsys.readouterr().out
    assert "right, 01a: pass. This is byte for byte what was marked" in said
    assert "mark.txt, ex01a_layer_norm.py, for-the-learner/" in said and "case.json" not in said


def grade_one(home):
    """Grade a class of one learner with the stand-in."""
    write_file(home / "class" / "ann", "01a", "# 1\n")
    (home / "secret").write_text(SECRET)
    grade(
        home / "class",
        home / "out",
        home / "secret",
        check=fake_check,
        find_tier=lambda: isolation.NAMESPACES,
    )
    return home


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--show", "nobody", "01a"], "'nobody', whom the class does not have. It has: ann"),
        (["--show", "ann", "04a"], "04a was not asked for"),
        (["--show", "ann", "07a"], "no file, so there is no case to show. There is no file ex07a_"),
        (["--show", "ann", "01a"], "was graded before files were kept there, or it was changed"),
        (["--show", "ann", "01a", "--all"], "no other option"),
        ([], "say where the results go"),
    ],
)
def test_what_cannot_be_shown_is_said(tmp_path, capsys, arguments, says):
    home = grade_one(tmp_path)
    (kept,) = (home / "out" / "files").iterdir()
    kept.write_bytes(b"# changed\n")
    assert app.run(["grade", str(home / "out"), *arguments]) == app.BAD_REQUEST
    assert says in " ".join(capsys.readouterr().err.split())


def test_a_folder_without_results_is_said(tmp_path):
    with pytest.raises(CourseError, match="there are no results of a class"):
        appeal.show_mark(tmp_path, "ann", "01a", None, None)


def test_a_file_is_kept_as_long_as_a_mark_counts_it(tmp_path):
    home = grade_one(tmp_path)
    (first,) = (home / "out" / "files").iterdir()
    assert first.read_bytes() == b"# 1\n"
    write_file(home / "class" / "ann", "01a", "# 3\n")
    options = ClassOptions(only=ONLY, secret_file=home / "secret", anew=True)
    grade_class(
        home / "class",
        home / "out",
        options,
        lambda: ThreadPoolExecutor(1),
        2,
        check=fake_check,
        find_tier=lambda: isolation.NAMESPACES,
    )
    (second,) = (home / "out" / "files").iterdir()
    assert second.read_bytes() == b"# 3\n", "with --anew nothing counts the first any more"


@pytest.mark.parametrize("exercise", catalog.exercises().values(), ids=lambda exercise: exercise.id)
def test_the_files_of_a_case_hold_its_bytes(exercise, tmp_path):
    """Of each entry point the first hidden cases, and those with a NaN, an Inf or far rows."""
    plans = make_plans(exercise, secret=Secret("of this test"))
    chosen = [
        plan
        for number, plan in enumerate(plans)
        if number % 7 == 0 or plan.case.has_bad_row or plan.case.is_far
    ]
    for plan in chosen[:12]:
        case_files.write_case(tmp_path, exercise, Judged(plan), isolation.LIMITS)
        _, again = case_files.read_case(tmp_path)
        assert [t.initial_bytes() for t in again.tensors] == [
            t.initial_bytes() for t in plan.tensors
        ]
        assert again.case == plan.case and again.arguments == plan.arguments
        assert (again.derive is None) == (plan.derive is None)
        assert again.expected.keys() == plan.expected.keys()
        for name, expected in plan.expected.items():
            for found, wanted in (
                (again.expected[name].values, expected.values),
                (again.expected[name].allowed, expected.allowed),
            ):
                assert np.asarray(found).tobytes() == np.asarray(wanted).tobytes()
