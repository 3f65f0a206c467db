"""``course grade``: its options, its exit codes, and what it says. What it does with a class is
tested in tests/classroom."""

from __future__ import annotations

import re
import sys
import zipfile

import pytest
from english import find_english

from course_lib.base import paths
from course_lib.classroom import grade_class
from course_lib.classroom.grade_class import Graded
from course_lib.cli import app
from course_lib.cli import grade as grading
from course_lib.sandbox import isolation


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
    assert re.search(
        r",Points \(of \d+\),Counted of,Passed,01a \(of \d+\),01a status,04a \(of \d+\),04a"
        r" status,",
        lines[0],
    )
    assert [line.split(",")[0] for line in lines[1:]] == ["'=bob", "ann", "cy"]


def test_what_it_says_is_in_the_chosen_language(folder, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COURSE_LANG", "zh")
    monkeypatch.setattr(grade_class, "choose_tier", lambda asked, best: isolation.LIMITS)
    (folder / "notes.txt").write_text("x")
    command = ["grade", str(folder), "-o", str(tmp_path / "out")]
    for more in ([], ["--week", "3"], ["--only", "01a"], ["--only", "01a", "--show", "ann", "01a"]):
        app.run([*command, *more])
        text = "".join(capsys.readouterr())
        assert re.search("[\u4e00-\u9fff]", text) and find_english(text) == []
    graded = Graded(
        tmp_path, 3, 2, 1, 2, isolation.NAMESPACES, (("bob", "01a", "x"),), (("ann", "x"),),
        ("x",), 1, (("dan", ""), ("cyd", "cy")), ("cy",) * 11, (("ann", ("01a",)),),
        (("ann", "7a.py", "07a"),),
    )  # fmt: skip
    grading._say_what_came_out(graded)
    assert find_english("".join(capsys.readouterr())) == []


@pytest.mark.parametrize(
    ("counts", "says"),
    [
        (
            (1, 1, 1, 1),
            [
                "1 learner: 1 file checked, 1 verdict kept",
                "1 line of the journal was torn; what it said",
            ],
        ),
        (
            (2, 0, 3, 2),
            [
                "2 learners: 0 files checked, 3 verdicts kept",
                "2 lines of the journal were torn; what they said",
            ],
        ),
    ],
)
def test_what_came_out_is_counted_in_words_that_agree(tmp_path, capsys, counts, says):
    learners, checked, kept, torn = counts
    grading._say_what_came_out(
        Graded(tmp_path, learners, checked, kept, torn, "Landlock", (), (), (), 0)
    )
    said = capsys.readouterr().out
    assert all(words in said for words in says), said


@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        (
            ["--only", "01a", "--due", "soon"],
            app.BAD_REQUEST,
            "--due 'soon' is no date. Write 2026-12-01",
        ),
        (
            ["--only", "01a", "--late", "2026-12-01"],
            app.BAD_REQUEST,
            "--late '2026-12-01' is no rule: not '2026-12-01'. Write",
        ),
        (["--only", "01a", "--late", "10 % per day"], app.BAD_REQUEST, "--late needs a deadline"),
        ([], app.BAD_REQUEST, "say which exercises you asked for"),
        (["--week", "1", "--only", "01a"], app.BAD_REQUEST, "One of the three"),
        (["--week", "14"], app.BAD_REQUEST, "has no week 14. Its weeks are: 1, 2, 3"),
        (
            ["--week", "1", "--weeks", "nowhere.toml"],
            app.BAD_REQUEST,
            "nowhere.toml cannot be read",
        ),
        (["--only", "99z"], app.BAD_REQUEST, "there is no exercise '99z'"),
        (
            ["--only", "01a", "--recheck", "04a"],
            app.BAD_REQUEST,
            "--recheck names 04a, which --only leaves out",
        ),
        (["--all", "--map", "nowhere.csv"], app.BAD_REQUEST, "the mapping"),
        (["--all", "--weights", "heavy"], app.USAGE_ERROR, "heavy"),
        (["--all", "--workers", "0"], app.USAGE_ERROR, "'--workers'"),
        (["--all", "--secret-file", "/nowhere"], app.BAD_REQUEST, "the secret cannot be read"),
    ],
)
def test_wrong_use_is_said_and_leaves_no_gradebook(folder, tmp_path, capsys, options, code, says):
    assert app.run(["grade", str(folder), "-o", str(tmp_path / "out"), *options]) == code
    assert says in capsys.readouterr().err and not (tmp_path / "out" / "gradebook.csv").exists()


def test_the_summary_says_who_is_new_absent_or_late_by_an_unknown_time(tmp_path, capsys):
    grading._say_what_came_out(
        Graded(
            tmp_path, 3, 3, 0, 0, "Landlock", (), (), (), 0,
            (("bo brown", "Bo Brown"), ("Dee", "")), ("Bo Brown", "Cy"), (("liwei", ("04a",)),),
        )
    )  # fmt: skip
    said = capsys.readouterr().out
    for words in (
        "New since the runs of before (2):\n  bo brown (is that Bo Brown, who is absent?)\n  Dee\n",
        "Absent, of the runs of before (2): Bo Brown, Cy. Their cells of this run's exercises are",
        "marks.csv says by how many days (1):\n  liwei: 04a\n",
    ):
        assert words in said
    assert "git repository" not in said
    (tmp_path / ".git").mkdir()
    grading._say_what_came_out(Graded(tmp_path, 3, 3, 0, 0, "Landlock", (), (), (), 0))
    assert ".gitignore keeps names, marks and secret out of commits" in capsys.readouterr().out


def test_the_command_of_a_week_as_the_guide_has_it(folder, tmp_path, capsys, monkeypatch):
    """The first command of docs/grading-a-class.md, word for word; `submissions` is the class."""
    guide = (paths.ROOT / "docs" / "grading-a-class.md").read_text(encoding="utf-8")
    command = re.search(r"```(?:sh)?\n(course grade [^\n]+)\n```", guide)
    assert command and command[1] == "course grade submissions -o results --week 3"
    folder.rename(tmp_path / "submissions")
    (tmp_path / "submissions" / "notes.txt").write_text("x")
    monkeypatch.chdir(tmp_path)
    # no file is run, so any machine will do
    monkeypatch.setattr(grade_class, "choose_tier", lambda asked, best: best)
    assert app.run([*command[1].split()[1:]]) == 0
    said = capsys.readouterr().out
    assert (
        "Week 3 asks for 04a, 04b" in said
        and "Nobody's submission, and not looked at: notes.txt" in said
    )
    (tmp_path / "weeks.toml").write_text('[4]\nexercises = ["07a"]\ndue = "2026-12-01T23:59"\n')
    assert app.run("grade submissions -o results --week 3".split()) == app.BAD_REQUEST
    assert "weeks.toml has no week 3. Its weeks are: 4." in capsys.readouterr().err
    assert app.run("grade submissions -o results --week 4".split()) == 0
    heading = (tmp_path / "results" / "gradebook.csv").read_text().splitlines()[0]
    assert re.findall(r"(\d\d[a-z]) status", heading) == ["04a", "04b", "07a"]


def test_the_optional_task_of_a_weeks_lesson_is_graded_and_has_no_deadline(
    folder, tmp_path, monkeypatch
):
    seen = []
    monkeypatch.setattr(
        grading,
        "grade_class",
        lambda folder, out, options, *rest, **also: seen.append(options) or sys.exit(0),
    )
    with pytest.raises(SystemExit):
        app.run(
            [
                "grade",
                str(folder),
                "-o",
                str(tmp_path / "out"),
                "--only",
                "02a",
                "--due",
                "2026-12-01",
            ]
        )
    assert seen[0].only == ("02a", "02c") and set(seen[0].due) == {"02a"}


def test_what_is_stopped_says_that_it_goes_on(folder, tmp_path, capsys, monkeypatch):
    def stop(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(grading, "grade_class", stop)
    assert app.run(["grade", str(folder), "-o", str(tmp_path / "out"), "--all"]) == app.INTERRUPTED
    assert "every verdict so far is kept" in capsys.readouterr().err
