"""One class through three weeks as from Canvas, Moodle and Gradescope: each cell of the gradebook
is the one that was worked out by hand first."""

from __future__ import annotations

import csv
import io
import zipfile
from datetime import UTC, datetime, timedelta

import pytest
from fake_grading import grade

from course_lib import catalog
from course_lib.classroom.lateness import read_late_rule

RIGHT, WRONG = b"# 3", b"# 1"  # as the stand-in judges them, by the bytes alone
WEEKS = ("01a", "04a", "07a")  # 1, 2 and 3 points
NAMES = [f"{catalog.get(exercise).file}.py" for exercise in WEEKS]
DUE = [datetime(2026, 10, day, 23, 59, tzinfo=UTC) for day in (12, 19, 26)]
RULE = "20 % per day, 1 free day, at most 3 days"


def pack(files):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return {"homework.zip": packed.getvalue()}


# What each learner hands in where it is not the right file alone, by week from 0; None is nothing.
HANDED_IN = {
    "typical": {},
    "wrong": {1: {NAMES[1]: WRONG}},
    "no file": {1: {"helper.py": RIGHT}},
    "absent first": {0: None},
    "absent last": {2: None},
    "a day late": {},
    "two days late": {},
    "four days late": {},
    "misnamed": {0: {"1a.py": RIGHT}},
    "twice": {0: {NAMES[0]: WRONG, f"{NAMES[0][:-3]}-1.py": RIGHT}},
    "damaged": {1: {"homework.zip": b"PK no zip"}},
    "packed": {week: pack({f"exercises/{name}": RIGHT}) for week, name in enumerate(NAMES)},
    "ill": {},
    "of one name": {2: {NAMES[2]: WRONG}},
}
LATE = {("a day late", 0): 1, ("two days late", 1): 2, ("four days late", 2): 4}
# the cells by hand: 1, 2 and 3 points, a fifth off for a late day after the free one
TABLE = """
    typical        | 1 | 2   | 3   | 6   | 6
    wrong          | 1 | 0   | 3   | 4   | 6
    no file        | 1 | 0   | 3   | 4   | 6
    absent first   |   | 2   | 3   | 5   | 5
    absent last    | 1 | 2   |     | 3   | 3
    a day late     | 1 | 2   | 3   | 6   | 6
    two days late  | 1 | 1.6 | 3   | 5.6 | 6
    four days late | 1 | 2   | 1.2 | 4.2 | 6
    misnamed       | 1 | 2   | 3   | 6   | 6
    twice          | 1 | 2   | 3   | 6   | 6
    damaged        | 1 | 0   | 3   | 4   | 6
    packed         | 1 | 2   | 3   | 6   | 6
    ill            | 1 | 2   |     | 3   | 3
    of one name    | 1 | 2   | 0   | 3   | 6
"""


def find_files(learner, week):
    return HANDED_IN[learner].get(week, {NAMES[week]: RIGHT})


def write_canvas(folder, week):
    folder.mkdir()
    for number, learner in enumerate(HANDED_IN, 1):
        late = "_LATE" if (learner, week) in LATE else ""
        for place, (name, data) in enumerate((find_files(learner, week) or {}).items()):
            (
                folder / f"{learner}{late}_{number}_{1000 * week + 10 * number + place}_{name}"
            ).write_bytes(data)


def write_moodle(folder, week):
    for number, learner in enumerate(HANDED_IN, 1):
        for name, data in (find_files(learner, week) or {}).items():
            file = folder / f"{learner}_{100 * week + number}_assignsubmission_file" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)


def write_gradescope(folder, week):
    lines = ["---"]
    for number, learner in enumerate(HANDED_IN, 1):
        files = find_files(learner, week)
        if files is None:
            continue
        own = f"submission_{100 * week + number}"
        (folder / own).mkdir(parents=True)
        for name, data in files.items():
            (folder / own / name).write_bytes(data)
        time = DUE[week] - timedelta(hours=4) + timedelta(days=LATE.get((learner, week), 0))
        lines += [
            f"{own}:",
            "  :submitters:",
            f"  - :name: {learner}",
            f"    :sid: '{30000 + number}'",
            f"    :email: {number}@example.edu",
            f"  :created_at: {time:%Y-%m-%d %H:%M:%S}.000000000 Z",
        ]
    (folder / "submission_metadata.yml").write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize("write", [write_canvas, write_moodle, write_gradescope])
def test_a_class_has_the_cells_that_a_hand_works_out(tmp_path, write):
    out = tmp_path / "out"
    how = {"late": read_late_rule(RULE)}
    words = ["learner,exercise,points,comment,late", "ill,07a,excused,flu,"]
    if write is not write_gradescope:  # the other two do not say by how much
        words += [f"{name},{WEEKS[week]},,,{days}" for (name, week), days in LATE.items()]
    for week, exercise in enumerate(WEEKS):
        folder = tmp_path / f"week {week}"
        write(folder, week)
        due = {exercise: DUE[week]}
        graded = grade(folder, out, only=(exercise,), due=due, **how)
        if week == 0:
            assert graded.misnamed == (("misnamed", "1a.py", "01a"),)
        if week == 1:
            assert graded.new == (("absent first", ""),) and not graded.misnamed
            (out / "marks.csv").write_text("\n".join(words).replace("ill,07a,excused,flu,\n", ""))
        if week == 2:
            (out / "marks.csv").write_text("\n".join(words))
            grade(folder, out, only=(exercise,), due=due, **how)
    folder, due = tmp_path / "week 0", {"01a": DUE[0]}
    graded = grade(folder, out, only=("01a",), due=due, accept_names=True, **how)
    assert graded.regraded == 1 and not graded.unsettled
    with open(out / "gradebook.csv", newline="") as file:
        rows = {row["Student"]: row for row in csv.DictReader(file)}
    columns = ("01a (of 1)", "04a (of 2)", "07a (of 3)", "Points (of 6)", "Counted of")
    expected = [[cell.strip() for cell in line.split("|")] for line in TABLE.strip().splitlines()]
    assert [
        [name, *(rows[name][column] for column in columns)] for name, *_ in expected
    ] == expected
    assert len(rows) == len(expected)
