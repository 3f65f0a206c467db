"""`make quick`: which tests a change asks for, and how many cases of each."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import pytest

from course_lib.authoring import quick
from course_lib.base import paths
from course_lib.base.errors import CourseError


@pytest.mark.parametrize(
    ("changed", "asked"),
    [
        (["course_lib/classroom/reports.py"], {"tests/classroom"}),
        (
            ["course_lib/__init__.py", "tests/gone.py", "course_lib/norms/torch_norms.py"],
            {"tests/norms"},
        ),
        (
            ["tests/test_types.py", "tests/hunt/test_hunt_session.py"],
            {"tests/test_types.py", "tests/hunt"},
        ),
        (["solutions/ex07a_layer_norm_forward.py"], {"tests/grading"}),
        (
            ["course_lib/exercises/ex07a_layer_norm_forward/wrong.toml"],
            {"tests/catalog", "tests/grading"},
        ),
        (["notebooks/source/03_large_means.py"], {"tests/authoring", "tests/lessons"}),
        (["README.md"], set()),
    ],
)
def test_a_change_asks_for_the_tests_of_its_room(changed, asked):
    assert set(quick.choose_tests(changed)) == asked | set(quick._ALWAYS)


def test_no_change_asks_for_nothing():
    assert quick.choose_tests([]) == []


@pytest.mark.parametrize(
    "room",
    sorted(
        folder.name
        for folder in paths.PACKAGE.iterdir()
        # what is true of an exercise is tested as its grading and its catalog
        if (folder / "__init__.py").exists() and folder.name != "exercises"
    ),
)
def test_each_room_has_tests_of_its_own(room):
    assert f"tests/{room}" in quick.choose_tests([f"course_lib/{room}/made_up.py"])


def test_an_unknown_commit_is_named():
    if not (paths.ROOT / ".git").exists():
        pytest.skip("this folder is not a git checkout")
    with pytest.raises(CourseError, match=r"no-such-commit.*SINCE"):
        quick.list_changed("no-such-commit")


def test_of_each_takes_few_cases_of_a_dear_test_and_all_of_another(tmp_path):
    # conftest.py and what it imports; the tests begin with t
    for module in (paths.ROOT / "tests").glob("[!t]*.py"):
        shutil.copy(module, tmp_path)
    file = tmp_path / "test_many.py"
    many = "@pytest.mark.parametrize('n', range(10))"
    file.write_text(
        f"import pytest\n{many}\ndef test_dear(n): print(f'<{{n}}>')\n{many}\ndef test_cheap(n):"
        " pass\n"
    )
    tmp_path.joinpath("cost.json").write_text(
        json.dumps({"functions": {"test_many.py::test_dear": [10, 5.0]}})
    )
    command = (
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-s",
        "-p",
        "no:cacheprovider",
        f"--rootdir={tmp_path}",
        "--of-each=3",
        str(file),
    )
    run = subprocess.run(command, text=True, capture_output=True, cwd=tmp_path)
    assert [n for n in range(10) if f"<{n}>" in run.stdout] == [0, 4, 9], run.stdout + run.stderr
    assert "13 passed" in run.stdout
