"""Work is carried from one course folder to another, and nothing of either is lost."""

from __future__ import annotations

import io
import zipfile

import pytest

from course_lib import catalog
from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.catalog import texts
from course_lib.grading.verdict import FAIL, PASS, Verdict
from course_lib.learner import carrying, progress

FIRST, SECOND = catalog.get("00a"), catalog.get("07a")


@pytest.fixture
def go_to(tmp_path, monkeypatch):
    """Work in the folder of this name."""

    def go(name):
        monkeypatch.setenv("COURSE_EXERCISES", str(tmp_path / name / "exercises"))
        monkeypatch.setenv("COURSE_STATE", str(tmp_path / name / "state"))
        for exercise in catalog.exercises().values():
            path = texts.find_file(exercise)
            path.parent.mkdir(parents=True, exist_ok=True)
            if not path.exists():
                path.write_text(texts.make_unsolved_text(exercise), encoding="utf-8")
        return tmp_path / name

    return go


def note(exercise, status):
    progress.note_verdict(Verdict(exercise.id, status, "none", "in words", mode="cpu"))


def list_files(folder):
    return {
        file.relative_to(folder): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file() and file.suffix != ".lock"
    }


def test_exercises_and_passes_arrive_and_what_was_there_is_kept(go_to, tmp_path):
    go_to("tab")
    texts.find_file(FIRST).write_text("# mine, from the tab\n", encoding="utf-8")
    note(FIRST, PASS)
    note(SECOND, FAIL)
    progress.note_prediction("00-last", "7", surprised=True)
    assert carrying.pack(tmp_path / "work.zip").endswith(
        f"work.zip holds {FIRST.file}.py, your progress."
    )

    machine = go_to("machine")
    texts.find_file(FIRST).write_text("# mine, from the machine\n", encoding="utf-8")
    texts.find_file(SECOND).write_text("# only here\n", encoding="utf-8")
    note(FIRST, FAIL)
    note(SECOND, PASS)
    said = carrying.unpack(tmp_path / "work.zip")
    assert texts.find_file(FIRST).read_text(encoding="utf-8") == "# mine, from the tab\n"
    assert texts.find_file(SECOND).read_text(encoding="utf-8") == "# only here\n"
    (kept,) = (machine / "state" / "kept").iterdir()
    assert kept.read_text(
        encoding="utf-8"
    ) == "# mine, from the machine\n" and kept.name in "".join(said)
    assert progress.record("00a").passed and progress.record("07a").passed
    assert progress.read_predictions()["00-last"].said == "7"
    before = list_files(machine)
    assert carrying.unpack(tmp_path / "work.zip") == [
        "Records of progress that were taken from the zip: 0."
    ]
    assert list_files(machine) == before


def test_a_zip_that_is_there_is_not_overwritten(go_to, tmp_path):
    go_to("tab")
    note(FIRST, PASS)
    (tmp_path / "work.zip").write_text("something else")
    with pytest.raises(CourseError, match="stays as it is"):
        carrying.pack(tmp_path / "work.zip")
    assert (tmp_path / "work.zip").read_text() == "something else"


def test_progress_is_named_only_where_there_is_some(go_to, tmp_path):
    go_to("tab")
    texts.find_file(FIRST).write_text("# mine\n", encoding="utf-8")
    assert carrying.pack(tmp_path / "work.zip").endswith(f"holds {FIRST.file}.py.")


def test_without_work_there_is_no_zip(go_to, tmp_path):
    go_to("tab")
    with pytest.raises(CourseError, match="no work"):
        carrying.pack(tmp_path / "work.zip")
    assert not (tmp_path / "work.zip").exists()


def make_zip(files):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return packed.getvalue()


MINE = f"exercises/{FIRST.file}.py"


@pytest.mark.parametrize(
    "data, words",
    [
        (b"", "zip"),
        (b"no zip", "zip"),
        (make_zip({MINE: b"# x\n"})[:-30], "zip"),
        (make_zip({MINE: b"\0" * (9 << 20)}), "larger"),
        (make_zip({MINE: b"# x\n", ".course/progress.json": b"{"}), "progress"),
        (make_zip({"notes.txt": b"x"}), "no work"),
    ],
    ids=["empty", "text", "cut", "bomb", "progress", "foreign"],
)
def test_what_is_no_work_changes_nothing_and_is_said(data, words, go_to, tmp_path):
    folder = go_to("machine")
    (tmp_path / "work.zip").write_bytes(data)
    before = list_files(folder)
    with pytest.raises(CourseError, match=words):
        carrying.unpack(tmp_path / "work.zip")
    assert list_files(folder) == before


def test_a_file_with_another_name_is_written_nowhere(go_to, tmp_path):
    folder = go_to("machine")
    (tmp_path / "work.zip").write_bytes(
        make_zip(
            {MINE: b"# x\n", "../out.py": b"", "exercises/../../out.py": b"", "/tmp/out.py": b""}
        )
    )
    before = set(list_files(folder.parent))
    said = "".join(carrying.unpack(tmp_path / "work.zip"))
    assert said.count("left out") == 3
    assert set(list_files(folder.parent)) == before
    assert paths.exercises() == folder / "exercises"
