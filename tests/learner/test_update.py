"""``course update`` between two local git repositories: the learner's bytes survive whatever
upstream and git do."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from course_lib import catalog
from course_lib.base import files, paths
from course_lib.base.errors import CourseError
from course_lib.catalog.texts import make_learners_text
from course_lib.learner import notebook_filter
from course_lib.learner import update as updating
from course_lib.learner.update import update

EXERCISE = "exercises/ex07a_x.py"
OTHER = "exercises/ex02b_y.py"
NOTEBOOK = "notebooks/06_x.ipynb"
COURSE = "course_lib/core.py"
MINE = b"mine \xff\r\nwith bytes of my own\n"


@pytest.fixture(autouse=True)
def quiet_git(tmp_path, monkeypatch):
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    config = tmp_path / "gitconfig"
    config.write_text(
        "[user]\nname = test\nemail = test@example.org\n[init]\ndefaultBranch = main\n"
    )
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")


def git(folder, *arguments: str) -> str:
    return subprocess.run(
        ["git", "-C", str(folder), *arguments], check=True, capture_output=True, text=True
    ).stdout


def publish(origin, **texts: str) -> None:
    """Commit files of the course upstream; names with __ for / are paths."""
    for name, text in texts.items():
        path = origin / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    git(origin, "add", "-A")
    git(origin, "commit", "-qm", "course")


@pytest.fixture
def origin(tmp_path):
    folder = tmp_path / "origin"
    folder.mkdir()
    git(folder, "init", "-q")
    publish(
        folder,
        **{
            EXERCISE: "v1\n",
            OTHER: "v1\n",
            NOTEBOOK: "{v1}\n",
            COURSE: "v1\n",
            ".gitignore": "/.course/\n",
        },
    )
    return folder


@pytest.fixture
def clone(origin, tmp_path, monkeypatch):
    folder = tmp_path / "clone"
    git(tmp_path, "clone", "-q", str(origin), str(folder))
    monkeypatch.setenv("COURSE_STATE", str(folder / ".course"))
    return folder


def everything(folder) -> dict[str, bytes]:
    return {
        str(p.relative_to(folder)): p.read_bytes()
        for p in folder.rglob("*")
        if p.is_file() and not str(p.relative_to(folder)).startswith((".git/", ".course/"))
    }


def kept(folder) -> list[bytes]:
    return [p.read_bytes() for p in sorted((folder / ".course" / "kept").glob("*"))]


def test_an_untouched_course_takes_what_is_new(origin, clone):
    assert update(clone) == ["The course is up to date."]
    publish(origin, **{EXERCISE: "v2\n", COURSE: "v2\n", "exercises/ex11a_z.py": "v1\n"})
    assert update(clone) == ["3 files of the course changed."]
    assert everything(clone) == everything(origin)


@pytest.mark.parametrize(
    "upstream",
    [{EXERCISE: "v2\n", COURSE: "v2\n"}, {COURSE: "v2\n"}, {}],
    ids=["same file", "elsewhere", "nothing"],
)
def test_an_edited_exercise_stays_byte_for_byte(origin, clone, upstream):
    (clone / EXERCISE).write_bytes(MINE)
    if upstream:
        publish(origin, **upstream)
    said = update(clone)
    assert (clone / EXERCISE).read_bytes() == MINE and kept(clone) == [MINE]
    assert (clone / COURSE).read_text() == ("v2\n" if upstream else "v1\n")
    (line,) = [line for line in said if line.startswith(EXERCISE)]
    assert "yours, as it was" in line and ("`course reset 07a`" in line) == (EXERCISE in upstream)
    # a second time too: the copy of the first is not overwritten
    update(clone)
    assert (clone / EXERCISE).read_bytes() == MINE and kept(clone) == [MINE, MINE]


def test_an_edited_notebook_gives_way_to_a_new_one_and_is_kept(origin, clone):
    (clone / NOTEBOOK).write_bytes(MINE)
    publish(origin, **{NOTEBOOK: "{v2}\n"})
    said = update(clone)
    assert (clone / NOTEBOOK).read_text() == "{v2}\n" and kept(clone) == [MINE]
    (copy,) = (clone / ".course" / "kept").iterdir()
    assert f"{NOTEBOOK}: new version; yours is kept as .course/kept/{copy.name}" in said


def test_an_edited_notebook_stays_if_there_is_no_new_one(origin, clone):
    (clone / NOTEBOOK).write_bytes(MINE)
    publish(origin, **{EXERCISE: "v2\n"})
    assert f"{NOTEBOOK}: yours, as it was" in update(clone)
    assert (clone / NOTEBOOK).read_bytes() == MINE and (clone / EXERCISE).read_text() == "v2\n"


def test_untracked_files_are_untouched(origin, clone):
    (clone / "exercises" / "scratch ü.py").write_bytes(MINE)
    (clone / "notes.md").write_bytes(MINE)
    publish(origin, **{EXERCISE: "v2\n"})
    update(clone)
    assert (clone / "exercises" / "scratch ü.py").read_bytes() == MINE and (
        clone / "notes.md"
    ).read_bytes() == MINE


def test_files_that_were_put_into_the_index_are_no_obstacle(origin, clone):
    (clone / EXERCISE).write_bytes(MINE)
    (clone / "exercises" / "meine Lösung.py").write_bytes(MINE)
    git(clone, "add", "-A")
    git(clone, "mv", OTHER, "exercises/renamed.py")
    publish(origin, **{EXERCISE: "v2\n", COURSE: "v2\n"})
    update(clone)
    assert (clone / EXERCISE).read_bytes() == MINE and (
        clone / "exercises" / "meine Lösung.py"
    ).read_bytes() == MINE
    assert (clone / "exercises" / "renamed.py").read_text() == "v1\n" and (
        clone / COURSE
    ).read_text() == "v2\n"


def test_a_deleted_exercise_comes_back(origin, clone):
    (clone / EXERCISE).unlink()
    publish(origin, **{EXERCISE: "v2\n"})
    assert any(line.startswith(f"{EXERCISE}: was deleted") for line in update(clone))
    assert (clone / EXERCISE).read_text() == "v2\n"


def test_an_edited_exercise_that_upstream_dropped_stays(origin, clone):
    (clone / EXERCISE).write_bytes(MINE)
    (origin / EXERCISE).unlink()
    publish(origin)
    assert f"{EXERCISE}: yours, as it was" in update(clone)
    assert (clone / EXERCISE).read_bytes() == MINE


def origin_gone(origin, clone):
    origin.rename(origin.parent / "moved")


def diverged(origin, clone):
    (clone / "mine.txt").write_text("mine")
    git(clone, "add", "mine.txt")
    git(clone, "commit", "-qm", "mine")
    publish(origin, **{EXERCISE: "v2\n"})


def in_the_way(origin, clone):
    (clone / "exercises" / "ex11a_z.py").write_bytes(MINE)
    publish(origin, **{"exercises/ex11a_z.py": "v1\n"})


def no_remote(origin, clone):
    git(clone, "remote", "remove", "origin")


def own_branch(origin, clone):
    git(clone, "switch", "-qc", "mine")


def no_branch(origin, clone):
    git(clone, "checkout", "-q", "--detach")


@pytest.mark.parametrize(
    ("trouble", "says"),
    [
        (origin_gone, "cannot be reached, from which this clone gets the course"),
        (diverged, r"this clone has commits of its own.*`git rebase @\{upstream\}`"),
        (in_the_way, "untracked working tree files would be overwritten"),
        (no_remote, "does not know where it came from. `git remote add origin ADDRESS`"),
        (own_branch, "the branch mine is yours alone.*`git switch main`"),
        (no_branch, "on no branch.*`git switch NAME`"),
    ],
)
def test_a_pull_that_fails_says_why_in_a_line_and_leaves_everything_as_it_was(
    origin, clone, trouble, says
):
    trouble(origin, clone)
    (clone / EXERCISE).write_bytes(MINE)
    (clone / NOTEBOOK).write_bytes(MINE)
    (clone / OTHER).unlink()
    before = everything(clone)
    with pytest.raises(CourseError, match=f"{says}.*Your files are as they were") as caught:
        update(clone)
    assert (
        everything(clone) == before
        and "\n" not in str(caught.value)
        and "hint:" not in str(caught.value)
    )


@pytest.mark.parametrize("interrupted", [KeyboardInterrupt, OSError])
def test_an_interruption_during_the_pull_leaves_everything_as_it_was(
    clone, monkeypatch, interrupted
):
    (clone / EXERCISE).write_bytes(MINE)
    stock = updating._git

    def stops(root, *arguments):
        if arguments[0] == "pull":
            raise interrupted
        return stock(root, *arguments)

    monkeypatch.setattr(updating, "_git", stops)
    with pytest.raises(interrupted):
        update(clone)
    assert (clone / EXERCISE).read_bytes() == MINE


def test_the_copies_are_there_before_git_touches_a_file(clone, monkeypatch):
    (clone / EXERCISE).write_bytes(MINE)
    (clone / NOTEBOOK).write_bytes(MINE)
    stock, at_checkout = updating._git, []

    def killed_after_checkout(root, *arguments):
        if arguments[0] == "checkout":
            at_checkout.append((kept(clone), (clone / EXERCISE).read_bytes()))
        return stock(root, *arguments)

    monkeypatch.setattr(updating, "_git", killed_after_checkout)
    update(clone)
    assert at_checkout == [([MINE, MINE], MINE)]


def test_no_copy_no_checkout(clone, monkeypatch):
    (clone / EXERCISE).write_bytes(MINE)

    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        update(clone)
    assert (clone / EXERCISE).read_bytes() == MINE


def test_changes_to_the_course_itself_are_refused_by_name(origin, clone):
    (clone / COURSE).write_text("patched\n")
    (clone / EXERCISE).write_bytes(MINE)
    publish(origin, **{COURSE: "v2\n"})
    with pytest.raises(CourseError, match=COURSE):
        update(clone)
    assert (clone / COURSE).read_text() == "patched\n" and (clone / EXERCISE).read_bytes() == MINE


def test_a_folder_that_is_no_checkout_is_refused(tmp_path):
    with pytest.raises(CourseError, match="no git checkout"):
        update(tmp_path)


def test_copies_are_shown_as_from_the_checkout(monkeypatch):
    monkeypatch.delenv("COURSE_STATE")
    assert (
        paths.shown(paths.ROOT / ".course" / "kept" / "06_x-2025-03-01.ipynb")
        == ".course/kept/06_x-2025-03-01.ipynb"
    )


def test_what_the_learner_wrote_follows_an_exercise_to_its_new_number(origin, clone):
    (clone / EXERCISE).write_bytes(MINE)
    git(origin, "mv", EXERCISE, "exercises/ex11b_x.py")
    publish(origin, **{"exercises/ex02a_other_x.py": "v2\n"})
    said = update(clone)
    assert (clone / "exercises/ex11b_x.py").read_bytes() == MINE and not (clone / EXERCISE).exists()
    assert said[0] == f"{EXERCISE}: yours, as it was; the course calls it exercises/ex11b_x.py now"
    assert kept(clone) == [MINE]


def test_an_exercise_that_two_could_have_followed_stays_where_it_was(origin, clone):
    (clone / EXERCISE).write_bytes(MINE)
    git(origin, "rm", "-q", EXERCISE)
    publish(origin, **{"exercises/ex11b_x.py": "v2\n", "exercises/ex12b_x.py": "v2\n"})
    update(clone)
    assert (clone / EXERCISE).read_bytes() == MINE and (
        clone / "exercises/ex11b_x.py"
    ).read_text() == "v2\n"


LESSON = {
    "cells": [
        {
            "cell_type": "code",
            "source": ["x = 1\n", "x"],
            "outputs": [],
            "execution_count": None,
            "metadata": {},
        }
    ],
    "metadata": {"language_info": {"name": "python"}},
}


def run_as_jupyterlab_does(folder, source: str = "x = 1\nx") -> bytes:
    """Save the lesson as JupyterLab saves it after a run; its bytes."""
    cell = LESSON["cells"][0] | {
        "source": source,
        "outputs": [{"output_type": "stream", "name": "stdout", "text": "1"}],
    }
    notebook = {
        "cells": [cell],
        "metadata": {"language_info": {"name": "python", "version": "3.11.7"}, "widgets": {}},
    }
    (folder / NOTEBOOK).write_text(json.dumps(notebook, indent=1))
    notebook_filter.note_saved(folder / NOTEBOOK)
    return (folder / NOTEBOOK).read_bytes()


@pytest.fixture
def watched(origin, clone):
    """A clone in which JupyterLab was started once."""
    attributes = (paths.ROOT / ".gitattributes").read_text()
    publish(origin, **{NOTEBOOK: json.dumps(LESSON), ".gitattributes": attributes})
    git(clone, "pull", "-q")
    assert git(clone, "status", "--short") == ""
    run_as_jupyterlab_does(clone)
    assert git(clone, "status", "--short") == f" M {NOTEBOOK}\n"
    notebook_filter.watch(clone)
    return clone


def test_a_notebook_that_was_only_run_is_no_change(watched):
    run_as_jupyterlab_does(watched)
    assert git(watched, "status", "--short") == "" == git(watched, "diff", "HEAD")
    git(watched, "add", "-A")
    git(watched, "commit", "-q", "--allow-empty", "-m", "mine")
    assert json.loads(git(watched, "show", f"HEAD:{NOTEBOOK}")) == LESSON


@pytest.mark.parametrize(
    "text", ["no notebook", '{"cells": []}', json.dumps(LESSON | {"cells": []})]
)
def test_any_other_change_of_a_notebook_is_seen(watched, text):
    run_as_jupyterlab_does(watched, "x = 2\nx")
    assert git(watched, "status", "--short") == f" M {NOTEBOOK}\n"
    assert "x = 2" in git(watched, "diff")
    (watched / NOTEBOOK).write_text(text)
    assert git(watched, "status", "--short") == f" M {NOTEBOOK}\n"


def test_without_its_environment_git_sees_the_notebook_as_it_is(watched, monkeypatch):
    monkeypatch.setattr(sys, "executable", str(watched / ".venv" / "bin" / "python"))
    notebook_filter.watch(watched)
    run_as_jupyterlab_does(watched)
    seen = subprocess.run(
        ["git", "status", "--short"], cwd=watched, check=True, capture_output=True, text=True
    )
    assert (seen.stdout, seen.stderr) == (f" M {NOTEBOOK}\n", "")


def test_what_the_course_built_anew_is_seen(watched):
    cell = LESSON["cells"][0] | {
        "outputs": [{"output_type": "stream", "name": "stdout", "text": "2"}]
    }
    (watched / NOTEBOOK).write_text(json.dumps(LESSON | {"cells": [cell]}))
    assert git(watched, "status", "--short") == f" M {NOTEBOOK}\n"


def test_of_a_notebook_that_was_only_run_a_copy_is_kept(origin, watched):
    mine = run_as_jupyterlab_does(watched)
    assert git(watched, "status", "--short") == ""
    publish(origin, **{COURSE: "v2\n"})
    update(watched)
    assert (watched / NOTEBOOK).read_bytes() == mine
    new = json.dumps(LESSON | {"nbformat": 4})
    publish(origin, **{NOTEBOOK: new})
    update(watched)
    assert (watched / NOTEBOOK).read_text() == new
    assert mine in [
        copy.read_bytes() for copy in (watched / ".course" / "kept").rglob("*") if copy.is_file()
    ]


def test_an_exercise_that_nobody_began_takes_what_is_new_in_whatever_language_it_is(origin, clone):
    exercise = catalog.get("00a")
    name = f"exercises/{exercise.file}.py"
    publish(origin, **{name: make_learners_text(exercise, "en")})
    update(clone)
    (clone / name).write_text(make_learners_text(exercise, "zh_CN"))
    publish(origin, **{name: "v2\n"})
    assert update(clone) == ["1 files of the course changed."]
    assert (clone / name).read_text() == "v2\n" and not (clone / ".course" / "kept").exists()
