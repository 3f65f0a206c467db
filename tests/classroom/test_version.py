"""The version of the grader, by which a class's verdicts are kept: it changes with all that can
change a verdict."""

from __future__ import annotations

import shutil

import pytest

from course_lib.base import paths
from course_lib.classroom import checking


@pytest.mark.parametrize("name", ["cases.py", "exercise.toml", "wrong.toml"])
def test_it_changes_with_a_file_of_an_exercise(name, tmp_path, monkeypatch):
    folders = shutil.copytree(paths.EXERCISE_FOLDERS, tmp_path / "exercises")
    monkeypatch.setattr(paths, "EXERCISE_FOLDERS", folders)
    find_version = checking.grader_version.__wrapped__
    before = find_version()
    file = folders / "ex07a_layer_norm_forward" / name
    file.write_text(file.read_text(encoding="utf-8") + "\n# a line more\n", encoding="utf-8")
    assert find_version() != before
