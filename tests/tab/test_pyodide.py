"""A distribution of Pyodide is looked at before anything is built with it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from course_lib.authoring import tab
from course_lib.authoring.pyodide import CORE, LOCK, STANDIN_OF
from course_lib.base import paths
from course_lib.base.errors import CourseError

DEPENDS = {"matplotlib": ["numpy", "pillow"], "pillow": [], "ipython": ["traitlets"]}


def write_distribution(folder: Path, *, without: str = "", version: str = "0.27.7") -> Path:
    """Write a distribution that has all packages of the course but one, in files without
    content."""
    packages = {
        name: {"file_name": f"{name}.whl", "depends": DEPENDS.get(name, [])}
        for name in {*tab.NEEDED, *DEPENDS}
        if name != without
    }
    for name in (*CORE, *(entry["file_name"] for entry in packages.values())):
        (folder / name).touch()
    (folder / LOCK).write_text(json.dumps({"info": {"version": version}, "packages": packages}))
    return folder


def test_a_whole_distribution_is_taken_as_it_is(tmp_path):
    pyodide = tab.find_distribution(write_distribution(tmp_path))
    assert pyodide.missing == [] and pyodide.has_bf16
    assert pyodide.find_needed(["matplotlib"]).keys() == {"matplotlib", "numpy", "pillow"}


@pytest.mark.parametrize("name", STANDIN_OF)
def test_what_a_distribution_lacks_has_a_stand_in(name, tmp_path):
    pyodide = tab.find_distribution(write_distribution(tmp_path, without=name))
    assert pyodide.missing == [name] and not pyodide.has_bf16
    standin = tab.read_standin(name)
    space: dict = {}
    exec(standin.files[f"{standin.imports[0]}.py"], space)
    assert standin.name == name and space["bfloat16"] is space["numpy"].float16


@pytest.mark.parametrize(
    "name", ["sqlite3", "pillow"]
)  # one that the kernel loads, and one that another package needs
def test_a_distribution_that_lacks_another_package_is_refused(name, tmp_path):
    with pytest.raises(
        CourseError,
        match=(
            rf"lacks {name}, and the course has no stand-in.*pyodide-0\.27\.7\.tar\.bz2.*`make"
            r" pyodide`"
        ),
    ):
        tab.find_distribution(write_distribution(tmp_path, without=name))


def test_a_distribution_of_an_unknown_version_is_refused(tmp_path):
    with pytest.raises(
        CourseError,
        match=(
            r"Pyodide 0\.26\.1, and no JupyterLite is known.*JUPYTERLITE in"
            r" course_lib/authoring/pyodide\.py"
        ),
    ):
        tab.find_distribution(write_distribution(tmp_path, version="0.26.1"))


def test_a_distribution_without_one_of_its_files_is_refused(tmp_path):
    (write_distribution(tmp_path) / "pillow.whl").unlink()
    with pytest.raises(CourseError, match=r"lacks pillow\.whl\. Delete the folder"):
        tab.find_distribution(tmp_path)


@pytest.mark.parametrize("module", ["site", "tab"])
def test_a_folder_without_pyodide_ends_the_build_before_it_begins(module, tmp_path):
    arguments = {
        "site": ["--out", tmp_path / "out", "--pyodide", tmp_path],
        "tab": [tmp_path, tmp_path / "out"],
    }[module]
    command = [sys.executable, "-m", f"course_lib.authoring.{module}", *arguments]
    ended = subprocess.run(
        command,
        cwd=paths.ROOT,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"COURSE_LANG": "en"},
    )
    assert ended.returncode == 1 and ended.stdout == "" and "Traceback" not in ended.stderr
    assert f"has no {LOCK}" in ended.stderr and "`make pyodide` fetches one" in ended.stderr
    assert list(tmp_path.iterdir()) == []
