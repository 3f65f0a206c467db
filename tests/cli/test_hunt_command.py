"""`course hunt` opens a page that plays; what the page plays is tested in
tests/lessons/test_hunt_panel.py."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import nbformat
import pytest

from course_lib.base import paths
from course_lib.cli import app as cli

PAGE = paths.PACKAGE / "hunt" / "hunt.ipynb"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "folder", lambda: tmp_path)
    monkeypatch.setenv("COURSE_STATE", str(tmp_path / ".course"))
    monkeypatch.delenv("JUPYTER_SERVER_ROOT", raising=False)
    return tmp_path


class Started(Exception):
    """Raised in place of becoming JupyterLab."""


@pytest.fixture
def hunt(monkeypatch):
    def become(program, arguments, environment):
        raise Started(*arguments)

    monkeypatch.setattr(os, "execve", become)

    def run(*arguments: str) -> tuple[str, ...]:
        with pytest.raises(Started) as started:
            cli.run(["hunt", *arguments])
        return started.value.args

    return run


def test_it_opens_the_page_in_jupyterlab_and_hands_options_on(hunt, folder):
    arguments = hunt("--no-browser", "--port", "8899")
    assert "jupyterlab" in arguments and "--LabApp.default_url=/lab/tree/hunt.ipynb" in arguments
    assert (
        arguments[-3:] == ("--no-browser", "--port", "8899")
        and (folder / "hunt.ipynb").read_bytes() == PAGE.read_bytes()
    )


def test_jupyterlab_gets_the_learners_settings_and_none_that_the_course_made():
    """A fresh kernel would say that TRITON_INTERPRET is set, a variable that nobody set."""
    code = (
        "import os, json; os.execve = lambda *a: print(json.dumps(a[2])) or os._exit(0); from"
        " course_command import main; main()"
    )
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("TRITON_")
    } | {"COURSE_DEVICE": "cpu"}
    run = subprocess.run(
        (sys.executable, "-u", "-c", code, "lab"),
        env=environment,
        text=True,
        capture_output=True,
        check=False,
        cwd=paths.ROOT,
    )
    started_with = json.loads(run.stdout.splitlines()[-1])
    assert (
        not [name for name in started_with if name.startswith("TRITON_")]
        and started_with["COURSE_DEVICE"] == "cpu"
    )


def test_a_page_that_is_there_stays(hunt, folder):
    (folder / "hunt.ipynb").write_text("with my notes")
    hunt()
    assert (folder / "hunt.ipynb").read_text() == "with my notes"


def test_in_jupyterlabs_own_terminal_it_says_where_the_page_is(folder, monkeypatch, capsys):
    monkeypatch.setenv("JUPYTER_SERVER_ROOT", str(folder))
    assert cli.run(["hunt"]) == 0
    assert (
        "hunt.ipynb is in JupyterLab's list of files" in capsys.readouterr().out
        and (folder / "hunt.ipynb").is_file()
    )


def test_the_page_is_a_notebook_without_output_whose_cells_make_panels(tmp_path):
    from course_lib.lessons.hunt_panel import HuntPanel

    page = nbformat.read(PAGE, as_version=4)
    nbformat.validate(page)
    names: dict[str, object] = {}
    codes = [cell.source for cell in page.cells if cell.cell_type == "code"]
    for code in codes:
        *before, last = code.splitlines()
        exec("\n".join(before), names)
        assert isinstance(eval(last, names), HuntPanel)
    assert len(codes) == 2 and not any(
        cell.outputs for cell in page.cells if cell.cell_type == "code"
    )
