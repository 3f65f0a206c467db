"""Week after week into one folder: what was not asked for counts for nothing, and what was marked
before stays."""

from __future__ import annotations

import csv
import io
import json
import re
import tomllib
from datetime import UTC, datetime

import pytest
from fake_grading import fake_check, grade, read_results, write_file

from course_lib import catalog
from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.catalog import texts
from course_lib.classroom import weeks
from course_lib.classroom.lateness import LateRule
from course_lib.classroom.weeks import SHIPPED, read_moment, read_plan

# as the stand-in judges them, by the bytes alone
RIGHT, RIGHT_TOO, WRONG, WRONG_TOO = "# 3", "# 5", "# 1", "# 10"


def read_table(file, key="Student"):
    rows = list(csv.DictReader(io.StringIO(file.read_bytes().decode(), newline="")))
    return {row[key]: row for row in rows}


def test_the_plan_of_the_instructors_guide_is_the_one_that_the_command_reads():
    guide = (paths.ROOT / "docs" / "instructors.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| ([\d, ]+) \| \d+ \| ([^|]+) \|", guide, re.MULTILINE)
    plan = tomllib.loads(SHIPPED.read_text(encoding="utf-8"))
    weeks_of_guide = [week for week, _, _ in rows]
    where = "the weeks of docs/instructors.md and of course_lib/classroom/weeks.toml differ"
    assert weeks_of_guide == list(plan) == list(read_plan(SHIPPED)), (
        f"{where}: {len(rows)} and {len(plan)} weeks"
    )
    assert rows
    for week, lessons, exercises in rows:
        assert lessons.split(", ") == plan[week]["lessons"], f"{where}: the lessons of week {week}"
        assert exercises.split(", ") == plan[week]["exercises"], (
            f"{where}: the exercises of week {week}"
        )


def test_a_week_that_was_not_asked_for_has_no_column_and_no_points(tmp_path):
    write_file(tmp_path / "class" / "ann", "01a", RIGHT)
    write_file(tmp_path / "class" / "ann", "04a", WRONG)
    out = tmp_path / "out"
    grade(tmp_path / "class", out, only=("01a",))
    assert {
        name for name in read_table(out / "gradebook.csv")["ann"] if re.match(r"\d\d[a-z]", name)
    } == {"01a (of 1)", "01a status"}
    assert "04a" not in "".join(
        (out / name).read_text() for name in ("canvas.csv", "results.jsonl", "class.html")
    )


def test_the_results_grow_and_leave_earlier_columns_as_they_are(tmp_path):
    """Each week has a download of its own, without the files of the weeks before; one learner hands
    in nothing, one is new."""
    out = tmp_path / "out"
    for name in ("ann", "bob"):
        write_file(tmp_path / "one" / name, "01a", RIGHT)
    grade(tmp_path / "one", out, only=("01a",))
    before = read_table(out / "gradebook.csv")
    write_file(tmp_path / "two" / "ann", "04a", RIGHT)
    write_file(tmp_path / "two" / "cy", "04a", WRONG)
    graded = grade(tmp_path / "two", out, only=("04a",))
    after = read_table(out / "gradebook.csv")
    assert graded.regraded == 0 and list(after) == ["ann", "bob", "cy"]
    for name in ("ann", "bob"):
        assert {column: after[name][column] for column in ("01a (of 1)", "01a status")} == {
            column: before[name][column] for column in ("01a (of 1)", "01a status")
        }
    assert after["bob"]["04a status"] == after["cy"]["01a status"] == "absent"
    assert (
        after["ann"]["Points (of 3)"],
        after["bob"]["Points (of 3)"],
        after["cy"]["Points (of 3)"],
    ) == ("3", "1", "0")
    assert [len(line.split(",")) for line in (out / "canvas.csv").read_text().splitlines()] == [
        7
    ] * 5
    assert len(list((out / "reports").iterdir())) == 3
    grade(tmp_path / "one", out, only=("01a",))
    again = read_table(out / "gradebook.csv")
    same = [name for name in after["ann"] if name not in ("Source", "Submitted")]
    assert [[row[name] for name in same] for row in again.values()] == [
        [row[name] for name in same] for row in after.values()
    ]


def test_the_reason_of_a_zero_lives_as_long_as_the_zero(tmp_path):
    """In a later week nothing of the earlier folder is there, and an appeal is about that week."""
    out = tmp_path / "out"
    ann = tmp_path / "one" / "ann"
    ann.mkdir(parents=True)
    (ann / "1a.py").write_text("x")
    write_file(tmp_path / "one" / "bob", "01a", RIGHT)
    (tmp_path / "one" / "bob" / "ex01a_other.py").write_text("y")
    write_file(tmp_path / "one" / "ann", "03a", RIGHT)
    graded = grade(tmp_path / "one", out, only=("01a", "03a"))
    assert graded.misnamed == (("ann", "1a.py", "01a"),)
    for name in ("ann", "bob"):
        write_file(tmp_path / "two" / name, "04a", RIGHT)
    graded = grade(tmp_path / "two", out, only=("04a",))
    assert not graded.misnamed
    why = "1a.py: not read, it is not named as the course names its files (ex07a_NAME.py)"
    rows = read_table(out / "gradebook.csv")
    assert rows["ann"]["Notes"] == f"01a: {why}; by its name it is probably 01a"
    assert re.fullmatch(
        r"01a: 2 files \(ex01a_layer_norm.py, ex01a_other.py\); ex01a_layer_norm.py counts",
        rows["bob"]["Notes"],
    )
    marks = {
        (mark["learner"], mark["exercise"]): mark
        for mark in map(json.loads, (out / "results.jsonl").read_text().splitlines())
    }
    assert marks["ann", "01a"]["reason"].startswith(why)
    assert marks["ann", "03a"]["reason"] == marks["ann", "04a"]["reason"] == ""
    record = json.loads((out / "record.json").read_text())
    (notes,) = (person["notes"] for person in record["people"] if person["learner"] == "ann")
    assert notes["01a"] and not notes["04a"]
    page = next((out / "reports").glob("ann-*.html")).read_text()
    assert page.count(why) == 1 and why in (out / "class.html").read_text()
    write_file(tmp_path / "one again" / "ann", "01a", RIGHT)
    grade(tmp_path / "one again", out, only=("01a", "03a"))
    assert read_table(out / "gradebook.csv")["ann"]["Notes"] == "", "the mark has another reason"
    (line,) = csv.DictReader((out / "regrades.csv").read_text().splitlines())
    assert (line["old"], line["new"], line["why"]) == ("0", "1", "file changed")


def test_a_record_without_notes_by_exercise_is_read(tmp_path):
    out = tmp_path / "out"
    write_file(tmp_path / "one" / "ann", "01a", RIGHT)
    grade(tmp_path / "one", out, only=("01a",))
    record = json.loads((out / "record.json").read_text())
    for person in record["people"]:
        person["notes"] = ["of an older version"]
        del person["reasons"]
    (out / "record.json").write_text(json.dumps(record))
    write_file(tmp_path / "two" / "bob", "01a", RIGHT)
    grade(tmp_path / "two", out, only=("01a",))
    assert read_table(out / "gradebook.csv")["ann"]["Notes"] == "of an older version"


def test_a_wrong_name_that_is_accepted_is_graded(tmp_path):
    (tmp_path / "one" / "ann").mkdir(parents=True)
    (tmp_path / "one" / "ann" / "1a.py").write_text(RIGHT)
    out = tmp_path / "out"
    graded = grade(tmp_path / "one", out, only=("01a",), accept_names=True)
    row = read_table(out / "gradebook.csv")["ann"]
    assert row["01a status"] == "pass" and not graded.misnamed and not graded.problems
    assert row["Notes"] == "1a.py counts as ex01a_layer_norm.py (--accept-names)"


def test_an_optional_task_has_a_column_without_points_for_those_who_handed_it_in(tmp_path):
    task = next(exercise for exercise in catalog.exercises().values() if exercise.optional)
    for name, text in (("ann", RIGHT), ("bob", WRONG), ("cy", texts.make_unsolved_text(task))):
        write_file(tmp_path / "class" / name, "01a", RIGHT)
        write_file(tmp_path / "class" / name, task.id, text)
    write_file(tmp_path / "class" / "doe", "01a", RIGHT)
    out = tmp_path / "out"
    grade(tmp_path / "class", out, only=("01a", task.id))
    rows = read_table(out / "gradebook.csv")
    column = f"{task.id} (optional)"
    assert {name: (row[column], row[f"{task.id} status"]) for name, row in rows.items()} == {
        "ann": ("0", "pass"), "bob": ("0", "fail"), "cy": ("", ""), "doe": ("", "")
    }  # fmt: skip
    assert all(
        (row["Points (of 1)"], row["Counted of"], row["Passed"]) == ("1", "1", "1")
        for row in rows.values()
    )
    assert task.id not in (out / "canvas.csv").read_text()
    marked = [json.loads(line) for line in (out / "results.jsonl").read_text().splitlines()]
    assert [mark["learner"] for mark in marked if mark["exercise"] == task.id] == ["ann", "bob"]
    pages = {name: next((out / "reports").glob(f"{name}-*.html")).read_text() for name in rows}
    assert all(
        "1 of 1 exercises passed" in page and "There is no file" not in page
        for page in pages.values()
    )
    assert (
        task.title in pages["ann"]
        and task.title in pages["bob"]
        and task.title not in pages["cy"] + pages["doe"]
    )
    page = (out / "class.html").read_text()
    assert (
        "4 of 4 learners passed every exercise" in page
        and f"{task.id} {task.title} (optional)" in page
    )


def test_an_optional_task_that_nobody_began_has_no_column(tmp_path):
    task = next(exercise for exercise in catalog.exercises().values() if exercise.optional)
    write_file(tmp_path / "class" / "ann", "01a", RIGHT)
    write_file(tmp_path / "class" / "ann", task.id, texts.make_unsolved_text(task))
    grade(tmp_path / "class", tmp_path / "out", only=("01a", task.id))
    assert all(
        task.id not in (tmp_path / "out" / name).read_text()
        for name in ("gradebook.csv", "results.jsonl", "class.html")
    )


def test_no_week_of_the_plan_asks_for_an_optional_task():
    asked = [exercise for week in read_plan(SHIPPED).values() for exercise in week.exercises]
    assert asked == list(catalog.required())


def test_moodles_other_number_of_each_assignment_makes_no_second_learner(tmp_path):
    write_file(tmp_path / "one" / "Jane Doe_12_assignsubmission_file", "01a", RIGHT)
    write_file(tmp_path / "two" / "Jane Doe_77_assignsubmission_file", "04a", RIGHT)
    for folder, name in (("one", "01a"), ("two", "04a"), ("one", "01a"), ("two", "04a")):
        grade(tmp_path / folder, tmp_path / "out", only=(name,))
    (row,) = read_table(tmp_path / "out" / "gradebook.csv").values()
    assert row["Points (of 3)"] == "3"


def test_the_mapping_that_moodles_refusal_asks_for_makes_no_second_learner(tmp_path):
    """Two learners of one name, and one whose name is her own: in the second week a mapping says
    who is who, by the numbers that the gradebook has."""
    out, who = tmp_path / "out", tmp_path / "who.csv"
    people = [("Li Wei", 1, RIGHT), ("Li Wei", 2, WRONG), ("Jane Doe", 3, RIGHT)]
    lines = ["learner,path,id"]
    for name, number, text in people:
        for week, exercise in enumerate(("01a", "04a"), 1):
            own = f"{name}_{100 * week + number}_assignsubmission_file"
            write_file(tmp_path / str(week) / own, exercise, text)
        lines.append(f"{name},{own},{100 + number}")
    who.write_text("\n".join(lines) + "\n")
    grade(tmp_path / "1", out, only=("01a",))
    (out / "marks.csv").write_text("learner,exercise,points\nJane Doe,01a,0.5\n")
    with pytest.raises(CourseError, match="may be any of 2 learners"):
        grade(tmp_path / "2", out, only=("04a",))
    for _again in range(2):
        grade(tmp_path / "2", out, only=("04a",), mapping=who)
        rows = read_table(out / "gradebook.csv", "ID")
        points = {number: row["Points (of 3)"] for number, row in rows.items()}
        assert points == {"101": "3", "102": "0", "103": "2.5"}


@pytest.mark.parametrize("order", [("canvas", "mapped", "canvas"), ("mapped", "canvas", "mapped")])
def test_a_mapping_and_canvas_know_one_learner_by_one_number(tmp_path, order):
    """Two learners of one name: the number tells them apart, in whichever layout a week comes."""
    who = tmp_path / "who.csv"
    who.write_text("learner,path,id,login\nJane Doe,one,12,jane\nJane Doe,two,34,doe\n")
    for folder, number in (("one", "12"), ("two", "34")):
        write_file(tmp_path / "mapped" / folder, "04a", RIGHT if number == "12" else WRONG)
        (tmp_path / "canvas").mkdir(exist_ok=True)
        (tmp_path / "canvas" / f"doejane_{number}_5_{catalog.get('01a').file}.py").write_text(RIGHT)
    for layout in order:
        grade(
            tmp_path / layout,
            tmp_path / "out",
            only=("01a" if layout == "canvas" else "04a",),
            mapping=who if layout == "mapped" else None,
        )
    rows = read_table(tmp_path / "out" / "gradebook.csv", "ID")
    assert {number: (row["Points (of 3)"], row["Login"]) for number, row in rows.items()} == {
        "12": ("3", "jane"),
        "34": ("1", "doe"),
    }


@pytest.mark.parametrize(
    ("first", "second", "points", "why"),
    [
        (RIGHT, WRONG, ("1", "1"), None),
        (WRONG, RIGHT, ("0", "1"), "file changed"),
        (WRONG, WRONG_TOO, ("0", "0"), None),
    ],
)
def test_of_two_hand_ins_the_better_counts_and_a_change_is_on_the_trail(
    tmp_path, first, second, points, why
):
    out = tmp_path / "out"
    for text, expected in zip((first, second, second), (*points, points[1]), strict=True):
        write_file(tmp_path / "class" / "ann", "01a", text)
        grade(tmp_path / "class", out, only=("01a",))
        assert read_table(out / "gradebook.csv")["ann"]["01a (of 1)"] == expected
    trail = list(csv.DictReader((out / "regrades.csv").read_text().splitlines()))
    assert [
        (line["learner"], line["exercise"], line["old"], line["new"], line["why"]) for line in trail
    ] == ([("ann", "01a", "0", "1", why)] if why else [])
    assert all(datetime.fromisoformat(line["when"]).tzinfo for line in trail)


def test_a_file_that_could_not_be_graded_takes_nothing_from_an_earlier_one_that_passed(tmp_path):
    out = tmp_path / "out"
    write_file(tmp_path / "class" / "ann", "01a", RIGHT)
    write_file(tmp_path / "class" / "bob", "01a", WRONG)
    grade(tmp_path / "class", out, only=("01a",))
    for name in ("ann", "bob"):
        write_file(tmp_path / "class" / name, "01a", "FAULT " + name)
    assert len(grade(tmp_path / "class", out, only=("01a",)).faults) == 2
    rows = read_table(out / "gradebook.csv")
    assert (
        rows["ann"]["01a (of 1)"] == "1"
        and rows["bob"]["01a (of 1)"] == ""
        and rows["bob"]["01a status"] == "not graded"
    )


def test_a_new_grader_judges_the_same_file_anew_and_the_trail_says_so(tmp_path, monkeypatch):
    from course_lib.classroom import checking

    out = tmp_path / "out"
    write_file(tmp_path / "class" / "ann", "01a", WRONG)
    grade(tmp_path / "class", out, only=("01a",))
    monkeypatch.setattr(checking, "grader_version", lambda: "the next")

    def kinder(request):
        found = fake_check(request)
        found.verdict["status"] = "pass"
        return found

    assert grade(tmp_path / "class", out, only=("01a",), check=kinder).regraded == 1
    assert "ann,01a,0,1,grader version changed" in (out / "regrades.csv").read_text()


def test_other_rules_than_those_of_the_folder_are_refused_until_they_are_allowed(tmp_path):
    out = tmp_path / "out"
    write_file(tmp_path / "class" / "ann", "01a", RIGHT)
    grade(tmp_path / "class", out, only=("01a",), weights="equal")
    before = read_results(out)
    write_file(tmp_path / "next" / "ann", "04a", RIGHT)
    for options in ({"weights": "minutes"}, {"partial": True}, {"late": LateRule(5.0)}):
        with pytest.raises(
            CourseError, match=r"every mark .* weights equal, .* `--change-rules` allows it"
        ):
            grade(tmp_path / "next", out, only=("04a",), **options)
    assert read_results(out) == before
    grade(tmp_path / "next", out, only=("04a",))
    assert read_table(out / "gradebook.csv")["ann"]["Points (of 2)"] == "2", (
        "the rules stay as they were"
    )
    assert (
        grade(
            tmp_path / "next", out, only=("04a",), weights="difficulty", change_rules=True
        ).regraded
        == 1
    )
    assert "ann,04a,1,2,rules for points changed" in (out / "regrades.csv").read_text()


def test_the_gradebook_of_an_older_version_is_not_replaced_unasked(tmp_path):
    out = tmp_path / "out"
    write_file(tmp_path / "class" / "ann", "01a", RIGHT)
    write_file(tmp_path / "class" / "ann", "04a", RIGHT)
    grade(tmp_path / "class", out)
    (out / "record.json").unlink()
    before = read_results(out)
    with pytest.raises(CourseError, match=r"gradebook of an older version .* `--anew` allows that"):
        grade(tmp_path / "class", out, only=("01a",))
    assert read_results(out) == before
    assert grade(tmp_path / "class", out, only=("01a",), anew=True).checked == 0
    assert "04a status" not in read_table(out / "gradebook.csv")["ann"]
    (out / "record.json").write_text("{}")
    with pytest.raises(CourseError, match=r"record\.json is damaged"):
        grade(tmp_path / "class", out, only=("01a",))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[1", "is no TOML"),
        ("a = 3", 'a: a week needs a line such as exercises = ["07a", "08a"]'),
        ('[1]\nexercises = ["99z"]', "week 1: there is no exercise '99z'. There are: 00a, 01a"),
        (
            '[1]\nexercises = ["01a"]\n[2]\nexercises = ["1a"]',
            "asks for 01a in week 1 and in week 2",
        ),
        ('[1]\nexercises = ["01a"]\ndue = "soon"', "week 1: due 'soon' is no date"),
        ('[1]\nexercises = ["01a"]\ndeu = 1', "a week has lessons, exercises and due, and no deu"),
    ],
)
def test_a_plan_that_cannot_be_used_is_said(tmp_path, text, says):
    (tmp_path / "weeks.toml").write_text(text)
    with pytest.raises(CourseError, match=re.escape(says)):
        read_plan(tmp_path / "weeks.toml")


def test_a_plan_names_deadlines_and_the_one_in_the_current_folder_is_found(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert weeks.find_plan(None) == SHIPPED
    plan = tmp_path / "weeks.toml"
    plan.write_text(
        '[intro]\nexercises = ["1a"]\ndue = "2026-12-01T23:59+01:00"\n[2]\nexercises = []\ndue ='
        " 2026-12-08T23:59:00Z\n"
    )
    assert (
        weeks.find_plan(None).read_text() == plan.read_text()
        and weeks.find_plan(SHIPPED) == SHIPPED
    )
    found = read_plan(plan)
    assert found["intro"].exercises == ("01a",) and found["intro"].due == datetime(
        2026, 12, 1, 22, 59, tzinfo=UTC
    )
    assert found["2"].due == datetime(2026, 12, 8, 23, 59, tzinfo=UTC)
    with pytest.raises(CourseError, match=r"has no week 3\. Its weeks are: intro, 2\."):
        weeks.choose_weeks(found, ["3"], plan)


def test_a_date_ends_with_its_day_and_a_time_has_a_zone():
    day, moment = read_moment("2026-12-01", "--due"), read_moment("2026-12-01T18:00+02:00", "--due")
    assert (day.day, day.hour, day.minute) == (1, 23, 59) and day.tzinfo is not None
    assert moment == datetime(2026, 12, 1, 16, tzinfo=UTC)
    with pytest.raises(CourseError):
        read_moment("01.12.2026", "--due")


def read_expected(table):
    """Return the lines of a table whose cells stand between "|", without its title."""
    title, *lines = (
        [cell.strip() for cell in line.split("|")] for line in table.strip().splitlines()
    )
    return [dict(zip(title, line, strict=True)) for line in lines]


def test_a_small_class_through_a_term_has_the_gradebook_that_a_hand_works_out(
    tmp_path, monkeypatch
):
    """Two weeks in two layouts, killed in the middle, with a late file, a word of the teacher's,
    files that come again, and a new grader."""
    home = tmp_path
    out = tmp_path / "out"
    name = {one: catalog.get(one).file for one in ("01a", "04a")}
    first = {
        "ann_1": RIGHT,
        "bob_2": WRONG,
        "doe_3": RIGHT,
        "eve_5": WRONG,
        "fay_6": RIGHT_TOO,
        "gus_7": WRONG,
        "hal_8": WRONG_TOO,
    }
    again = {"eve_5": RIGHT, "fay_6": WRONG}
    for folder, files in (("week 1", first), ("again", again)):
        (home / folder).mkdir()
        for number, (who, text) in enumerate(files.items()):
            (home / folder / f"{who}_{number}_{name['01a']}.py").write_text(text)
    (home / "week 1" / "doe_4_text.html").write_text("<p>my text")
    second = {
        "1": RIGHT,
        "2": RIGHT,
        "3": WRONG,
        "4": RIGHT,
        "5": RIGHT_TOO,
        "7": WRONG,
        "8": WRONG,
    }
    for number, text in second.items():
        write_file(home / "week 2" / number, "04a", text)
    times = "ann,1,10T10 bob,2,12T00 doe,3,10T10 doe,4,10T10 eve,5,10T10 fay,6, gus,7,10T10 hal,8,10T10".split()  # noqa: E501
    lines = [
        f"{who},{number},{number if number in second else ''},{f'2026-11-{time}:00Z' if time else ''}"  # noqa: E501
        for who, number, time in (one.split(",") for one in times)
    ]
    (home / "who.csv").write_text("\n".join(["learner,id,path,submitted", *lines]))
    options = {
        "week 1": {
            "only": ("01a",),
            "late": LateRule(10.0),
            "due": {"01a": datetime(2026, 11, 3, tzinfo=UTC)},
        },
        "again": {"only": ("01a",)},
        "week 2": {
            "only": ("04a",),
            "mapping": home / "who.csv",
            "due": {"04a": datetime(2026, 11, 10, 18, tzinfo=UTC)},
        },
    }

    def run(folder, **more):
        graded = grade(home / folder, out, **options[folder], **more)
        rows = csv.DictReader(
            io.StringIO((out / "gradebook.csv").read_bytes().decode(), newline="")
        )
        return graded, [{"Name": row.pop("Student")} | row for row in rows]

    checked = []

    def die(request):
        if len(checked) == 3:
            raise KeyboardInterrupt
        checked.append(request)
        return fake_check(request)

    with pytest.raises(KeyboardInterrupt):
        run("week 1", check=die, workers=1)
    graded, rows = run("week 1")
    assert graded.kept == 3 and graded.checked == 4
    expected = read_expected("""
        Name    | ID | 01a (of 1) | 01a status | Points (of 1) | Counted of | Passed
        ann     | 1  | 1          | pass       | 1             | 1          | 1
        bob     | 2  | 0          | fail       | 0             | 1          | 0
        doe (3) | 3  | 1          | pass       | 1             | 1          | 1
        doe (4) | 4  | 0          | no file    | 0             | 1          | 0
        eve     | 5  | 0          | fail       | 0             | 1          | 0
        fay     | 6  | 1          | pass       | 1             | 1          | 1
        gus     | 7  | 0          | fail       | 0             | 1          | 0
        hal     | 8  | 0          | fail       | 0             | 1          | 0
    """)
    assert [{column: row[column] for column in expected[0]} for row in rows] == expected
    run("again")
    (out / "marks.csv").write_text("learner,exercise,points\ngus,01a,0.5\n7,04a,excused\n")
    monkeypatch.setattr("course_lib.classroom.checking.grader_version", lambda: "the next")

    def kinder(request):
        found = fake_check(request)
        if request.data == WRONG_TOO.encode():
            found.verdict["status"] = "pass"
        return found

    run("week 2", check=kinder)
    _, rows = run("week 1", check=kinder)
    expected = read_expected("""
        Name    | ID | 01a (of 1) | 01a status | 04a (of 2) | 04a status | Points (of 3) | Counted of | Passed
        ann     | 1  | 1          | pass       | 2          | pass       | 3             | 3          | 2
        bob     | 2  | 0          | fail       | 1.6        | pass       | 1.6           | 3          | 1
        doe (3) | 3  | 1          | pass       | 0          | fail       | 1             | 3          | 1
        doe (4) | 4  | 0          | no file    | 2          | pass       | 2             | 3          | 1
        eve     | 5  | 1          | pass       | 2          | pass       | 3             | 3          | 2
        fay     | 6  | 1          | pass       | 0          | no file    | 1             | 3          | 1
        gus     | 7  | 0.5        | fail       |            | fail       | 0.5           | 1          | 0
        hal     | 8  | 1          | pass       | 0          | fail       | 1             | 3          | 1
    """)  # noqa: E501
    assert [{column: row[column] for column in expected[0]} for row in rows] == expected
    trail = csv.DictReader((out / "regrades.csv").read_text().splitlines())
    assert [
        (line["learner"], line["exercise"], line["old"], line["new"], line["why"]) for line in trail
    ] == [
        ("eve", "01a", "0", "1", "file changed"),
        ("gus", "01a", "0", "0.5", "marks.csv changed"),
        ("hal", "01a", "0", "1", "grader version changed"),
    ]
