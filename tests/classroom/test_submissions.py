"""Who handed in what: every layout, every kind of bad input, and nobody else's row changes."""

from __future__ import annotations

import csv
import io
import os
import re
import tarfile
import zipfile
from datetime import UTC, datetime
from pathlib import Path

import pytest
from fake_grading import grade, write_class, write_file
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from course_lib import catalog
from course_lib.base.errors import CourseError
from course_lib.catalog import texts
from course_lib.classroom import archives
from course_lib.classroom.archives import read_members
from course_lib.classroom.collecting import collect
from course_lib.classroom.discovery import discover
from course_lib.classroom.gradebook import defuse
from course_lib.classroom.lateness import LateRule

EX = [catalog.get("01a"), catalog.get("04a"), catalog.get("07a")]
NAMES = {exercise.id: f"{exercise.file}.py" for exercise in EX}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "class").mkdir()
    return tmp_path / "class"


def make_zip(path, files: dict[str, str | bytes], links: dict[str, str] | None = None) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
        for name, target in (links or {}).items():
            info = zipfile.ZipInfo(name)
            info.external_attr = 0o120777 << 16
            archive.writestr(info, target)


def make_tar(path, files: dict[str, str], mode: str = "w:gz", **links: tuple[bytes, str]) -> None:
    with tarfile.open(path, mode) as archive:
        for name, text in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(text.encode())
            archive.addfile(info, io.BytesIO(text.encode()))
        for name, (kind, target) in links.items():
            info = tarfile.TarInfo(NAMES["04a"] if name == "ex" else name)
            info.type, info.linkname = kind, target
            archive.addfile(info)


def take(folder, mapping=None):
    return {one.learner.learner: collect(one, EX) for one in discover(folder, mapping)}


def files_of(collected) -> dict[str, str]:
    return {name: member.data.decode() for name, member in collected.files.items()}


# ---- layouts -------------------------------------------------------------------------------------


def test_plain_folders_and_archives(folder):
    write_file(folder / "ann lee" / "work" / "deeper", "01a", "a")
    make_zip(folder / "bo.zip", {f"x/{NAMES['01a']}": "b", "README": "x"})
    make_tar(folder / "cy.tar.xz", {f"exercises/{NAMES['04a']}": "c"}, "w:xz")
    make_tar(folder / "di.tgz", {NAMES["04a"]: "d"})
    make_zip(folder / "ed" / "inside.zip", {NAMES["07a"]: "e"})
    found = take(folder)
    assert {name: files_of(one) for name, one in found.items()} == {
        "ann lee": {"01a": "a"}, "bo": {"01a": "b"}, "cy": {"04a": "c"}, "di": {"04a": "d"},
        "ed": {"07a": "e"},
    }  # fmt: skip
    assert all(not one.problem and not one.notes for one in found.values())


def test_canvas(folder):
    for name, text in (
        (f"doejane_12345_67890_{NAMES['01a']}", "jane"),
        (f"doejane_12345_67891_{NAMES['04a'][:-3]}-2.py", "jane"),
        (f"muñozjosé_LATE_222_5_{NAMES['07a']}", "josé"),
        (f"doejane_333_7_{NAMES['01a']}", "another jane"),
        (f"anon_x1Yz_9_{NAMES['01a']}", "nobody"),
        ("liwei_444_8_my report.pdf", "%PDF"),
        ("online_555_text.html", "<p>"),
    ):
        (folder / name).write_text(text)
    found = take(folder)
    assert {name: (one.entry.id, one.entry.late, files_of(one)) for name, one in found.items()} == {
        "doejane (12345)": ("12345", False, {"01a": "jane", "04a": "jane"}),
        "doejane (333)": ("333", False, {"01a": "another jane"}),
        "muñozjosé": ("222", True, {"07a": "josé"}),
        "anon_x1Yz": ("anon_x1Yz", False, {"01a": "nobody"}),
        "liwei": ("444", False, {}),
        "online": ("555", False, {}),
    }
    assert found["liwei"].problem == "my report.pdf is no exercise file"
    assert "typed into Canvas" in found["online"].problem


def test_moodle_in_folders_and_flat(folder):
    write_file(folder / "Jane Doe_12345_assignsubmission_file_", "01a", "jane")
    write_file(folder / "Jane Doe_12345_assignsubmission_onlinetext_", "04a", "a page")
    (folder / f"O'Neill_Zoë_77_assignsubmission_file_{NAMES['04a']}").write_text("zoë")
    (folder / f"O'Neill_Zoë_77_assignsubmission_file_{NAMES['01a']}").write_text("zoë")
    make_zip(folder / "李 伟_88_assignsubmission_file_" / "all.zip", {NAMES["01a"]: "wei"})
    found = take(folder)
    assert {name: (one.entry.id, files_of(one)) for name, one in found.items()} == {
        "Jane Doe": ("12345", {"01a": "jane"}),
        "O'Neill_Zoë": ("77", {"01a": "zoë", "04a": "zoë"}),
        "李 伟": ("88", {"01a": "wei"}),
    }


def test_moodle_today_groups_and_other_plugins(folder):
    """Since 3.1 a folder's name ends without "_"; whoever is in no group hands in with the default
    one, which has no number."""
    write_file(folder / "Jane Doe_12345_assignsubmission_file", "01a", "jane")
    write_file(folder / "Participant_7_assignsubmission_file", "01a", "somebody")
    write_file(folder / "Participant_8_assignsubmission_file", "01a", "somebody else")
    write_file(folder / "Group A_3_assignsubmission_file", "04a", "three of them")
    write_file(folder / "Default group_assignsubmission_file", "04a", "the others")
    write_file(folder / "Jane Doe_12345_assignsubmission_onenote", "04a", "notes")
    os.mkfifo(folder / "Li Wei_9_assignsubmission_file")
    found = take(folder)
    assert {name: (one.entry.id, files_of(one)) for name, one in found.items()} == {
        "Default group": ("", {"04a": "the others"}),
        "Group A": ("3", {"04a": "three of them"}),
        "Jane Doe": ("12345", {"01a": "jane"}),
        "Li Wei": ("9", {}),
        "Participant (7)": ("7", {"01a": "somebody"}),
        "Participant (8)": ("8", {"01a": "somebody else"}),
    }
    assert found["Jane Doe"].notes == [
        "Jane Doe_12345_assignsubmission_onenote is no file but onenote, which is not graded"
    ]
    assert (
        found["Li Wei"].problem == "Li Wei_9_assignsubmission_file is a pipe"
        and not found["Li Wei"].notes
    )


@pytest.mark.parametrize(
    "layout", ["{0}/{1}", "{0}/exercises/{1}", "{0}_{2}_assignsubmission_file/{1}", "{0}_{2}_5_{1}"]
)
def test_a_folder_that_holds_only_the_class_is_not_taken_for_one_learner(folder, layout):
    inner = folder / "submissions"
    for number, name in enumerate(("ann", "bob", "cy")):
        file = inner / layout.format(name, NAMES["01a"], number)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(name)
    with pytest.raises(
        CourseError,
        match=(
            r"looks like the submissions of 3 learners\. If that is the class, name .*submissions"
        ),
    ):
        discover(folder)
    assert len(discover(inner)) == 3


def test_one_learner_alone_may_have_folders_of_their_own(folder):
    for week, name in enumerate(("01a", "04a", "07a")):
        write_file(folder / "ann" / f"week {week}", name, name)
    write_file(folder / "ann" / "older", "01a", "01a")
    assert files_of(take(folder)["ann"]) == {"01a": "01a", "04a": "04a", "07a": "07a"}


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("07a.py", "is not named as the course names its files (ex07a_NAME.py)"),
        ("ex7a_layer_norm_forward.py", "is not named as"),
        ("Exercise 07a.py", "is not named as"),
        (f"{NAMES['07a']}.txt", "is not named as"),
        (
            f"{NAMES['07a'][:-3]}.ipynb",
            "is a notebook; what is graded is the .py file of exercises/",
        ),
    ],
)
def test_a_file_that_was_meant_and_is_not_read_is_named(folder, name, says):
    (folder / "ann").mkdir()
    (folder / "ann" / name).write_text("x")
    make_zip(folder / "bob.zip", {f"work/{name}": "x", f"work/{NAMES['01a']}": "x"})
    (folder / f"cy_5_6_{name}").write_text("x")
    found = take(folder)
    assert found["ann"].problem.startswith(f"{name}: not read, it {says}")
    assert files_of(found["bob"]) == {"01a": "x"} and found["bob"].notes[0].startswith(
        f"work/{name}: not read, it {says}"
    )
    assert found["cy"].problem.startswith(f"{name}: not read, it {says}")


@pytest.mark.parametrize("packed", [False, True], ids=["folder", "zip"])
def test_a_wrong_name_is_accepted_where_the_file_is_the_only_one(folder, packed):
    files = {
        "07a.py": "seven",
        "copy/07a.py": "seven",
        "ex1a.py": "one",
        "ex 1a.txt": "another one",
        "04a.py": "wrong name",
        NAMES["04a"]: "right name",
        "ex5a.ipynb": "{}",
        "99z.py": "no exercise",
    }
    if packed:
        make_zip(folder / "ann.zip", files)
    for name, text in {} if packed else files.items():
        (folder / "ann" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "ann" / name).write_text(text)
    (submissions,) = discover(folder)
    exercises = catalog.exercises().values()
    refused = collect(submissions, exercises)
    assert files_of(refused) == {"04a": "right name"}
    accepted = collect(submissions, exercises, accept_names=True)
    assert files_of(accepted) == {"04a": "right name", "07a": "seven"}
    (note,) = (note for note in accepted.notes if "counts as" in note)
    assert note.endswith("07a.py counts as ex07a_layer_norm_forward.py (--accept-names)")
    assert accepted.subjects[note] == "07a"
    guesses = {m.path.rpartition("/")[2]: m.exercise for m in refused.misnamed}
    assert guesses == {
        "07a.py": "07a", "ex1a.py": "01a", "ex 1a.txt": "01a", "04a.py": "04a",
        "ex5a.ipynb": "05a", "99z.py": "",
    }  # fmt: skip
    assert guesses.keys() - {"07a.py"} == {m.path.rpartition("/")[2] for m in accepted.misnamed}
    assert any(note.endswith("by its name it is probably 05a") for note in refused.notes)


def test_other_code_is_named_only_where_there_is_no_exercise(folder):
    for name in ("solution.py", "07_layer_norm_any_row.ipynb"):
        (folder / "ann").mkdir(exist_ok=True)
        (folder / "ann" / name).write_text("x")
    write_file(folder / "bob", "01a", "x")
    (folder / "bob" / "helper.py").write_text("x")
    found = take(folder)
    assert found["ann"].problem.endswith("in it; it holds 07_layer_norm_any_row.ipynb, solution.py")
    assert not found["bob"].notes and not found["bob"].problem


@pytest.mark.parametrize(
    "name", [f"doejane_1_2_{NAMES['01a']}", f"Jane_1_assignsubmission_file/{NAMES['01a']}"]
)
def test_the_download_of_a_class_still_packed_is_no_learner(folder, name):
    make_zip(folder / "download.zip", {name: "x", name.replace("1", "3"): "y"})
    problem = take(folder)["download"].problem
    assert "belongs to the download of a class: unpack that, and name its folder" in problem


@pytest.mark.parametrize(
    ("parent", "names", "logins"),
    [
        ("norms-submissions", ["norms-ann-lee", "norms-ann-kim"], ["ann-kim", "ann-lee"]),
        ("class", ["norm-kernels-ann", "norm-kernels-bob"], ["ann", "bob"]),
    ],
)
def test_github_classroom(tmp_path, parent, names, logins):
    """A repository is the whole course: its solutions and tests bear the same names, and were
    handed in by nobody."""
    for name in names:
        write_file(tmp_path / parent / name / "exercises", "01a", name)
        write_file(tmp_path / parent / name / "solutions", "01a", "not theirs")
        write_file(tmp_path / parent / name / "tests" / "variants", "04a", "not theirs")
        write_file(tmp_path / parent / name / ".git", "04a", "not theirs")
        write_file(tmp_path / parent / name / ".course" / "kept", "04a", "an older one")
    (tmp_path / parent / "zz").mkdir()  # nothing in it: that changes nobody's name
    found = take(tmp_path / parent)
    assert found.pop("zz").problem
    assert (
        sorted(found) == logins and [one.entry.login for _, one in sorted(found.items())] == logins
    )
    assert {text for one in found.values() for text in files_of(one).values()} == set(names)
    assert all(not one.notes for one in found.values())


def test_a_mapping_says_who_and_where(folder, tmp_path):
    write_file(folder / "group 1" / "a", "01a", "a")
    make_zip(folder / "b.zip", {NAMES["01a"]: "b"})
    mapping = tmp_path / "who.csv"
    mapping.write_text(
        'learner,path,id,login\n"Lee, Ann",group'
        " 1/a,7,ann\nBob,b.zip,8,\nNobody,,9,\nLost,x/y,10,\n",
        encoding="utf-8-sig",
    )
    found = take(folder, mapping)
    assert {
        name: (one.entry.id, one.entry.login, files_of(one), one.problem)
        for name, one in found.items()
    } == {
        "Lee, Ann": ("7", "ann", {"01a": "a"}, ""),
        "Bob": ("8", "", {"01a": "b"}, ""),
        "Nobody": ("9", "", {}, "nothing was handed in"),
        "Lost": ("10", "", {}, "y cannot be read: No such file or directory"),
    }


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("name,path\nx,y\n", "needs a first line with the columns learner,path"),
        ("learner,path\nx\n", "line 2, has 1 columns"),
        ("learner,path\n,y\n", "line 2, names no learner"),
        ("learner,path\nx,../y\n", "does not lie in the class's folder"),
        ("learner,path\nx,/etc\n", "does not lie in the class's folder"),
        ("learner,path\n", "names nobody"),
        ("", "needs a first line"),
        (b"learner,path\n\xff,y\n", "is no CSV file in UTF-8"),
    ],
)
def test_a_mapping_that_cannot_be_used(folder, tmp_path, text, says):
    (tmp_path / "who.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(CourseError, match=re.escape(says)):
        discover(folder, tmp_path / "who.csv")


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda folder: None, "there is no submission in"),
        (lambda folder: write_file(folder, "01a", "x"), "is one learner's submission, not a class"),
    ],
)
def test_a_folder_that_is_no_class(folder, make, says):
    make(folder)
    with pytest.raises(CourseError, match=says):
        discover(folder)
    make_zip(folder.parent / "all.zip", {"x": "y"})
    with pytest.raises(CourseError, match="Unpack it first"):
        discover(folder.parent / "all.zip")


def test_names_that_begin_alike_stay_whole_where_nothing_says_that_they_are_repositories(folder):
    for name in ("jane-doe", "jane-lee"):
        write_file(folder / name / "exercises", "01a", name)
    assert sorted(take(folder)) == ["jane-doe", "jane-lee"]


# ---- which of two counts -------------------------------------------------------------------------


def test_of_two_files_for_one_exercise_one_counts_and_the_row_says_which(folder):
    for name in ("exercises", "old/exercises", "old"):
        write_file(folder / "ann" / name, "01a", name)
    write_file(folder / "bob" / "a", "01a", "same")
    write_file(folder / "bob" / "b", "01a", "same")
    (folder / "cy").mkdir()
    for name in (
        f"{NAMES['01a'][:-3]}-1.py",
        f"{NAMES['01a'][:-3]} (3).py",
        "ex01a_mine.py",
        "EX04A.py",
        "ex0 4a.py",
        "ex04abc_x.py",
    ):
        (folder / "cy" / name).write_text(name)
        os.utime(folder / "cy" / name, (10**9, 10**9))
    found = take(folder)
    assert files_of(found["ann"]) == {"01a": "exercises"}
    assert found["ann"].subjects == {found["ann"].notes[0]: "01a"}
    assert found["ann"].notes[0].startswith("3 files (") and found["ann"].notes[0].endswith(
        f"; exercises/{NAMES['01a']} counts"
    )
    assert not found["bob"].notes, "equal files leave nothing to decide"
    assert files_of(found["cy"]) == {"01a": f"{NAMES['01a'][:-3]} (3).py", "04a": "EX04A.py"}


def test_of_two_submissions_the_later_one_counts_and_an_empty_one_hides_none(folder):
    write_file(folder / "ann", "01a", "older")
    os.utime(folder / "ann" / NAMES["01a"], (10**9, 10**9))
    make_zip(folder / "ann.zip", {NAMES["01a"]: "newer"})
    write_file(folder / "bob", "01a", "work")
    make_zip(folder / "bob.zip", {"x": "y"})
    found = take(folder)
    assert files_of(found["ann"]) == {"01a": "newer"} and files_of(found["bob"]) == {"01a": "work"}
    assert found["ann"].notes == ["2 submissions: ann, ann.zip; the later one counts: ann.zip"]


# ---- bad input -----------------------------------------------------------------------------------


def encrypt(path) -> None:
    """Set the flag that says so: the bytes behind it then count for nothing."""
    data = bytearray(path.read_bytes())
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        place = data.index(mark)
        data[place + offset] |= 1
    path.write_bytes(data)


def bomb(path) -> None:
    make_zip(path, {NAMES["01a"]: b"\0" * (40 << 20)})


def tar_bomb(path) -> None:
    with tarfile.open(path, "w:bz2") as archive:
        info = tarfile.TarInfo("zeros")
        info.size = 40 << 20
        archive.addfile(info, io.BytesIO(b"\0" * info.size))


def liar(path) -> None:
    """It says that it holds a few bytes, and holds many."""
    bomb(path)
    data = path.read_bytes().replace((40 << 20).to_bytes(4, "little"), (5).to_bytes(4, "little"))
    path.write_bytes(data)


def crowd(path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(201):
            archive.writestr(f"{number}/{NAMES['01a']}", "")


BAD_ARCHIVES = {
    "encrypted.zip": (
        lambda path: (make_zip(path, {NAMES["01a"]: "x"}), encrypt(path)),
        "it is encrypted",
    ),
    "outside.zip": (
        lambda path: make_zip(path, {f"../../{NAMES['01a']}": "x", f"/tmp/{NAMES['04a']}": "x"}),
        "points outside the archive",
    ),
    "windows.zip": (
        lambda path: make_zip(path, {f"C:\\{NAMES['01a']}": "x", f"..\\{NAMES['04a']}": "x"}),
        "points outside the archive",
    ),
    "links.zip": (lambda path: make_zip(path, {}, {NAMES["01a"]: "/etc/passwd"}), "it is a link"),
    "tar of links.tar": (
        lambda path: make_tar(path, {}, "w", ex=(tarfile.SYMTYPE, "/etc/passwd")),
        "it is a link",
    ),
    "tar of hard.tar": (
        lambda path: make_tar(path, {}, "w", ex=(tarfile.LNKTYPE, "../../x")),
        "it is a link",
    ),
    "tar of pipe.tar": (
        lambda path: make_tar(path, {}, "w", ex=(tarfile.FIFOTYPE, "")),
        "is no plain file",
    ),
    "tar of outside.tar.gz": (
        lambda path: make_tar(path, {f"../{NAMES['01a']}": "x"}),
        "points outside the archive",
    ),
    "bomb.zip": (bomb, "more than 200 times its size"),
    "tar of bomb.tar.bz2": (tar_bomb, "more than 200 times its size"),
    "crowd.zip": (crowd, "more than 200 exercise files"),
    "torn.zip": (
        lambda path: (make_zip(path, {NAMES["01a"]: "x"}), os.truncate(path, 40)),
        "is damaged, or no zip",
    ),
    "tar of torn.tar.gz": (
        lambda path: (make_tar(path, {NAMES["01a"]: "x" * 9000}), os.truncate(path, 60)),
        "is damaged, or no tar",
    ),
    "no.zip": (lambda path: path.write_bytes(b"this is no zip"), "is damaged, or no zip"),
    "no bytes.zip": (lambda path: path.write_bytes(b""), "is damaged, or no zip"),
    "nothing.zip": (
        lambda path: make_zip(path, {"README.md": "x"}),
        "there is no exercise file (ex07a_NAME.py) in it",
    ),
    "large.zip": (
        lambda path: path.write_bytes(b"PK" + bytes(archives.MOST_BYTES)),
        "is larger than 32 MB",
    ),
    "work.7z": (lambda path: path.write_bytes(b"7z"), "is packed in a way that is not read here"),
}


def make_bad_entries(folder) -> dict[str, str]:
    """Every kind of submission that cannot be read, in a class; returns what is said of each
    learner."""
    said = {}
    for name, (make, says) in BAD_ARCHIVES.items():
        make(folder / f"bad {name}")
        said[f"bad {archives.name_without_suffix(name)}"] = says
    (folder / "bad empty").mkdir()
    os.mkfifo(folder / "bad pipe")
    (folder / "bad link").symlink_to("/etc")
    (folder / "bad loop").symlink_to("bad loop")
    (folder / "bad no exercise").mkdir()
    (folder / "bad no exercise" / "notes.txt").write_text("x")
    for name, make in (
        ("pipe within", os.mkfifo),
        ("link within", lambda path: path.symlink_to("/etc/passwd")),
        ("folder within", os.mkdir),
    ):
        (folder / f"bad {name}").mkdir()
        make(folder / f"bad {name}" / NAMES["01a"])
    return said | {
        "bad empty": "there is no exercise file (ex07a_NAME.py) in it",
        "bad pipe": "is a pipe",
        "bad link": "is a symbolic link, which is not followed",
        "bad loop": "is a symbolic link, which is not followed",
        "bad no exercise": "there is no exercise file (ex07a_NAME.py) in it",
        "bad pipe within": "is a pipe, no plain file",
        "bad link within": "is a symbolic link",
        "bad folder within": "there is no exercise file (ex07a_NAME.py) in it",
    }


def read_rows(out) -> dict[str, dict[str, str]]:
    text = (out / "gradebook.csv").read_bytes().decode()
    return {row["Student"]: row for row in csv.DictReader(io.StringIO(text, newline=""))}


def test_a_class_with_every_bad_submission_has_a_reason_for_each_and_good_rows_as_ever(
    folder, tmp_path
):
    write_class(folder, 6)
    grade(folder, tmp_path / "before")
    before = read_rows(tmp_path / "before")
    said = make_bad_entries(folder)
    grade(folder, tmp_path / "after")
    after = read_rows(tmp_path / "after")
    assert {name: row for name, row in after.items() if not name.startswith("bad")} == before
    told = {
        name: f"{row['Problem']} {row['Notes']}"
        for name, row in after.items()
        if name.startswith("bad")
    }
    for name, says in said.items():
        assert any(says in words for learner, words in told.items() if learner == name), (
            name,
            says,
            told.get(name),
        )
    assert len(told) >= len(said) - 1 and all(words.strip() for words in told.values())
    assert all(row["Points (of 6)"] == "0" for name, row in after.items() if name.startswith("bad"))


def test_a_learner_without_a_file_for_these_exercises_has_done_nothing_wrong(folder):
    write_file(folder / "ann", "13b", "another exercise")
    collected = take(folder)["ann"]
    assert not collected.problem and not collected.notes and not collected.files


def test_what_is_said_of_one_submission_has_an_end(folder):
    for number in range(50):
        make_bad = folder / "ann" / f"{number:02}" / NAMES["01a"]
        make_bad.parent.mkdir(parents=True)
        make_bad.symlink_to("/etc/passwd")
    write_file(folder / "bob", "01a", "x")
    notes = take(folder)["ann"].notes
    assert len(notes) == 13 and notes[-1] == "and 38 more such things"


def test_files_that_are_nobodys_are_notes_and_no_rows(folder, tmp_path):
    write_class(folder, 3)
    grade(folder, tmp_path / "before")
    for name in ("notes.txt", ".DS_Store", "README", "README.md", "=1+1.csv"):
        (folder / name).write_text("x")
    graded = grade(folder, tmp_path / "after")
    assert (
        graded.strays == ("=1+1.csv", "README", "README.md", "notes.txt") and graded.learners == 3
    )
    assert read_rows(tmp_path / "after") == read_rows(tmp_path / "before")
    assert (
        "=1+1.csv, README, README.md, notes.txt" in (tmp_path / "after" / "class.html").read_text()
    )
    for name in os.listdir(folder):
        if name.startswith("learner"):
            (folder / name).rename(tmp_path / name)
    with pytest.raises(CourseError, match=r"no submission in .*, but only =1\+1.csv, README"):
        discover(folder)


DUE = dict.fromkeys(("01a", "04a", "07a"), datetime(2020, 1, 1, tzinfo=UTC))


def write_late_class(folder):
    """Everybody passes, for the stand-in judges by the bytes; ``whole`` and the like are days after
    the deadline of 2020-01-01."""
    due = DUE["01a"].timestamp()
    for name, time in (
        ("early", due - 1),
        ("at once", due + 1),
        ("third", due + 2.5 * 86_400),
        ("years", due + 1e8),
    ):
        os.utime(write_file(folder / name, "04a", PASSES), (time, time))
    # the members are of today, or of 1980, whatever the zip's own date is
    make_zip(folder / "packed.zip", {NAMES["04a"]: PASSES})
    os.utime(folder / "packed.zip", (due - 1, due - 1))
    (folder / f"marked_LATE_5_6_{NAMES['04a']}").write_text(PASSES)
    (folder / f"unmarked_7_8_{NAMES['04a']}").write_text(PASSES)
    write_file(folder / "clone", "04a", PASSES)
    (folder / "clone" / ".git").mkdir()


PASSES = "# 3"


def test_lateness_by_a_clock_that_nobody_vouches_for_costs_nothing(folder, tmp_path):
    write_late_class(folder)
    grade(folder, tmp_path / "said", due=DUE, only=("04a",))
    rows = read_rows(tmp_path / "said")
    assert {row["04a (of 2)"] for row in rows.values()} == {"2"}, (
        "without a rule lateness is said and costs nothing"
    )
    assert "points off" not in "".join(row["Late"] for row in rows.values())
    grade(folder, tmp_path / "out", due=DUE, late=LateRule(10.0), only=("04a",))
    rows = read_rows(tmp_path / "out")
    assert {name: row["04a (of 2)"] for name, row in rows.items()} == {
        name: "2" for name in rows
    }, "a disk's, an archive's and a clone's times take no points off"
    assert (
        rows["third"]["Late"] == "04a: 3 days late by the file's time on the disk"
        " (2020-01-03 12:00 UTC), which takes no points off"
    )
    assert "by the time in the archive" in rows["packed"]["Late"] and rows["early"]["Late"] == ""
    assert (
        "by how much is not known: the column late of marks.csv says it" in rows["marked"]["Late"]
    )
    assert rows["unmarked"]["Late"] == "", "Canvas marks what is late"
    assert (
        rows["clone"]["Late"]
        == "04a: whether it is late is not known: a clone has the time of cloning"
    )
    assert {rows[name]["Submitted"] for name in ("marked", "unmarked", "clone")} == {""}


def test_a_mapping_may_say_when_and_a_second_download_makes_nobody_late(folder, tmp_path):
    file = write_file(folder / "ann", "04a", PASSES)
    os.utime(file, (1, 1))
    mapping = tmp_path / "who.csv"
    mapping.write_text("learner,path,submitted\nAnn,ann,2020-01-02T00:00:01+00:00\n")
    grade(folder, tmp_path / "map", due=DUE, late=LateRule(25.0), only=("04a",), mapping=mapping)
    assert read_rows(tmp_path / "map")["Ann"]["04a (of 2)"] == "1"
    assert (
        "2 days late by the mapping's time (2020-01-02 00:00 UTC), 1 points off"
        in read_rows(tmp_path / "map")["Ann"]["Late"]
    )
    grade(folder, tmp_path / "out", due=DUE, late=LateRule(25.0), only=("04a",))
    os.utime(file, (2_000_000_000, 2_000_000_000))
    grade(folder, tmp_path / "out", due=DUE, late=LateRule(25.0), only=("04a",))
    assert read_rows(tmp_path / "out")["ann"]["04a (of 2)"] == "2"


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_what_nobody_may_read_is_said(folder):
    write_file(folder / "ann", "01a", "x").chmod(0)
    write_file(folder / "bob", "01a", "x")
    (folder / "bob").chmod(0)
    found = take(folder)
    (folder / "bob").chmod(0o700)
    assert (
        "cannot be read: Permission denied" in found["ann"].refused["01a"]
        and "Permission denied" in found["bob"].problem
    )


def test_a_zip_that_lies_about_its_size_gives_no_more_than_a_file_may_have(tmp_path):
    liar(tmp_path / "liar.zip")
    found = read_members((tmp_path / "liar.zip").read_bytes(), "liar.zip")
    assert (
        "damaged" in found.problem
        or max(len(member.data) for member in found.members) <= archives.FILE_BYTES
    )


def test_a_process_taken_over_by_an_archive_can_answer_what_it_likes(tmp_path, monkeypatch):
    make_zip(tmp_path / "x.zip", {})
    good = {"path": "a\x1b[2J\nb", "data": "eA==", "time": 1e300}
    for answer in (
        None, 7, [], {}, {"members": 3, "notes": [], "problem": ""},
        {"members": [good | {"data": "%"}], "notes": [], "problem": ""},
        {"members": [good | {"path": 3}], "notes": [], "problem": ""},
        {"members": [], "notes": [{}], "problem": ""},
        {"members": [], "notes": [], "problem": [1]},
    ):  # fmt: skip
        monkeypatch.setattr(archives.jobs, "ask", lambda *_, answer=answer, **_named: answer)
        assert "no proper answer" in archives.unpack(tmp_path / "x.zip").problem, answer
    monkeypatch.setattr(
        archives.jobs,
        "ask",
        lambda *_, **_named: {"members": [good] * 300, "notes": ["n\n"] * 99, "problem": ""},
    )
    found = archives.unpack(tmp_path / "x.zip")
    assert (
        found.members[0] == archives.Member(r"a\x1b[2J\nb", b"x", 0.0)
        and len(found.members) == archives.MOST_WANTED + archives.MOST_MISNAMED
        and len(found.notes) == 20
    )


# ---- names and cells -----------------------------------------------------------------------------

FORMULAS = (
    "=cmd|' /C calc'!A0",
    "+1+1",
    "-2+3",
    "@SUM(A1)",
    " =1+1",
    "\t=1",
    "'quoted",
    '=HYPERLINK("http://x")',
    "＝1+1",
    "|x",
    "%0A=1",
)
NAMES_OF_PEOPLE = st.text(
    st.characters(exclude_characters="/\0", exclude_categories=("Cs",)), min_size=1, max_size=40
).filter(
    lambda name: name not in (".", "..") and not name.startswith(".") and len(name.encode()) < 200
)


@given(
    names=st.lists(
        st.one_of(NAMES_OF_PEOPLE, st.sampled_from(FORMULAS)), min_size=1, max_size=6, unique=True
    )
)
@settings(
    max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
def test_whatever_people_are_called_each_has_one_row_and_no_formula(tmp_path_factory, names):
    home = tmp_path_factory.mktemp("names")
    for name in names:
        write_file(home / "class" / name, "01a", name.encode())
    people = discover(home / "class")
    assert sum(len(one.entries) for one in people) == len(names)
    grade(home / "class", home / "out")
    for file in ("gradebook.csv", "canvas.csv"):
        rows = list(
            csv.reader(io.StringIO((home / "out" / file).read_bytes().decode(), newline=""))
        )
        assert len({len(row) for row in rows}) == 1
        assert len(rows) == len(people) + (2 if file == "canvas.csv" else 1)
        for cell in (cell for row in rows for cell in row):
            assert not cell.strip().startswith(("=", "+", "-", "@")) and "\n" not in cell


@settings(max_examples=50)
@given(st.lists(st.text(max_size=12), min_size=2, max_size=2, unique=True))
def test_defusing_makes_no_two_cells_one(cells):
    assert defuse(cells[0]) != defuse(cells[1])
    assert all(defuse(cell) in (cell, f"'{cell}") for cell in cells)


@pytest.mark.parametrize("text", FORMULAS)
def test_a_formula_is_defused_and_a_name_is_not(text):
    assert defuse(text) == f"'{text}" and defuse("Ann-Marie O'Neill (7)") == "Ann-Marie O'Neill (7)"


def test_a_name_that_is_no_utf8_has_a_row(folder, tmp_path):
    raw = os.fsencode(folder) + b"/caf\xe9"
    os.mkdir(raw)
    with open(raw + b"/" + NAMES["01a"].encode(), "wb") as file:
        file.write(b"x")
    grade(folder, tmp_path / "out")
    (row,) = read_rows(tmp_path / "out").values()
    assert row["Student"] == r"caf\udce9" and row["01a status"] != "no file"


# ---- the results' folder -------------------------------------------------------------------------


def test_a_folder_with_other_files_and_one_among_the_submissions_are_refused(folder, tmp_path):
    write_class(folder, 1)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("x")
    with pytest.raises(CourseError, match=r"holds other files \(thesis.txt\)"):
        grade(folder, tmp_path / "full")
    with pytest.raises(CourseError, match="lies in the folder of the submissions"):
        grade(folder, folder / "out")
    assert sorted(os.listdir(tmp_path / "full")) == ["thesis.txt"] and sorted(
        os.listdir(folder)
    ) == ["learner 000"]


def find_open_to_others(out: Path) -> dict[str, int]:
    """The files and folders of ``out`` whose mode is not 0600 or 0700."""
    modes = {path: path.stat().st_mode & 0o777 for path in (out, *out.rglob("*"))}
    return {
        path.name: mode
        for path, mode in modes.items()
        if mode != (0o700 if path.is_dir() else 0o600)
    }


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077, 0o177])
def test_all_that_is_written_is_for_its_owner_alone(folder, tmp_path, umask):
    write_class(folder, 2)
    out = tmp_path / "out"
    before = os.umask(umask)
    try:
        grade(folder, out, secret_file=None)
    finally:
        os.umask(before)
    names = {path.name for path in out.iterdir()}
    assert names >= {
        "secret",
        "class.json",
        "journal.jsonl",
        "results.jsonl",
        "gradebook.csv",
        "canvas.csv",
        "reports",
    }
    assert find_open_to_others(out) == {}
    for path in (out, *out.rglob("*")):  # what an older version left, or somebody opened
        path.chmod(0o777 if path.is_dir() else 0o644)
    write_file(folder / "learner 000", "03a", "# anew\n")
    grade(folder, out, secret_file=None)
    written_again = {
        "out",
        "reports",
        "journal.jsonl",
        "timings.csv",
        "results.jsonl",
        "gradebook.csv",
        "canvas.csv",
        "similar.csv",
    }
    assert not find_open_to_others(out).keys() & written_again


def test_the_secret_is_made_once_and_another_one_is_refused(folder, tmp_path):
    write_class(folder, 2)
    grade(folder, tmp_path / "out", secret_file=None)
    secret = tmp_path / "out" / "secret"
    text = secret.read_text()
    assert len(text.strip()) == 32
    assert (
        grade(folder, tmp_path / "out", secret_file=None).checked == 0
        and secret.read_text() == text
    )
    with pytest.raises(CourseError, match="was begun with another secret"):
        grade(folder, tmp_path / "out")
    grade(folder, tmp_path / "with a file")
    assert not (tmp_path / "with a file" / "secret").exists()
    with pytest.raises(CourseError, match="was begun with a secret from a file"):
        grade(folder, tmp_path / "with a file", secret_file=None)
    for out in ("out", "with a file"):
        assert text.strip().encode() not in b"".join(
            f.read_bytes() for f in (tmp_path / out).rglob("*") if f.is_file() and f != secret
        )


def test_unsolved_files_are_the_same_to_everybody(folder):
    """Equal files have one key, so they are checked once."""
    text = texts.make_unsolved_text(EX[0])
    for name in "abc":
        write_file(folder / name, "01a", text)
    graded = grade(folder, folder.parent / "out")
    assert (graded.checked, graded.learners) == (1, 3)
