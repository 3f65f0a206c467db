"""``course grade``: its options, its exit codes, and what it says. What it does with a class is tested in tests/classroom."""

from __future__ import annotations

import re
import zipfile
from datetime import datetime, timedelta, timezone

import pytest

from course_lib.base.errors import CourseError
from course_lib.classroom.grade_class import Graded
from course_lib.cli import app
from course_lib.cli import grade as grading


@pytest.fixture
def folder(tmp_path):
    """A class in which nobody handed in anything, so that nothing has to be checked."""
    for name in ("ann", "=bob"):
        (tmp_path / "class" / name).mkdir(parents=True)
    with zipfile.ZipFile(tmp_path / "class" / "cy.zip", "w") as archive:
        archive.writestr("README", "x")
    return tmp_path / "class"


def test_a_class_without_a_file_has_a_gradebook_and_a_reason_for_each(folder, tmp_path, capsys):
    out = tmp_path / "out"
    command = [
        "grade",
        str(folder),
        "-o",
        str(out),
        "--only",
        "4a,01a",
        "--require-tier",
        "limits",
        "--weights",
        "minutes",
    ]
    assert app.run(command) == 0
    said = capsys.readouterr().out
    assert "3 learners: 0 files checked" in said and "Nothing could be read of (3):" in said
    assert "  =bob: there is no exercise file (ex07a_NAME.py) in it" in said and "or better" in said
    lines = (out / "gradebook.csv").read_text().splitlines()
    assert re.search(r",Points \(of \d+\),Passed,01a \(of \d+\),01a status,04a \(of \d+\),04a status,", lines[0])
    assert [line.split(",")[0] for line in lines[1:]] == ["'=bob", "ann", "cy"]
    assert app.run(["grade", str(folder), "-o", str(out), "--no-resume"]) == app.BAD_REQUEST
    assert "is there already" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("counts", "says"),
    [
        ((1, 1, 1, 1), ["1 learner: 1 file checked, 1 verdict kept", "1 line of the journal was torn; what it said"]),
        (
            (2, 0, 3, 2),
            ["2 learners: 0 files checked, 3 verdicts kept", "2 lines of the journal were torn; what they said"],
        ),
    ],
)
def test_what_came_out_is_counted_in_words_that_agree(tmp_path, capsys, counts, says):
    learners, checked, kept, torn = counts
    grading._say_what_came_out(Graded(tmp_path, learners, checked, kept, torn, problems=(), faults=(), tier="Landlock"))
    said = capsys.readouterr().out
    assert all(words in said for words in says), said


@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        (["--late", "soon"], app.BAD_REQUEST, "--late 'soon' is no date. Write 2026-12-01"),
        (["--only", "99z"], app.BAD_REQUEST, "there is no exercise '99z'"),
        (["--only", "01a", "--recheck", "04a"], app.BAD_REQUEST, "--recheck names 04a, which --only leaves out"),
        (["--resume"], app.BAD_REQUEST, "to go on with"),
        (["--map", "nowhere.csv"], app.BAD_REQUEST, "the mapping"),
        (["--weights", "heavy"], app.USAGE_ERROR, "heavy"),
        (["--workers", "0"], app.USAGE_ERROR, "'--workers'"),
        (["--secret-file", "/nowhere"], app.BAD_REQUEST, "the secret cannot be read"),
    ],
)
def test_wrong_use_is_said_and_leaves_no_gradebook(folder, tmp_path, capsys, options, code, says):
    assert app.run(["grade", str(folder), "-o", str(tmp_path / "out"), *options]) == code
    assert says in capsys.readouterr().err and not (tmp_path / "out" / "gradebook.csv").exists()


def test_a_date_ends_with_its_day_and_a_time_has_a_zone():
    day, moment = grading.read_moment("2026-12-01"), grading.read_moment("2026-12-01T18:00+02:00")
    assert day is not None and (day.day, day.hour, day.minute) == (1, 23, 59) and day.tzinfo is not None
    assert (
        moment == datetime(2026, 12, 1, 18, tzinfo=timezone(timedelta(hours=2))) and grading.read_moment(None) is None
    )
    with pytest.raises(CourseError):
        grading.read_moment("01.12.2026")


def test_what_is_stopped_says_that_it_goes_on(folder, tmp_path, capsys, monkeypatch):
    def stop(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(grading, "grade_class", stop)
    assert app.run(["grade", str(folder), "-o", str(tmp_path / "out")]) == app.INTERRUPTED
    assert "every verdict so far is kept" in capsys.readouterr().err
