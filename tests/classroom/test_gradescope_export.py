"""Gradescope's export: names, numbers, times and groups come from its list of submissions."""

from __future__ import annotations

import csv
import io
import zipfile
from datetime import UTC, datetime

import pytest
from fake_grading import grade, write_file

from course_lib import catalog
from course_lib.base.errors import CourseError
from course_lib.classroom.discovery import discover, list_strays
from course_lib.classroom.lateness import LateRule

RIGHT, WRONG = "# 3", "# 1"  # as the stand-in judges them, by the bytes alone
METADATA = """\
---
submission_1001:
  :submitters:
  - :name: Jane Doe
    :sid: '30012345'
    :email: jane@example.edu
  :created_at: 2026-10-19 20:00:00.123456789 Z
  :score: 2.0
  :status: processed
  :results:
    tests: []
  :history:
  - :id: 990
    :created_at: 2026-10-18 20:00:00.000000000 Z
submission_1002:
  :submitters:
  - :name: Bo Brown
    :sid: '30012346'
    :email: bo@example.edu
  - :name: 李 伟
    :sid:
    :email: wei@example.edu
  :created_at: 2026-10-21 03:00:00 -0700
submission_1003:
  :submitters:
  - :name: Cy Clark
    :sid: '30012347'
    :email: cy@example.edu
  :created_at: 2026-10-19 10:00:00.000000000 Z
"""


@pytest.fixture
def export(tmp_path):
    folder = tmp_path / "assignment_77_export"
    write_file(folder / "submission_1001", "01a", RIGHT)
    write_file(folder / "submission_1002" / "exercises", "01a", RIGHT)
    (folder / "submission_metadata.yml").write_text(METADATA, encoding="utf-8")
    return folder


def read_rows(out):
    text = (out / "gradebook.csv").read_bytes().decode()
    return {row["Student"]: row for row in csv.DictReader(io.StringIO(text, newline=""))}


def test_names_numbers_addresses_times_and_groups_are_read(export):
    found = {submissions.learner.learner: submissions.learner for submissions in discover(export)}
    assert {name: (one.key, one.id, one.address) for name, one in found.items()} == {
        "Jane Doe": ("gradescope 30012345", "30012345", "jane@example.edu"),
        "Bo Brown": ("gradescope 30012346", "30012346", "bo@example.edu"),
        "李 伟": ("gradescope wei@example.edu", "", "wei@example.edu"),
        "Cy Clark": ("gradescope 30012347", "30012347", "cy@example.edu"),
    }
    assert found["Jane Doe"].submitted == pytest.approx(
        datetime(2026, 10, 19, 20, 0, 0, 123456, tzinfo=UTC).timestamp()
    )
    assert found["Bo Brown"].submitted == datetime(2026, 10, 21, 10, tzinfo=UTC).timestamp(), (
        "a time zone counts"
    )
    assert found["Bo Brown"].notes == ("handed in together with 李 伟",)
    assert not found["Jane Doe"].notes and "cannot be read" in found["Cy Clark"].problem
    assert list_strays(export) == []


def test_a_class_from_gradescope_has_marks_by_its_times_and_one_row_over_the_weeks(
    export, tmp_path
):
    out = tmp_path / "out"
    due = {"01a": datetime(2026, 10, 20, 12, tzinfo=UTC)}
    grade(export, out, only=("01a",), due=due, late=LateRule(percent=50))
    rows = read_rows(out)
    assert {name: (row["ID"], row["Login"], row["01a (of 1)"]) for name, row in rows.items()} == {
        "Jane Doe": ("30012345", "jane@example.edu", "1"),
        "Bo Brown": ("30012346", "bo@example.edu", "0.5"),
        "李 伟": ("", "wei@example.edu", "0.5"),
        "Cy Clark": ("30012347", "cy@example.edu", "0"),
    }
    assert "1 day late by Gradescope's time (2026-10-21 10:00 UTC)" in rows["Bo Brown"]["Late"]
    following = tmp_path / "week 2"
    write_file(following / "submission_2001", "04a", WRONG)
    text = METADATA.split("submission_1002")[0].replace("1001", "2001")
    (following / "submission_metadata.yml").write_text(text, encoding="utf-8")
    graded = grade(following, out, only=("04a",), due={}, late=LateRule(percent=50))
    assert not graded.new and set(graded.absent) == {"Bo Brown", "Cy Clark", "李 伟"}
    assert len(read_rows(out)) == 4


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: [", "it is no YAML"),
        ("- 1", "it has no submissions"),
        ("../../etc:\n  :submitters: []", "is no folder submission_NUMBER"),
        ("submission_1: {}", "submission_1 has no submitters"),
        ("submission_1:\n  :submitters:\n  - :sid:", "a submitter of submission_1 has no name"),
        (
            "submission_1:\n  :submitters:\n  - :name: A\n  :created_at: soon",
            "submission_1: created_at 'soon' is no date",
        ),
        ("!!python/object/apply:os.system ['true']", "it is no YAML"),
    ],
)
def test_a_list_that_cannot_be_used_is_said(export, text, says):
    (export / "submission_metadata.yml").write_text(text)
    with pytest.raises(CourseError) as raised:
        discover(export)
    assert says in str(raised.value) and "submission_metadata.yml" in str(raised.value)


def test_a_folder_that_holds_only_the_export_is_not_taken_for_one_learner(export):
    with pytest.raises(CourseError, match="submissions of 2 learners"):
        discover(export.parent)


def read_feedback(out):
    with zipfile.ZipFile(out / "feedback.zip") as packed:
        pages = {name: packed.read(name) for name in packed.namelist()}
    text = (out / "feedback.csv").read_bytes().decode()
    return pages, {row["Student"]: row for row in csv.DictReader(io.StringIO(text, newline=""))}


def test_pages_can_be_sent_by_address(export, tmp_path):
    out = tmp_path / "out"
    grade(export, out, only=("01a",))
    pages, table = read_feedback(out)
    assert len(pages) == len(table) == 4
    assert table["李 伟"]["Address"] == "wei@example.edu"
    for row in table.values():
        assert pages[row["In feedback.zip"]] == (out / row["Page"]).read_bytes()
    packed = (out / "feedback.zip").read_bytes()
    grade(export, out, only=("01a",))
    assert (out / "feedback.zip").read_bytes() == packed


def test_the_zip_has_the_names_that_moodle_and_canvas_take_back(tmp_path):
    """Moodle reads NAME_NUMBER_assignsubmission_file_FILE, Canvas the first two numbers."""
    file = f"{catalog.get('01a').file}.py"
    folder, out = tmp_path / "class", tmp_path / "out"
    write_file(folder / "Jane_Ann Doe_12345_assignsubmission_file", "01a", RIGHT)
    write_file(folder / "Default group_assignsubmission_file", "01a", RIGHT)
    (folder / f"liwei_LATE_444_67890_{file}").write_text(WRONG)
    (folder / "bobrown_555_text.html").write_text("typed in")
    grade(folder, out, only=("01a",))
    pages, table = read_feedback(out)
    moodle = table["Jane_Ann Doe"]["In feedback.zip"]
    assert moodle.split("_", 4)[:4] == ["Jane Ann Doe", "12345", "assignsubmission", "file"]
    canvas = table["liwei"]["In feedback.zip"]
    assert [part for part in canvas.split("_") if part.isdecimal()][:2] == ["444", "67890"]
    assert table["bobrown"]["In feedback.zip"].startswith("bobrown-"), "no file to attach it to"
    assert len(pages) == 4 and all("/" not in name for name in pages)
    later = tmp_path / "later"
    write_file(later / "Jane_Ann Doe_999_assignsubmission_file", "04a", RIGHT)
    grade(later, out, only=("04a",))
    pages, table = read_feedback(out)
    assert list(pages) == [table["Jane_Ann Doe"]["In feedback.zip"]], "of this run alone"
    assert next(iter(pages)).startswith("Jane Ann Doe_999_assignsubmission_file_")
    assert table["liwei"]["In feedback.zip"] == "" and table["liwei"]["Page"]


def test_a_mapping_may_have_addresses(tmp_path):
    write_file(tmp_path / "class" / "x", "01a", RIGHT)
    (tmp_path / "map.csv").write_text("learner,path,email\nAnn Lee,x,ann@example.edu\n")
    out = tmp_path / "out"
    grade(tmp_path / "class", out, only=("01a",), mapping=tmp_path / "map.csv")
    assert read_feedback(out)[1]["Ann Lee"]["Address"] == "ann@example.edu"
