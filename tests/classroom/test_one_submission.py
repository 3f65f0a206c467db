"""One submission graded in another system's container: what is written there is of the format that
the system documents."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
import shlex
import subprocess
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor

import jsonschema
import pytest
import yaml
from fake_grading import fake_check, write_file

from course_lib import catalog
from course_lib.base import paths
from course_lib.base.errors import EnvironmentFault
from course_lib.catalog import texts
from course_lib.classroom import one_submission
from course_lib.classroom.grade_class import find_best_tier, grade_class
from course_lib.classroom.gradebook import Mark, Row
from course_lib.classroom.one_submission import Settings
from course_lib.cli import app
from course_lib.grading.cases.hidden import derive_secret
from course_lib.grading.check import check
from course_lib.sandbox import isolation

SECRET = b"a secret of sixteen letters"
LEARNER = "12 3"
WRONG = ("(x - new_mean)", "(x - mean)")  # of 04a
VISIBILITY = {"enum": ["hidden", "after_due_date", "after_published", "visible"]}
TEXT = {"type": "string"}
# Written by hand from https://gradescope-autograders.readthedocs.io/en/latest/specs/, read
# 2026-11-25. What the page does not name is refused.
GRADESCOPE = {
    "type": "object",
    "additionalProperties": False,
    "anyOf": [{"required": ["score"]}, {"required": ["tests"]}],
    "properties": {
        "score": {"type": "number"},
        "execution_time": {"type": "integer"},
        "output": TEXT,
        "output_format": {"enum": ["text", "simple_format", "html", "md", "ansi"]},
        "visibility": VISIBILITY,
        "stdout_visibility": VISIBILITY,
        "tests": {
            "type": "array",
            "items": {
                "type": "object",
                "additionalProperties": False,
                "properties": {
                    "score": {"type": "number"},
                    "max_score": {"type": "number"},
                    "status": {"enum": ["passed", "failed"]},
                    "name": TEXT,
                    "output": TEXT,
                    "visibility": VISIBILITY,
                },
            },
        },
    },
}
WHOLE, NAME = {"type": "integer", "minimum": 0}, {"type": "string", "minLength": 1}
# The same from https://github.com/foundation50/classroom50/wiki/Advanced-Autograding, "The
# result.json contract", read 2026-11-25.
CLASSROOM50 = {
    "type": "object",
    "additionalProperties": False,
    "required": (
        "schema classroom assignment assignment_type owner submission commit release review"
        " datetime score max-score tests".split()
    ),
    "properties": {
        "schema": {"const": "classroom50/result/v1"},
        "assignment_type": {"enum": ["individual", "group"]},
        "submission": {"type": "string", "pattern": "^submit/"},
        "datetime": {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$"},
        **dict.fromkeys(("classroom", "assignment", "owner", "commit", "release", "review"), NAME),
        **dict.fromkeys(("score", "max-score"), WHOLE),
        "tests": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["test-name", "passed", "score", "max-score"],
                "properties": {
                    "test-name": NAME,
                    "passed": {"type": "boolean"},
                    "score": WHOLE,
                    "max-score": WHOLE,
                },
            },
        },
    },
}
# What its runner sets, by the same page.
ENVIRONMENT = {
    "CLASSROOM": "cs", "ASSIGNMENT": "week-3", "ASSIGNMENT_TYPE": "individual", "OWNER": "jdoe",
    "USERNAME": "jdoe",
    "SUBMISSION_TAG": "submit/2026-12-01T12-00-00Z-a1b2c3d",
    "COMMIT_URL": "https://github.com/cs/a/commit/1",
    "RELEASE_URL": "https://github.com/cs/a/releases/tag/1", "REVIEW_URL": "",
}  # fmt: skip


@pytest.fixture
def autograder(tmp_path):
    """What Gradescope makes below ``/autograder`` before it runs anything."""
    (tmp_path / "source").mkdir()
    (tmp_path / "submission").mkdir()
    tier = isolation.LIMITS if find_best_tier() == isolation.LIMITS else None
    (tmp_path / "source" / "settings.json").write_text(Settings(("01a", "04a"), tier=tier).write())
    (tmp_path / "source" / "secret").write_bytes(SECRET)
    (tmp_path / "submission_metadata.json").write_text('{"users": [{"id": 3}, {"id": 12}]}')
    return tmp_path


@pytest.fixture
def fake(monkeypatch):
    """Let the fake grader check the files, in threads of this process."""
    faked = functools.partial(grade_class, check=fake_check, find_tier=lambda: isolation.NAMESPACES)
    monkeypatch.setattr(one_submission, "grade_class", faked)
    monkeypatch.setattr(one_submission.workers, "start_processes", ThreadPoolExecutor)


def read_results(autograder):
    result = json.loads((autograder / "results" / "results.json").read_text())
    jsonschema.validate(result, GRADESCOPE)
    return result


def grade(autograder):
    one_submission.run_gradescope(autograder)
    return read_results(autograder)


@pytest.mark.slow
def test_gradescope_gets_points_and_words_and_nothing_of_a_hidden_case(autograder, capsys):
    right = texts.read_solution(catalog.get("01a"))
    wrong = texts.read_solution(catalog.get("04a")).replace(*WRONG)
    write_file(autograder / "submission", "01a", right)
    file = write_file(autograder / "submission" / "a repository" / "exercises", "04a", wrong)
    result = grade(autograder)
    first, second = result["tests"]
    worth = [catalog.get(name).difficulty for name in ("01a", "04a")]
    assert (first["status"], first["score"], first["max_score"]) == ("passed", worth[0], worth[0])
    assert (second["status"], second["score"], second["max_score"]) == ("failed", 0, worth[1])
    assert result["score"] == worth[0] and result["stdout_visibility"] == "hidden"
    verdict = check(catalog.get("04a"), file, secret=derive_secret(SECRET, f"name {LEARNER}"))
    right = sum(case.status == "pass" for case in verdict.cases)
    assert f"{right} of {len(verdict.cases)} hidden cases are right." in second["output"]
    assert verdict.headline in second["output"] and verdict.place.source.strip() in second["output"]
    everything = json.dumps(result, ensure_ascii=False)
    hidden = [
        verdict.first.case,
        verdict.first.words,
        *(case.detail for case in verdict.cases if case.detail),
    ]
    assert hidden[0] and not [words for words in hidden if words in everything]
    assert "01a is the published solution" in capsys.readouterr().out, "for the teacher alone"
    assert "published" not in everything


@pytest.mark.slow
def test_a_file_that_cannot_be_read_is_a_result_in_words(autograder):
    write_file(autograder / "submission", "01a", "# ü\n".encode("latin-1"))
    write_file(autograder / "submission", "04a", "def (:\n")
    result = grade(autograder)
    assert [test["status"] for test in result["tests"]] == ["failed", "failed"] and result[
        "score"
    ] == 0
    assert "UTF-8" in result["tests"][0]["output"] and "Line 1: " in result["tests"][1]["output"]


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({}, "there is no exercise file (ex07a_NAME.py) in it"),
        ({"04a.py": "x", "notes.txt": "x"}, "04a.py"),
        ({"<b>ex.zip": "no zip"}, "<b>ex.zip"),
    ],
)
def test_a_submission_without_a_file_is_told_what_is_missing(autograder, fake, files, says):
    for name, text in files.items():
        (autograder / "submission" / name).write_text(text)
    result = grade(autograder)
    assert result["score"] == 0 and says in result["output"] and result["output_format"] == "text"
    expected = [
        f"There is no file {catalog.get(name).file}.py in what you handed in."
        for name in ("01a", "04a")
    ]
    assert [test["output"] for test in result["tests"]] == expected


def test_a_link_out_of_the_submission_is_not_followed(autograder, fake):
    (autograder / "submission" / f"{catalog.get('04a').file}.py").symlink_to(
        autograder / "source" / "secret"
    )
    result = grade(autograder)
    assert "symbolic link" in result["tests"][1]["output"] and result["score"] == 0


@pytest.mark.parametrize("fault", ["FAULT", "MACHINE"])
def test_what_the_grader_could_not_do_has_no_score_and_takes_none_of_the_others_away(
    autograder, fake, capsys, fault
):
    write_file(autograder / "submission", "01a", fault)
    write_file(autograder / "submission", "04a", "text")
    result = grade(autograder)
    assert "score" not in result, "a sum without this exercise would count it as 0"
    first, second = result["tests"]
    assert (
        not {"score", "max_score", "status"} & first.keys()
        and {"score", "max_score", "status"} <= second.keys()
    )
    assert "That is not your fault, and takes no points from you." in first["output"]
    assert "01a: not graded. " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("wrong", "raises"), [("no settings", FileNotFoundError), ("no isolation", EnvironmentFault)]
)
def test_a_fault_of_the_installation_is_said_to_be_the_courses(
    autograder, monkeypatch, wrong, raises
):
    if wrong == "no settings":
        (autograder / "source" / "settings.json").unlink()
    else:
        (autograder / "source" / "settings.json").write_text(Settings(("01a",)).write())
        faked = functools.partial(grade_class, find_tier=lambda: isolation.LIMITS)
        monkeypatch.setattr(one_submission, "grade_class", faked)
    with pytest.raises(raises):
        one_submission.run_gradescope(autograder)
    result = read_results(autograder)
    (test,) = result["tests"]
    assert "not your fault" in result["output"] and "score" not in result and "score" not in test


def test_everybody_has_the_same_cases_each_time_and_a_group_the_same_whoever_hands_in(autograder):
    metadata = autograder / "submission_metadata.json"
    assert one_submission._read_learner(metadata) == LEARNER
    metadata.write_text('{"users": [{"id": 12}, {"id": 3}]}')
    assert one_submission._read_learner(metadata) == LEARNER


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The command of the guide, word for word; and the zip that it writes, unpacked."""
    (file,) = run_command_of_the_guide("gradescope", tmp_path_factory.mktemp("release")).rglob(
        "autograder.zip"
    )
    return file


def run_command_of_the_guide(system, home):
    """Run the one command of the guide for ``system``, in a folder beside which it writes. Returns:
    the folder of both."""
    guide = (paths.ROOT / "docs" / "grading-a-class.md").read_text(encoding="utf-8")
    (command,) = re.findall(rf"^course release --{system} [^\n]+$", guide, re.MULTILINE)
    (home / "here").mkdir()
    with contextlib.chdir(home / "here"):
        assert app.run(shlex.split(command)[1:]) == 0
    return home


@pytest.mark.slow
def test_the_autograder_has_what_gradescope_asks_for_at_its_root(made, tmp_path):
    assert made.stat().st_mode & 0o077 == 0, "it holds the secret"
    with zipfile.ZipFile(made) as archive:
        archive.extractall(tmp_path)
        modes = {entry.filename: entry.external_attr >> 16 for entry in archive.infolist()}
    # they need an index of packages to run
    for name in ("setup.sh", "run_autograder", "install.sh"):
        assert modes[name] & 0o111 and (tmp_path / name).read_text().startswith(
            "#!/usr/bin/env bash\n"
        )
        subprocess.run(["bash", "-n", tmp_path / name], check=True)
    assert one_submission.read_settings(tmp_path / "settings.json") == Settings(
        ("04a", "04b"), partial=False
    )
    assert (tmp_path / "constraints.txt").read_bytes() == (
        paths.ROOT / "constraints.txt"
    ).read_bytes()
    (wheel,) = tmp_path.glob("norm_kernels_course-*.whl")
    assert "course_lib/classroom/one_submission.py" in zipfile.ZipFile(wheel).namelist()


@pytest.mark.slow
def test_what_run_autograder_starts_grades_a_submission(made, tmp_path):
    root = tmp_path / "autograder"
    with zipfile.ZipFile(made) as archive:
        archive.extractall(root / "source")
    write_file(root / "submission", "04a", texts.read_solution(catalog.get("04a")))
    script = (root / "source" / "run_autograder").read_text().splitlines()[-1]
    python, *rest = shlex.split(script.removeprefix("exec "))
    assert python == "/autograder/source/venv/bin/python", "install.sh makes it"
    done = subprocess.run(
        [sys.executable, *rest, root], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    if find_best_tier() == isolation.LIMITS:
        assert done.returncode == 1 and "limits only" in done.stderr
        return
    assert done.returncode == 0, done.stderr
    tests = read_results(root)["tests"]
    assert [test["status"] for test in tests] == ["passed", "failed"], "04b was not handed in"


def test_options_of_an_autograder_without_one_and_an_autograder_without_exercises_are_refused(
    tmp_path, capsys
):
    assert app.run(["release", str(tmp_path / "x"), "--week", "3"]) == app.USAGE_ERROR
    assert app.run(["release", "--gradescope", str(tmp_path / "x")]) == app.BAD_REQUEST
    said = capsys.readouterr().err
    assert "belong to --gradescope" in said and "--week 3, --only 07a,08a, or --all" in said
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "mine").write_text("x")
    assert app.run(["release", "--gradescope", str(tmp_path / "x"), "--all"]) == app.BAD_REQUEST
    assert [file.name for file in (tmp_path / "x").iterdir()] == ["mine"]


@pytest.fixture
def bundle(tmp_path):
    """What Classroom 50 has of an assignment, and a checkout with a course_lib of its own, as a
    copy of the course has."""
    (tmp_path / "bundle").mkdir()
    tier = isolation.LIMITS if find_best_tier() == isolation.LIMITS else None
    (tmp_path / "bundle" / "settings.json").write_text(Settings(("01a", "04a"), tier=tier).write())
    (tmp_path / "checkout" / "course_lib").mkdir(parents=True)
    (tmp_path / "checkout" / "course_lib" / "__init__.py").write_text(
        "raise SystemExit('the checkout was imported')\n"
    )
    return tmp_path / "bundle"


def read_result(checkout):
    result = json.loads((checkout / "result.json").read_text())
    jsonschema.validate(result, CLASSROOM50)
    assert result["score"] == sum(test["score"] for test in result["tests"])
    assert result["max-score"] == sum(test["max-score"] for test in result["tests"])
    return result


@pytest.mark.slow
def test_classroom50s_autograder_installs_grades_and_writes_a_result(tmp_path, bundle):
    (made,) = {
        file.parent
        for file in run_command_of_the_guide("classroom50", tmp_path).rglob("autograder.py")
    }
    assert {"install.sh", "constraints.txt", "settings.json"} <= {
        file.name for file in made.iterdir()
    }
    assert "secret" not in [file.name for file in made.iterdir()], (
        "the files of an autograder are public"
    )
    assert sum(file.stat().st_size for file in made.iterdir()) < 10 << 20, (
        "Classroom 50 fetches no more"
    )
    (made / "settings.json").write_bytes((bundle / "settings.json").read_bytes())
    install = f"""cd "$(dirname "$0")" && mkdir -p venv/bin && printf '#!/bin/sh\nexec {sys.executable} "$@"' > venv/bin/python && chmod +x venv/bin/python"""  # noqa: E501
    # in place of an installation, the environment of this test
    (made / "install.sh").write_text(install)
    checkout = bundle.parent / "checkout"
    write_file(checkout / "exercises", "01a", texts.read_solution(catalog.get("01a")))
    write_file(
        checkout / "exercises", "04a", texts.read_solution(catalog.get("04a")).replace(*WRONG)
    )
    done = subprocess.run(
        [sys.executable, made / "autograder.py"],
        cwd=checkout,
        env=os.environ | ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    result = read_result(checkout)
    assert [test["passed"] for test in result["tests"]] == [True, False] and result[
        "owner"
    ] == "jdoe"
    assert (
        result["score"] == catalog.get("01a").difficulty
        and result["review"] == ENVIRONMENT["COMMIT_URL"]
    )
    body = (checkout / "release-body.md").read_text()
    assert "hidden cases are right." in body and f"**04a {catalog.get('04a').title}: fail**" in body
    assert "published" not in body + done.stdout + done.stderr, "the student can read all of it"


def test_points_of_a_part_are_whole_numbers_for_classroom50():
    row = Row("jdoe", "jdoe", "", "", (Mark("17a", "fail", 2.57, possible=3.0),))
    (test,) = one_submission.describe_for_classroom50(row, ENVIRONMENT)["tests"]
    assert (test["score"], test["max-score"], test["passed"]) == (2, 3, False)


@pytest.mark.parametrize("fault", ["FAULT", "MACHINE"])
def test_a_fault_of_the_grader_is_no_result_for_classroom50_but_an_exit_code(
    bundle, fake, monkeypatch, capsys, fault
):
    checkout = bundle.parent / "checkout"
    write_file(checkout, "04a", fault)
    monkeypatch.chdir(checkout)
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    assert one_submission.main(["classroom50", str(bundle)]) == 1
    said = capsys.readouterr().err
    assert "not graded, and not the student's fault: 04a: " in said and said.count("\n") == 1
    assert not (checkout / "result.json").exists()


@pytest.mark.slow
def test_the_workflow_of_a_class_checks_what_the_week_asks_for(tmp_path):
    copy = tmp_path / "course-for-the-class"
    (copy / "exercises").mkdir(parents=True)
    (copy / "Makefile").write_text("")
    run_command_of_the_guide("workflow", tmp_path)
    workflow = yaml.safe_load((copy / ".github" / "workflows" / "check.yml").read_text())
    *used, environment, step = workflow["jobs"]["check"]["steps"]
    assert environment["run"].startswith("make env") and len(used) == 2
    assert all(re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", one["uses"]) for one in used)
    command = copy / ".venv" / "bin" / "course"
    command.parent.mkdir(parents=True)
    command.write_text(f"""#!/bin/sh\nexec {sys.executable} -m course_command "$@" """)
    command.chmod(0o755)
    moved = {
        "COURSE_EXERCISES": str(copy / "exercises"),
        "COURSE_STATE": str(tmp_path),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "page"),
    }
    for name in ("04a", "04b"):
        write_file(copy / "exercises", name, texts.read_solution(catalog.get(name)))
    for code, words in ((0, "04b Chan's merge: pass"), (1, "04a Welford's algorithm: fail")):
        # what GitHub makes of `shell: bash`
        shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        done = subprocess.run(
            shell, cwd=copy, env=os.environ | moved, capture_output=True, text=True, check=False
        )
        assert done.returncode == code, done.stdout + done.stderr
        assert words in done.stdout and words in (tmp_path / "page").read_text()
        write_file(
            copy / "exercises", "04a", texts.read_solution(catalog.get("04a")).replace(*WRONG)
        )
    with contextlib.chdir(tmp_path / "here"):
        assert (
            app.run(["release", "--workflow", "../course-for-the-class", "--week", "3"])
            == app.BAD_REQUEST
        )


@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        (["--gradescope", "--workflow", "--week", "3"], app.USAGE_ERROR, "say one of"),
        (["--workflow", "--week", "3"], app.BAD_REQUEST, "is no copy of the course for learners"),
        (["--workflow", "--week", "3", "--partial"], app.BAD_REQUEST, "a workflow gives no points"),
        (
            ["--classroom50", "--week", "3", "--secret-file", "secret"],
            app.BAD_REQUEST,
            "for Gradescope alone",
        ),
    ],
)
def test_options_that_do_not_fit_a_system_are_refused(tmp_path, capsys, options, code, says):
    assert app.run(["release", str(tmp_path / "x"), *options]) == code
    assert says in capsys.readouterr().err and not (tmp_path / "x").exists()
