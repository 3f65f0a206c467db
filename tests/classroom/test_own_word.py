"""The teacher's own word: marks.csv counts before the grader, both stand side by side, and a slip
in it stops everything."""

from __future__ import annotations

import re

import pytest
from fake_grading import answer, grade, write_file
from test_weeks import RIGHT, WRONG, read_table

from course_lib.base.errors import CourseError
from course_lib.grading.verdict import FAIL


@pytest.fixture
def folder(tmp_path):
    for name, text in (("ann", WRONG), ("bob", RIGHT), ("=cy", RIGHT)):
        write_file(tmp_path / "class" / name, "01a", text)
        write_file(tmp_path / "class" / name, "04a", text)
    (tmp_path / "out").mkdir()
    return tmp_path / "class"


def say(folder, text):
    (folder.parent / "out" / "marks.csv").write_text(text, encoding="utf-8-sig")


def read_page(out, name):
    (page,) = (out / "reports").glob(f"{name}-*")
    return re.sub(r"<style>.*?</style>|<[^>]+>", " ", page.read_text(), flags=re.DOTALL)


def test_points_comments_and_excuses_stand_beside_what_the_grader_gives(folder):
    out = folder.parent / "out"
    say(
        folder,
        "learner,exercise,points,comment\nann,1a,0.5,a good idea"
        " <b>\nbob,04a,Excused,ill\n'=cy,01a,,well said\n=cy,04a,0,\n",
    )
    grade(folder, out, only=("01a", "04a"))
    rows = read_table(out / "gradebook.csv")
    ann, bob, cy = rows["ann"], rows["bob"], rows["'=cy"]
    assert (ann["01a (of 1)"], ann["01a status"], ann["Points (of 3)"], ann["Counted of"]) == (
        "0.5",
        FAIL,
        "0.5",
        "3",
    )
    assert ann["By hand"] == "01a: 0.5 counts (marks.csv), not 0 by the grader: a good idea <b>"
    assert (bob["04a (of 2)"], bob["04a status"], bob["Points (of 3)"], bob["Counted of"]) == (
        "",
        "pass",
        "1",
        "1",
    )
    assert bob["By hand"] == "04a: excused counts (marks.csv), not 2 by the grader: ill"
    assert (cy["01a (of 1)"], cy["04a (of 2)"]) == ("1", "0")
    assert cy["By hand"] == "01a: well said; 04a: 0 counts (marks.csv), not 2 by the grader"
    assert [row.split(",")[-1] for row in (out / "canvas.csv").read_text().splitlines()[2:]] == [
        "0",
        "0",
        "",
    ]
    page = read_page(out, "ann")
    assert (
        "0.5 of 3 points" in page
        and "Your teacher: 0.5 counts (marks.csv), not 0 by the grader: a good idea &lt;b&gt;"
        in page
    )
    page = read_page(out, "bob")
    assert "1 of 1 points" in page and "excused" in page


def test_a_word_that_changes_is_on_the_trail_and_one_that_goes_gives_the_grader_back(folder):
    out = folder.parent / "out"
    grade(folder, out, only=("01a",))
    say(folder, "learner,exercise,points\nann,01a,0.5\n")
    assert grade(folder, out, only=("01a",)).regraded == 1
    assert grade(folder, out, only=("01a",)).regraded == 0
    (out / "marks.csv").unlink()
    grade(folder, out, only=("01a",))
    lines = [line.split(",", 1)[1] for line in (out / "regrades.csv").read_text().splitlines()[1:]]
    assert lines == ["ann,01a,0,0.5,marks.csv changed", "ann,01a,0.5,0,marks.csv changed"]


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (
            "dan,01a,1,",
            "marks.csv, line 3: 'dan', whom the class does not have. It has: '=cy, =cy, ann, bob.",
        ),
        ("ann,99z,1,", "marks.csv, line 3: there is no exercise '99z'"),
        (
            'ann,01a,"1,5",',
            "marks.csv, line 3: points '1,5' are no number from 0 up, and not 'excused'",
        ),
        ("ann,01a,-1,", "points '-1' are no number"),
        ("ann,01a,nan,", "points 'nan' are no number"),
        ("ann,01a,,", "points '' are no number"),
        ("ann,01a,1,\nann,1a,2,", "line 4: ann and 01a stand in line 3 already"),
        ("ann,01a,1", "line 3, has 3 columns, and the first line 4"),
    ],
)
def test_a_slip_is_said_with_its_line_before_anything_is_graded(folder, lines, says):
    say(folder, f"learner,exercise,points,comment\nbob,01a,1,\n{lines}\n")
    checked = []
    with pytest.raises(CourseError, match=re.escape(says)):
        grade(folder, folder.parent / "out", only=("01a",), check=checked.append)
    assert not checked and not (folder.parent / "out" / "gradebook.csv").exists()


def test_partial_points_are_the_part_of_the_cases_that_is_right_rounded_down(folder):
    def check(request):
        found = answer(request, FAIL, "divisor")
        found.verdict["cases"] = [{"status": "pass"}] * 2 + [{"status": "fail"}]
        return found

    out = folder.parent / "out"
    grade(folder, out, only=("01a", "04a"), check=check, partial=True)
    row = read_table(out / "gradebook.csv")["ann"]
    assert (row["01a (of 1)"], row["04a (of 2)"], row["Points (of 3)"], row["Passed"]) == (
        "0.66",
        "1.33",
        "1.99",
        "0",
    )
    grade(folder, out, only=("01a",), partial=False, change_rules=True)
    assert read_table(out / "gradebook.csv")["ann"]["Points (of 3)"] == "0"
