"""The learner's files: what is written, what is left, and what reset keeps."""

from __future__ import annotations

import errno
import json
import os
from datetime import datetime

import pytest

from course_lib import catalog
from course_lib.authoring import exercises as authoring
from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.catalog import texts
from course_lib.learner import workspace

EX = catalog.get("07a")
NOW = datetime(2025, 3, 1, 12, 0, 0)


@pytest.fixture(autouse=True)
def folder(own_exercises):
    return own_exercises


@pytest.fixture
def solutions(tmp_path, monkeypatch):
    """A solutions folder that a test may change."""
    copy = tmp_path / "solutions"
    copy.mkdir()
    for file in paths.SOLUTIONS.glob("ex*.py"):
        (copy / file.name).write_bytes(file.read_bytes())
    monkeypatch.setattr(paths, "SOLUTIONS", copy)
    return copy


def said_of(said: list[str], name: str) -> str:
    (line,) = [line for line in said if line.startswith(name)]
    return line


# ---- exercises ------------------------------------------------------------------------------


def test_the_first_time_every_file_and_the_manifest_are_written(folder):
    said = authoring.write(folder)
    texts = authoring.generate()
    assert {f.name for f in folder.iterdir()} == texts.keys() | {workspace.MANIFEST}
    assert all((folder / name).read_text() == text for name, text in texts.items())
    assert len(said) == len(texts) and all(line.endswith(": written") for line in said)
    assert workspace.read_manifest(folder).keys() == texts.keys()


def test_a_second_time_changes_nothing(folder):
    authoring.write(folder)
    before = {file: (file.read_bytes(), file.stat().st_mtime_ns) for file in folder.glob("*.py")}
    assert all(line.endswith("up to date") for line in authoring.write(folder))
    assert before == {
        file: (file.read_bytes(), file.stat().st_mtime_ns) for file in folder.glob("*.py")
    }


@pytest.mark.parametrize(
    "work", [b"", b"\xff\xfe not utf-8", b"def broken(:", b"half = 1  # mine\r\n"]
)
def test_a_file_with_work_in_it_is_left_alone(folder, work):
    authoring.write(folder)
    file = texts.find_file(EX)
    file.write_bytes(work)
    line = said_of(authoring.write(folder), file.name)
    assert file.read_bytes() == work and "kept" in line and f"course reset {EX.id}" in line


def test_a_deleted_file_comes_back(folder):
    authoring.write(folder)
    texts.find_file(EX).unlink()
    assert said_of(authoring.write(folder), EX.file).endswith(": written")
    assert texts.find_file(EX).read_text() == texts.make_unsolved_text(EX)


def test_an_authors_change_reaches_untouched_files_and_no_others(folder, solutions):
    authoring.write(folder)
    touched = texts.find_file(catalog.get("02b"))
    touched.write_text("mine\n")
    for file in solutions.glob("ex*.py"):
        file.write_text(file.read_text().replace("#: ", "#: Look twice. "))
    said = authoring.write(folder)
    assert "Look twice" in texts.find_file(EX).read_text() and said_of(said, EX.file).endswith(
        "written anew"
    )
    assert touched.read_text() == "mine\n" and "kept" in said_of(said, touched.name)
    # and the touched file stays a learner's at the next change too
    assert "kept" in said_of(authoring.write(folder), touched.name)


def test_a_crash_before_the_manifest_leaves_every_file_recognised(folder, solutions, monkeypatch):
    authoring.write(folder)
    for file in solutions.glob("ex*.py"):
        file.write_text(file.read_text().replace("#: ", "#: Look twice. "))
    written = []

    def dies_at_the_third(path, text):
        if len(written) == 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        written.append(path)
        path.write_text(text)

    with monkeypatch.context() as patch:
        patch.setattr(authoring, "write_atomic", dies_at_the_third)
        with pytest.raises(OSError, match="No space"):
            authoring.write(folder)
    assert not any("kept" in line for line in authoring.write(folder))
    assert all((folder / name).read_text() == text for name, text in authoring.generate().items())


@pytest.mark.parametrize("broken", [b"{", b"[]", b"\xff", b"null"])
def test_a_broken_manifest_is_said_and_no_file_is_touched(folder, broken):
    authoring.write(folder)
    (folder / workspace.MANIFEST).write_bytes(broken)
    texts.find_file(EX).write_text("mine")
    with pytest.raises(CourseError, match="git checkout"):
        authoring.write(folder)
    assert (
        texts.find_file(EX).read_text() == "mine"
        and (folder / workspace.MANIFEST).read_bytes() == broken
    )


def test_the_command_says_errors_in_one_line(folder, capsys):
    folder.mkdir()
    texts.find_file(EX).mkdir()  # a folder where the file belongs
    assert authoring.main() == 1
    error = capsys.readouterr().err
    assert error.startswith("course: ") and EX.file in error and "Traceback" not in error


# ---- reset ---------------------------------------------------------------------------------------


def test_reset_keeps_a_dated_copy_and_puts_the_text_back(folder, tmp_path):
    authoring.write(folder)
    texts.find_file(EX).write_bytes(b"my work \xff")
    copy = workspace.reset(EX, NOW)
    assert (
        copy == tmp_path / "state" / "kept" / f"{EX.file}-2025-03-01-120000.py"
        and copy.read_bytes() == b"my work \xff"
    )
    assert paths.shown(copy) == f".course/kept/{EX.file}-2025-03-01-120000.py"
    assert texts.find_file(EX).read_text() == texts.make_unsolved_text(EX)


def test_two_resets_in_one_second_keep_both_versions():
    copies = []
    for work in ("one", "two"):
        texts.find_file(EX).parent.mkdir(exist_ok=True)
        texts.find_file(EX).write_text(work)
        copies.append(workspace.reset(EX, NOW))
    assert [copy.read_text() for copy in copies] == ["one", "two"]


def test_reset_of_an_untouched_file_keeps_no_copy(folder, tmp_path):
    authoring.write(folder)
    assert workspace.reset(EX) is None and not (tmp_path / "state" / "kept").exists()


def test_reset_of_a_missing_file_writes_it():
    assert workspace.reset(EX) is None
    assert texts.find_file(EX).read_text() == texts.make_unsolved_text(EX)


def test_reset_of_a_dangling_link_leaves_a_file(folder):
    folder.mkdir()
    texts.find_file(EX).symlink_to(folder / "nowhere.py")
    assert workspace.reset(EX) is None
    assert not texts.find_file(EX).is_symlink() and texts.find_file(
        EX
    ).read_text() == texts.make_unsolved_text(EX)


def test_reset_without_a_solution_changes_nothing(folder, solutions):
    authoring.write(folder)
    texts.find_file(EX).write_text("mine")
    (solutions / f"{EX.file}.py").unlink()
    with pytest.raises(FileNotFoundError):
        workspace.reset(EX)
    assert texts.find_file(EX).read_text() == "mine"


@pytest.mark.parametrize("nth", [1, 2])
def test_reset_on_a_full_disk_leaves_the_file_as_it_was(folder, monkeypatch, nth):
    authoring.write(folder)
    texts.find_file(EX).write_text("mine")
    real, calls = os.replace, []

    def replace(*arguments):
        calls.append(arguments)
        if len(calls) == nth:  # the copy's, then the file's own
            raise OSError(errno.ENOSPC, "No space left on device")
        real(*arguments)

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(OSError, match="No space"):
        workspace.reset(EX)
    assert texts.find_file(EX).read_text() == "mine"


# ---- paths ---------------------------------------------------------------------------------------


def test_paths_are_shown_as_from_the_checkout(tmp_path):
    assert paths.shown(texts.find_file(EX)) == f"exercises/{EX.file}.py"
    assert paths.shown(paths.state() / "progress.json") == ".course/progress.json"
    assert paths.shown(paths.SOLUTIONS / "a.py") == "solutions/a.py"
    assert paths.shown(tmp_path / "elsewhere.py") == str(tmp_path / "elsewhere.py")


def test_the_manifest_remembers_what_was_generated(folder):
    authoring.write(folder)
    manifest = json.loads((folder / workspace.MANIFEST).read_text())
    old = texts.find_file(EX)
    assert workspace.is_untouched(old, "a newer text", manifest)
    old.write_text(old.read_text() + "\n")
    assert not workspace.is_untouched(old, "a newer text", manifest)


@pytest.mark.parametrize("target", ["/dev/zero", "/proc/kmsg", "nowhere", "mine.py"])
def test_a_reset_replaces_a_link_and_leaves_what_it_led_to(tmp_path, target):
    mine = paths.exercises() / "mine.py"
    mine.parent.mkdir(parents=True, exist_ok=True)
    mine.write_text("work")
    path = texts.find_file(EX)
    path.unlink(missing_ok=True)
    path.symlink_to(target)
    assert workspace.reset(EX) is None
    assert (
        not path.is_symlink()
        and path.read_text() == texts.make_unsolved_text(EX)
        and mine.read_text() == "work"
    )
