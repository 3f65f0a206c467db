"""The course folder of an installed package: what is written, what is left, and what a command says
outside of one."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from course_lib.authoring.notebooks import list_sources
from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.base.installation import install_again, missing_package
from course_lib.catalog import exercises, texts
from course_lib.cli import app
from course_lib.grading.check import check
from course_lib.learner import folder

NOTEBOOK, EXERCISE = "notebooks/03_large_means.ipynb", "exercises/ex00a_masked_copy.py"


@pytest.fixture(autouse=True)
def installed(monkeypatch, tmp_path):
    """The course as an installed package has it: what it ships lies together, here in the
    checkout."""
    monkeypatch.setattr(paths, "SHIPPED", paths.FILES)
    monkeypatch.delenv("COURSE_EXERCISES", raising=False)
    monkeypatch.delenv("COURSE_STATE", raising=False)
    monkeypatch.chdir(tmp_path)


def read_all(place: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(place)): file.read_bytes()
        for file in place.rglob("*")
        if file.is_file()
    }


def test_a_new_folder_has_exercises_lessons_and_nothing_that_runs_the_course(tmp_path):
    place = tmp_path / "my-course"
    assert folder.make(place) == []
    files = read_all(place)
    for exercise in exercises().values():
        assert files[f"exercises/{exercise.file}.py"] == texts.make_unsolved_text(exercise).encode()
    lessons = {f"notebooks/{file.name}" for file in paths.NOTEBOOKS.glob("[0-9]*.ipynb")}
    drawn = {
        f"notebooks/{name}"
        for lesson in lessons
        for name in re.findall(r"\]\((images/[^)]+)\)", files[lesson].decode())
    }
    assert drawn and {name for name in files if name.startswith("notebooks/")} == lessons | drawn
    assert {Path(name).parts[0] for name in files} == {
        "exercises",
        "notebooks",
        "docs",
        "README.md",
        "AGENTS.md",
        ".course",
    }
    assert not any(
        "BEGIN SOLUTION" in data.decode()
        for name, data in files.items()
        if name.startswith("exercises/")
    )


def test_links_of_the_pages_in_a_folder_lead_somewhere(tmp_path):
    folder.make(tmp_path / "c")
    readme = (tmp_path / "c" / "README.md").read_text()
    for name in ("docs/commands.md", "docs/cpu-mode.md"):
        assert f"({name})" in readme and (tmp_path / "c" / name).is_file()


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    changed=st.sets(
        st.sampled_from(
            [
                NOTEBOOK,
                EXERCISE,
                "notebooks/00_start_here.ipynb",
                "exercises/ex12a_repair_the_lock.py",
            ]
        )
    ),
    newer=st.booleans(),
    renew=st.booleans(),
)
def test_what_a_learner_changed_is_never_lost(tmp_path_factory, changed, newer, renew):
    place = tmp_path_factory.mktemp("course") / "c"
    folder.make(place)
    for name in changed:
        (place / name).write_bytes(b"mine: " + name.encode())
    if newer:  # as a package finds a folder that an older one made
        marker = place / paths.MARKER
        remembered = json.loads(marker.read_text())
        remembered["given"] = {
            name: "0" * 64 if name in changed else value
            for name, value in remembered["given"].items()
        }
        marker.write_text(json.dumps(remembered))
    said = folder.make(place, renew=renew)
    kept = {file.read_bytes() for file in (place / ".course").rglob("*") if file.is_file()}
    for name in changed:
        mine, taken = b"mine: " + name.encode(), newer and renew and name.endswith(".ipynb")
        assert ((place / name).read_bytes() == mine) != taken
        assert not taken or mine in kept
        assert any(line.startswith(f"{name}: ") for line in said) == newer
    assert len(said) == (len(changed) if newer else 0)
    assert folder.make(place, renew=False) == [line for line in said if "yours, as it was" in line]


def test_untouched_files_take_the_newer_text_and_missing_ones_come_back(tmp_path):
    place = tmp_path / "c"
    folder.make(place)
    whole = read_all(place)
    marker = json.loads((place / paths.MARKER).read_text())
    (place / NOTEBOOK).write_bytes(b"older")
    marker["given"][NOTEBOOK] = folder._hash(place / NOTEBOOK)
    (place / paths.MARKER).write_text(json.dumps(marker))
    (place / EXERCISE).unlink()
    assert folder.make(place) == []
    assert read_all(place) == whole


def test_a_damaged_or_missing_marker_makes_every_changed_file_the_learners(tmp_path):
    place = tmp_path / "c"
    folder.make(place)
    (place / EXERCISE).write_text("mine")
    for damage in (
        lambda: (place / paths.MARKER).write_text("{"),
        lambda: (place / paths.MARKER).unlink(),
    ):
        damage()
        assert folder.make(place, renew=True) == []
        assert (place / EXERCISE).read_text() == "mine"


def test_a_folder_with_other_things_is_refused_and_left(tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "thesis.tex").write_text("x")
    with pytest.raises(CourseError, match="holds other files"):
        folder.make(other)
    assert read_all(other) == {"thesis.tex": b"x"}
    with pytest.raises(CourseError, match="is no folder"):
        folder.make(other / "thesis.tex")
    folder.make(tmp_path / "c")
    with pytest.raises(CourseError, match="lies in the course folder"):
        folder.make(tmp_path / "c" / "again")


@pytest.mark.parametrize("command",
    [[], ["check"], ["check", "00a"], ["status"], ["reset", "00a"], ["watch"], ["hint"], ["hunt"],
        ["solution", "00a", "--yes"], ["lab"], ["env"], ["update"],
        ["check", "00a", "--file", "x.py"]])  # fmt: skip
def test_a_command_outside_a_folder_says_how_to_make_one_and_writes_nothing(
    command, capsys, tmp_path
):
    before = read_all(tmp_path)
    assert app.run(command) == app.BAD_REQUEST
    said = capsys.readouterr().err
    assert (
        "is not in a course folder" in said
        and "course init my-course`" in said
        and len(said.splitlines()) == 1
    )
    assert read_all(tmp_path) == before


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"UV": "/bin/uv"}, "`uvx norm-kernels-course init my-course`"),
        ({"PATH": "{bin}"}, "`course init my-course`"),
        ({"PATH": ""}, f"`{Path(sys.executable).with_name('course')} init my-course`"),
    ],
)
@pytest.mark.parametrize("arguments", [[], ["init"]])
def test_who_names_no_folder_is_told_what_to_type(
    settings, says, arguments, capsys, tmp_path, monkeypatch
):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "course").touch(0o755)
    monkeypatch.delenv("UV", raising=False)
    for name, value in settings.items():
        monkeypatch.setenv(name, value.format(bin=tmp_path / "bin"))
    assert app.run(arguments) in (app.BAD_REQUEST, app.USAGE_ERROR)
    assert says in capsys.readouterr().err


def test_a_course_that_came_from_a_clone_is_run_from_there_again(monkeypatch, tmp_path):
    monkeypatch.setattr(
        paths, "read_origin", lambda: {"url": "file:///home/me/my%20clone", "dir_info": {}}
    )
    monkeypatch.setenv("UV", "/usr/bin/uv")
    assert paths.name_program() == "uvx --from '/home/me/my clone' norm-kernels-course"
    folder.make(tmp_path / "c")
    assert f"`{paths.name_uvx()} lab`" in (tmp_path / "c" / "README.md").read_text()


def test_help_and_init_need_no_folder(capsys, tmp_path, monkeypatch):
    assert app.run(["check", "--help"]) == 0 and "Grade your file" in capsys.readouterr().out
    monkeypatch.delenv("UV", raising=False)
    assert app.run(["init", "my-course"]) == 0
    printed = capsys.readouterr().out
    assert f"{len(list_sources())} lessons" in printed and "What you wrote" not in printed
    assert printed.splitlines()[-1].startswith(
        "Next: cd my-course && "
    ) and printed.rstrip().endswith(" lab")
    assert (
        app.run(["init", "my-course"]) == 0
        and "What you wrote is as it was." in capsys.readouterr().out
    )
    monkeypatch.setenv("UV", "/usr/bin/uv")
    assert (
        app.run(["init", "two"]) == 0
        and "&& uvx norm-kernels-course lab" in capsys.readouterr().out
    )


def test_the_folder_is_found_from_inside_and_paths_are_shown_from_it(tmp_path, monkeypatch):
    place = tmp_path / "c"
    folder.make(place)
    monkeypatch.chdir(place / "notebooks")
    assert (
        paths.folder() == place.resolve() and paths.exercises() == (place / "exercises").resolve()
    )
    assert (
        paths.shown(place / EXERCISE) == EXERCISE
        and paths.locate(EXERCISE) == (place / EXERCISE).resolve()
    )
    assert paths.shown(Path(os.sep, "etc", "passwd")) == "/etc/passwd"


def test_the_name_that_uvx_runs_takes_a_folder_or_any_command(monkeypatch):
    import course_command

    def name(*arguments: str, program: str = "norm-kernels-course") -> list[str]:
        return course_command._name_command([f"/somewhere/bin/{program}", *arguments])

    assert name("my-course") == ["init", "my-course"] and name("my-course", "--newest") == [
        "init",
        "my-course",
        "--newest",
    ]
    assert (
        name("check", "00a") == ["check", "00a"] and name() == [] and name("--help") == ["--help"]
    )
    assert name("my-course", program="course") == ["my-course"]


def test_a_file_is_checked_where_there_is_no_course_folder(tmp_path):
    """An instructor grades a class with the installed package, and has no folder of their own."""
    exercise = exercises()["00a"]
    file = tmp_path / "ex00a_masked_copy.py"
    file.write_text(texts.read_solution(exercise))
    assert paths.find_folder() is None and check(exercise, file, mode="cpu").passed


@pytest.mark.parametrize(
    ("left", "says"),
    [((), "not made yet"), ((".course-building",), "not finished"), (("lib",), "not finished")],
)
def test_an_environment_that_was_not_finished_has_one_remedy_and_it_deletes_nothing(
    left, says, tmp_path, monkeypatch
):
    """`course env` starts afresh by itself, and waits for an installer that is still at work; `rm`
    would work against it."""
    folder.make(tmp_path / "c")
    for name in left:
        (tmp_path / "c" / ".venv" / name).mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "c")
    said = str(missing_package("numpy"))
    assert (
        says in said
        and f"`{paths.name_program()} env`" in said
        and "rm -r" not in said + install_again()
    )


def test_through_uv_each_command_is_named_as_uv_runs_it(tmp_path, monkeypatch, capsys):
    """uvx leaves no command `course` in the shell, and keeps the package as it was built first."""
    folder.make(tmp_path / "c")
    monkeypatch.chdir(tmp_path / "c")
    monkeypatch.setenv("UV", "/bin/uv")
    monkeypatch.setattr(paths, "read_origin", lambda: {"url": "file:///home/me/clone"})
    assert "`uvx --from /home/me/clone norm-kernels-course env` makes it alone" in str(
        missing_package("numpy")
    )
    monkeypatch.setattr("course_lib.learner.environment.upgrade_package", lambda: False)
    monkeypatch.setattr(os, "execv", lambda *command: None)
    app.run(["update"])
    assert (
        "`uvx --refresh --from /home/me/clone norm-kernels-course update` fetches the newest"
        in capsys.readouterr().err
    )
    monkeypatch.setattr(paths, "read_origin", dict)
    app.run(["update"])
    assert "`uvx norm-kernels-course@latest update` fetches the newest" in capsys.readouterr().err


def test_a_finished_environment_that_lacks_a_package_is_made_anew(tmp_path, monkeypatch):
    folder.make(tmp_path / "c")
    (tmp_path / "c" / ".venv").mkdir()
    (tmp_path / "c" / ".venv" / ".course-stamp").write_text("{}")
    monkeypatch.chdir(tmp_path / "c")
    assert "`rm -r .venv`, then `course env`," in str(missing_package("numpy"))


def test_exercises_that_nobody_began_are_in_the_language_of_the_lessons(tmp_path, monkeypatch):
    place = tmp_path / "my-course"
    folder.make(place)
    monkeypatch.chdir(place)
    changed, untouched = place / EXERCISE, place / "exercises" / "ex01a_layer_norm.py"
    changed.write_bytes(changed.read_bytes() + b"# mine\n")
    before = read_all(place)
    monkeypatch.setenv("COURSE_LANG", "zh")
    folder.translate_exercises(place)
    assert changed.read_bytes() == before[EXERCISE]
    assert untouched.read_text() == texts.make_learners_text(exercises()["01a"], "zh_CN")
    assert re.search("[\u4e00-\u9fff]", untouched.read_text())
    monkeypatch.setenv("COURSE_LANG", "en")
    assert not any("01a" in note for note in folder.make(place, renew=True)), "it is not a change"
    folder.translate_exercises(place)
    assert read_all(place).items() >= {n: d for n, d in before.items() if n[0] == "e"}.items()
