"""What is late, by whose clock, and what it costs: worked out by hand beside the code."""

from __future__ import annotations

import itertools
import os
import subprocess
from datetime import UTC, datetime, timedelta

import pytest
from fake_grading import grade, write_file
from hypothesis import given
from hypothesis import strategies as st
from test_submissions import make_zip
from test_weeks import RIGHT, read_table

from course_lib import catalog
from course_lib.base.errors import CourseError
from course_lib.classroom.lateness import LateRule, read_late_rule, spend_free_days

DUE = datetime(2026, 11, 20, 23, 59, tzinfo=UTC)
DAY = 86_400.0
NAMES = {name: catalog.get(name).file for name in ("01a", "04a", "07a")}


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("10 % per day", LateRule(10.0)),
        ("10% a day", LateRule(10.0)),
        ("12.5 % per day, 3 free days", LateRule(12.5, 3)),
        ("at most 2 days", LateRule(0.0, 0, 2)),
        ("15 minutes of grace, 20 % per day, at most 1 day", LateRule(20.0, 0, 1, 15)),
        ("1 free day, 100 % per day, at most 4 days, 5 minutes grace", LateRule(100.0, 1, 4, 5)),
    ],
)
def test_a_rule_is_read_and_says_itself_so_that_it_is_read_again(text, rule):
    assert read_late_rule(text) == rule == read_late_rule(rule.describe())


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("10 percent", "no rule: not '10 percent'. Write parts"),
        ("10 % per day, whatever", "no rule: not 'whatever'. Write parts"),
        ("101 % per day", "a day costs 100 % at most"),
        ("10 % per day, 20 % per day", "says '20 % per day' and another such number"),
        ("3 free days", "without a price no day needs to be free"),
        ("", "no rule: not ''. Write parts"),
    ],
)
def test_what_is_no_rule_is_refused_with_the_grammar(text, says):
    with pytest.raises(CourseError) as refusal:
        read_late_rule(text)
    assert says in str(refusal.value)


@pytest.mark.parametrize(
    ("seconds", "days"), [(-1, 0), (0, 0), (900, 0), (901, 1), (DAY, 1), (DAY + 1, 2), (8 * DAY, 8)]
)
def test_a_day_that_has_begun_counts_behind_the_minutes_of_grace(seconds, days):
    assert LateRule(10.0, grace_minutes=15).count_days(1e9 + seconds, 1e9) == days


def test_after_the_last_day_nothing_counts():
    rule = LateRule(10.0, last_day=2)
    assert [float(rule.deduct(4, 5, days)) for days in range(4)] == [4, 3.5, 3, 0]


@given(
    days=st.lists(st.integers(0, 5), min_size=1, max_size=4),
    points=st.lists(st.integers(0, 5), min_size=4, max_size=4),
    free_days=st.integers(0, 4),
    last_day=st.none() | st.integers(0, 3),
)
def test_free_days_are_spent_as_trying_all_ways_would(days, points, free_days, last_day):
    rule = LateRule(30.0, free_days, last_day)
    names = [str(number) for number in range(len(days))]

    def find_points(name, free):
        number = int(name)
        return float(rule.deduct(points[number], 5, max(days[number] - free, 0)))

    spent = spend_free_days(free_days, [[name] for name in names], find_points)
    assert sum(spent.values()) <= free_days
    ways = itertools.product(range(free_days + 1), repeat=len(days))
    totals = {way: sum(map(find_points, names, way)) for way in ways if sum(way) <= free_days}
    assert sum(find_points(name, spent[name]) for name in names) == pytest.approx(
        max(totals.values())
    )


def write_mapping(path, rows, due=DUE):
    lines = [
        f"{name},{folder},{(due + timedelta(days=days)).isoformat()}" for name, folder, days in rows
    ]
    path.write_text("\n".join(["learner,path,submitted", *lines]))
    return path


def test_canvas_is_asked_and_not_the_clock_in_a_zip(tmp_path):
    """A zip of somebody on time, packed long after the deadline, and a file that Canvas calls
    late."""
    folder, out = tmp_path / "class", tmp_path / "out"
    folder.mkdir()
    make_zip(folder / "oneillzoe_12349_67895_homework.zip", {f"{NAMES['04a']}.py": RIGHT})
    (folder / f"liwei_LATE_12346_67892_{NAMES['04a']}.py").write_text(RIGHT)
    options = {"only": ("04a",), "due": {"04a": DUE}, "late": LateRule(10.0)}
    graded = grade(folder, out, **options)
    rows = read_table(out / "gradebook.csv")
    assert [(row["04a (of 2)"], row["Late"][:16]) for row in rows.values()] == [
        ("2", "04a: marked late"),
        ("2", ""),
    ]
    assert graded.unsettled == (("liwei", ("04a",)),)
    (out / "marks.csv").write_text("learner,exercise,points,comment,late\nliwei,04a,,,3\n")
    graded = grade(folder, out, **options)
    row = read_table(out / "gradebook.csv")["liwei"]
    assert (row["04a (of 2)"], row["Late"]) == (
        "1.4",
        "04a: 3 days late by marks.csv, 0.6 points off",
    )
    assert graded.unsettled == ()
    assert "liwei,04a,2,1.4,deadline or time of the file changed" in (
        (out / "regrades.csv").read_text()
    )


def test_free_days_go_where_they_serve_the_learner_best(tmp_path):
    """04a is worth 2, 07a is worth 3: the one free day first serves 04a, then the dearer 07a."""
    out, rule = tmp_path / "out", LateRule(50.0, free_days=1)
    expected = {"04a": {"04a (of 2)": "2"}, "07a": {"04a (of 2)": "1", "07a (of 3)": "3"}}
    for name, due in (("04a", DUE), ("07a", DUE + timedelta(days=7))):
        write_file(tmp_path / name / "ann", name, RIGHT)
        mapping = write_mapping(tmp_path / f"{name}.csv", [("Ann", "ann", 0.5)], due)
        grade(tmp_path / name, out, only=(name,), due={name: due}, late=rule, mapping=mapping)
        row = read_table(out / "gradebook.csv")["Ann"]
        assert expected[name].items() <= row.items()
    assert (
        "07a: 1 day late by the mapping's time (2026-11-28 11:59 UTC), 1 of them free"
        in (row["Late"])
    )
    assert "Ann,04a,2,1,free days spent otherwise" in (out / "regrades.csv").read_text()


def test_a_free_day_serves_all_exercises_of_one_deadline(tmp_path):
    for name in ("01a", "04a"):
        write_file(tmp_path / "class" / "ann", name, RIGHT)
    mapping = write_mapping(tmp_path / "who.csv", [("Ann", "ann", 0.5)])
    grade(
        tmp_path / "class", tmp_path / "out", only=("01a", "04a"), mapping=mapping,
        due=dict.fromkeys(("01a", "04a"), DUE), late=LateRule(50.0, free_days=1),
    )  # fmt: skip
    assert read_table(tmp_path / "out" / "gradebook.csv")["Ann"]["Points (of 3)"] == "3"


def test_an_extension_for_one_learner_is_a_number_of_days_in_marks(tmp_path):
    out = tmp_path / "out"
    for name in ("ann", "bob"):
        write_file(tmp_path / "class" / name, "04a", RIGHT)
    mapping = write_mapping(tmp_path / "who.csv", [("Ann", "ann", 1.5), ("Bob", "bob", 1.5)])
    out.mkdir()
    (out / "marks.csv").write_text("learner,exercise,points,late\nBob,04a,,0\n")
    grade(
        tmp_path / "class", out, only=("04a",), due={"04a": DUE}, late=LateRule(10.0),
        mapping=mapping,
    )  # fmt: skip
    rows = read_table(out / "gradebook.csv")
    assert (rows["Ann"]["04a (of 2)"], rows["Bob"]["04a (of 2)"]) == ("1.6", "2")
    assert rows["Bob"]["Late"] == ""


def test_a_number_of_days_that_is_none_stops_everything(tmp_path):
    write_file(tmp_path / "class" / "ann", "04a", RIGHT)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "marks.csv").write_text("learner,exercise,points,late\nann,04a,,soon\n")
    with pytest.raises(CourseError, match="line 2: late 'soon' is no number of days"):
        grade(tmp_path / "class", tmp_path / "out", only=("04a",))


def test_who_is_absent_has_an_empty_cell_until_the_teacher_says_zero(tmp_path):
    out = tmp_path / "out"
    for name in ("Ann", "Bo Brown", "Cy"):
        write_file(tmp_path / "one" / name, "01a", RIGHT)
    graded = grade(tmp_path / "one", out, only=("01a",))
    assert (graded.new, graded.absent) == ((), ())
    for name in ("Ann", "bo brown", "Dee"):
        write_file(tmp_path / "two" / name, "04a", RIGHT)
    graded = grade(tmp_path / "two", out, only=("04a",))
    assert graded.new == (("bo brown", "Bo Brown"), ("Dee", ""))
    assert graded.absent == ("Bo Brown", "Cy")
    rows = read_table(out / "gradebook.csv")
    assert [rows[name]["04a (of 2)"] for name in ("Ann", "Bo Brown", "Cy", "Dee")] == [
        "2", "", "", "2",
    ]  # fmt: skip
    assert rows["Cy"]["04a status"] == "absent" and rows["Cy"]["Counted of"] == "1"
    assert rows["Dee"]["01a status"] == "absent" and rows["Dee"]["Counted of"] == "2"
    grade(tmp_path / "two", out, only=("04a",), absent_zero=True, change_rules=True)
    rows = read_table(out / "gradebook.csv")
    assert [rows[name]["04a (of 2)"] for name in ("Ann", "Bo Brown", "Cy", "Dee")] == [
        "2", "0", "0", "2",
    ]  # fmt: skip


def test_who_was_there_without_a_file_has_zero(tmp_path):
    write_file(tmp_path / "class" / "ann", "01a", RIGHT)
    grade(tmp_path / "class", tmp_path / "out", only=("01a", "04a"))
    row = read_table(tmp_path / "out" / "gradebook.csv")["ann"]
    assert (row["04a (of 2)"], row["04a status"]) == ("0", "no file")


def test_moodles_two_people_of_one_name_are_refused_with_the_way_out(tmp_path):
    for number in ("111", "116"):
        write_file(tmp_path / "one" / f"Jane Doe_{number}_assignsubmission_file", "01a", RIGHT)
    grade(tmp_path / "one", tmp_path / "out", only=("01a",))
    write_file(tmp_path / "two" / "Jane Doe_211_assignsubmission_file", "04a", RIGHT)
    with pytest.raises(CourseError, match=r"any of 2 learners of before .*--map"):
        grade(tmp_path / "two", tmp_path / "out", only=("04a",))


def test_a_link_that_is_not_followed_has_its_reason_behind_the_colon(tmp_path):
    write_file(tmp_path / "class" / "ann", "01a", RIGHT)
    os.symlink("/etc/passwd", tmp_path / "class" / "ann" / f"{NAMES['04a']}.py")
    grade(
        tmp_path / "class", tmp_path / "out", only=("04a",), due={"04a": DUE}, late=LateRule(10.0)
    )
    late = read_table(tmp_path / "out" / "gradebook.csv")["ann"]["Late"]
    assert late == "04a: whether it is late is not known: the file cannot be read"


def test_results_in_a_repository_stay_out_of_its_commits(tmp_path):
    write_file(tmp_path / "class" / "ann", "01a", RIGHT)
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    grade(tmp_path / "class", tmp_path / "results", only=("01a",))
    status = subprocess.run(
        ["git", "-C", tmp_path, "status", "--porcelain"], check=True, capture_output=True, text=True
    )
    assert "class/" in status.stdout and "results" not in status.stdout
