"""``course release``: what a learner gets works, and has no answer of a graded exercise in it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from course_lib import catalog
from course_lib.authoring import notebooks, release
from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.catalog import step_cells, texts
from course_lib.catalog.cut import BEGIN, END, drop_marks
from course_lib.cli.watch import WatchSession

SAYS_SO = "is not in this copy of the course: whoever made it for you left the solutions out"


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("class") / "course"
    release.release(folder)
    return folder


@pytest.fixture(scope="module")
def names(made) -> list[str]:
    return [str(path.relative_to(made)) for path in made.rglob("*") if path.is_file()]


# This environment has the whole course installed, and would find there what the release lacks.
ALONE = """
import runpy, sys
sys.meta_path[:] = [finder for finder in sys.meta_path if "editable" not in getattr(finder, "__module__", "")]
sys.argv[0] = "course"
runpy.run_path("course_command.py", run_name="__main__")
"""  # noqa: E501


def course(made: Path, *words: str) -> tuple[int, str]:
    """A command in the release, with the release's own code and the packages of this environment:
    exit code, and what it said."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("COURSE_", "TRITON_"))
    }
    done = subprocess.run(
        [sys.executable, "-c", ALONE, *words], cwd=made,
        env=environment | {"PYTHONPATH": str(made)}, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


def test_it_has_what_a_learner_needs_and_nothing_of_authors_and_instructors(made, names):
    assert not [place for place in release.COPIED if not (made / place).exists()], (
        "named in COPIED, and not there"
    )
    assert {name.partition("/")[0] for name in names} <= {name.partition("/")[0] for name
        in release.COPIED} | {
        "Makefile", "README.md", "exercises", "notebooks",
    }  # fmt: skip
    assert not [
        name
        for name in names
        if re.search(
            r"(^|/)(tests|solutions|source|authoring|classroom|\.course|__pycache__)/", name
        )
    ]
    assert {name for name in names if re.match("course_lib/exercises/.+/", name)} == {
        f"course_lib/exercises/{exercise.file}/{name}"
        for exercise in catalog.exercises().values()
        for name in ("exercise.toml", "cases.py")
    }
    assert {path.name for path in (made / "notebooks").iterdir()} == {"images",
        *(f"{source.stem}.ipynb" for source in notebooks.list_sources())}  # fmt: skip
    assert os.access(made / ".binder" / "postBuild", os.X_OK)
    for exercise in catalog.exercises().values():
        assert (made / "exercises" / f"{exercise.file}.py").read_text() == texts.make_unsolved_text(
            exercise
        )


def test_no_file_of_it_has_a_solution_in_it(made, names):
    everything = "\n".join(
        (made / name).read_text(encoding="utf-8", errors="replace") for name in names
    )
    everything += "\n".join(
        "".join(cell["source"])
        for path in (made / "notebooks").glob("*.ipynb")
        for cell in json.loads(path.read_text())["cells"]
    )
    for exercise in catalog.exercises().values():
        parts = re.findall(rf"{BEGIN}\n(.*?){END}", texts.read_solution(exercise), re.DOTALL)
        solved = [drop_marks(part).strip("\n ") for part in parts]
        assert solved and not [
            part for part in solved if part.count("\n") >= 3 and part in everything
        ], exercise.id


def test_its_steps_are_those_of_the_lessons(monkeypatch, made):
    wanted = {
        source.stem[:2]: step_cells.list_ids(source.stem[:2]) for source in notebooks.list_sources()
    }
    cells = {key: step_cells._read(key) for keys in wanted.values() for key in keys}
    monkeypatch.setattr(paths, "RELEASED", made / paths.RELEASED.relative_to(paths.ROOT))
    assert paths.is_release() and cells
    assert {lesson: step_cells.list_ids(lesson) for lesson in wanted} == wanted
    assert {key: step_cells._read(key) for key in cells} == cells


def test_its_makefile_has_the_learners_commands_alone(made):
    text = (made / "Makefile").read_text()
    targets = re.findall(r"^([a-z-]+):", text, re.MULTILINE)
    assert targets == ["help", "env", "lab", "doctor", "update", "clean"]
    assert re.search(r"^\.PHONY: (.*)$", text, re.MULTILINE)[1].split() == [
        "help",
        "lab",
        "env",
        "doctor",
        "update",
        "clean",
    ]
    listed = subprocess.run(["make", "-C", made], capture_output=True, text=True, check=True).stdout
    assert "author" not in listed and "nbval" not in listed and "TEST_ARGS" not in listed


def test_every_link_of_its_pages_resolves(made):
    for page in [*made.glob("*.md"), *(made / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
    assert "VERSION" not in (made / "README.md").read_text()


@pytest.mark.slow
def test_a_check_grades_in_it_and_the_solution_is_refused_in_words(made):
    code, said = course(made, "check", "00a")
    assert code == 2, said
    file = made / "exercises" / f"{catalog.get('00a').file}.py"
    unsolved = file.read_text()
    file.write_text(texts.read_solution(catalog.get("00a")))
    code, said = course(made, "check", "00a", "--json")
    assert code == 0 and json.loads(said)["status"] == "pass", said
    for words in (("solution", "00a"), ("solution", "01a", "--yes")):
        code, said = course(made, *words)
        assert code == 3 and SAYS_SO in " ".join(said.split()) and "course hint" in said
    assert course(made, "reset", "00a")[0] == 0 and file.read_text() == unsolved
    assert course(made, "status")[0] == 0
    assert (
        "For authors" not in course(made, "--help")[1]
        and "For instructors" not in course(made, "--help")[1]
    )


@pytest.mark.parametrize(
    "alone", [ALONE, "import runpy; runpy.run_path('course_command.py', run_name='__main__')"]
)
@pytest.mark.parametrize(
    "words",
    [
        ("grade", "exercises", "-o", "out"),
        ("author", "new", "exercise", "99a_x"),
        ("author", "check"),
        ("release", "x"),
    ],
)
def test_commands_of_instructors_and_authors_are_refused_in_it_in_a_sentence(
    made, monkeypatch, words, alone
):
    """Also where an environment has the whole course installed, and would find there what the
    release lacks."""
    monkeypatch.setattr(sys.modules[__name__], "ALONE", alone)
    code, said = course(made, *words)
    assert code == 3 and said.count("\n") == 1, said
    assert (
        "is a copy of the course for learners, without solutions and without what `course"
        f" {words[0]}` needs" in said
    )
    assert (
        "give the command in the whole course" in said
        and not (made / "out").exists()
        and not (made / "x").exists()
    )


def test_its_readme_leads_to_what_to_do_about_messages(made):
    assert (
        "(docs/setup.md)" in (made / "README.md").read_text()
        and (made / "docs" / "setup.md").exists()
    )


@pytest.mark.slow
def test_the_first_cells_of_a_lesson_run_in_it_and_its_panel_says_so(made, tmp_path):
    notebook = nbformat.read(made / "notebooks" / "00_start_here.ipynb", as_version=4)
    code = [n for n, cell in enumerate(notebook.cells) if cell.cell_type == "code"]
    first_step = next(n for n in code if "step(" in notebook.cells[n].source)
    panel = next(n for n in code if "exercise(" in notebook.cells[n].source)
    wanted = [n for n in code if n <= first_step] + [panel]
    press = (
        "from course_lib.lessons.panel import exercise\nimport"
        " course_lib\nprint(course_lib.__file__)\npanel ="
        " exercise('00a')\npanel._buttons['Solution'].click()\nprint(panel._extra.value)"
    )
    notebook.cells = [notebook.cells[n] for n in wanted] + [nbformat.v4.new_code_cell(press)]
    notebooks.execute(
        notebook,
        made / "notebooks",
        PYTHONPATH=str(made),
        COURSE_STATE=str(tmp_path),
        COURSE_EXERCISES=str(made / "exercises"),
    )
    shown = "".join(json.dumps(cell.outputs) for cell in notebook.cells)
    assert str(made / "course_lib") in shown, "the lesson ran with the code of the release"
    assert "Step 00-" in shown and "not yet" in shown
    assert SAYS_SO in shown and "course hint 00a" in shown


def test_nothing_is_ever_overwritten(tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    (tmp_path / "file").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name, words in {
        "full": "is not empty, and nothing is overwritten",
        "file": "is no folder",
        "link": "is no folder",
    }.items():
        with pytest.raises(CourseError, match=words):
            release.release(tmp_path / name)
    with pytest.raises(CourseError, match="lies in the course's own files"):
        release.release(paths.ROOT / "course_lib" / "mine")
    assert (tmp_path / "full" / "mine.txt").read_text() == (tmp_path / "file").read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "full", "link"]


def test_files_that_come_while_it_is_made_stay_and_nothing_half_made_does(tmp_path, monkeypatch):
    folder = tmp_path / "class"
    monkeypatch.setattr(release, "_collect", lambda: iter([("README.md", b"x")]))

    def interfere(_folder: Path) -> None:
        folder.mkdir()
        (folder / "mine.txt").write_text("mine")

    monkeypatch.setattr(release.exercises, "write", interfere)
    with pytest.raises(CourseError, match="is not empty"):
        release.release(folder)
    assert [path.name for path in tmp_path.iterdir()] == ["class"] and [
        p.name for p in folder.iterdir()
    ] == ["mine.txt"]


def test_watch_says_in_its_footer_that_there_is_no_solution(monkeypatch, made):
    monkeypatch.setattr(paths, "RELEASED", made / paths.RELEASED.relative_to(paths.ROOT))
    session = WatchSession(catalog.get("00a"))
    session.press("s")
    assert SAYS_SO in session.message
    session.press("y")
    assert "does nothing here" in session.message, "nothing was asked"


def test_a_release_can_be_installed_in_place_as_its_environment_does_it(made, tmp_path):
    """The build asks setup.py for what pyproject.toml leaves to it."""
    place = tmp_path / "course"  # a build leaves its notes there
    shutil.copytree(made, place)
    done = subprocess.run(
        [sys.executable, "setup.py", "-q", "--name"],
        cwd=place,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout.strip().splitlines()[-1:]) == (
        0,
        ["norm-kernels-course"],
    ), done.stderr
