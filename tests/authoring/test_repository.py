"""Where the repository is known, README and the site have buttons that open the course
elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from urllib.parse import parse_qs, urlsplit

import nbformat
import pytest

from course_lib import catalog
from course_lib.authoring import hosted, readme, repository
from course_lib.base import paths

GITHUB = "https://github.com/example/norms"


def test_the_project_may_name_its_repository(tmp_path):
    project = tmp_path / "pyproject.toml"
    project.write_text('[project]\nname = "norms"\n')
    assert repository.read_repository(project) == ""
    project.write_text(f'{project.read_text()}[project.urls]\nRepository = "{GITHUB}/"\n')
    assert repository.read_repository(project) == GITHUB


def test_each_service_opens_a_file_of_this_repository():
    launches = repository.list_launches(GITHUB, "notebooks/03_large_means.ipynb")
    assert launches == repository.list_launches(f"{GITHUB}.git", "notebooks/03_large_means.ipynb")
    assert all("example/norms" in address for address in launches.values())
    (opened,) = parse_qs(urlsplit(launches["Binder"]).query)["urlpath"]
    named = [
        opened.removeprefix("lab/tree/"),
        *(launches[name].partition("/blob/main/")[2] for name in ("Colab", "Kaggle")),
    ]
    assert all((paths.ROOT / name).is_file() for name in named), named


@pytest.mark.parametrize("address", ["", "https://example.org/norms/course", f"{GITHUB}/tree/main"])
def test_without_an_address_on_github_there_is_no_button(address):
    assert repository.list_launches(address) == {} and repository.write_badges(address) == ""


def test_the_readme_has_the_buttons_once_the_address_is_known():
    text = readme.PAGE.read_text(encoding="utf-8")
    page = readme.make_page(text, repository=GITHUB)
    assert set(repository.list_launches(GITHUB).values()) <= set(
        re.findall(r"\]\((https://[^)]+)\)", page)
    )
    assert readme.make_page(page, repository="") == text


def test_the_hosted_notebook_is_lesson_00_with_its_set_up():
    notebook = nbformat.read(hosted.FILE, as_version=4)
    nbformat.validate(notebook)
    assert notebook == hosted.make_notebook(), "run python -m course_lib.authoring.hosted"
    assert not any(cell.get("outputs") for cell in notebook.cells)
    assert "import course_lib" in [cell.source for cell in notebook.cells[4:]]


def test_a_set_up_that_cannot_install_stops_with_a_sentence(tmp_path):
    cell = re.sub(
        'SOURCE = "[^"]*"',
        f"SOURCE = {str(tmp_path / 'no-such-file.whl')!r}",
        hosted.write_set_up(),
    )
    run = subprocess.run(
        (sys.executable, "-c", cell), cwd=tmp_path, text=True, capture_output=True, timeout=200
    )
    assert run.returncode == 1 and run.stderr.splitlines()[-1].startswith(
        "course: pip could not install the course from "
    )
    assert "Traceback" not in run.stderr and not (tmp_path / "my-course").exists()


@pytest.mark.parametrize(
    ("published", "repository", "source", "upload"),
    [
        (False, "", paths.DISTRIBUTION, True),
        (False, GITHUB, f"git+{GITHUB}", False),
        (True, GITHUB, paths.DISTRIBUTION, False),
    ],
)
def test_the_set_up_takes_the_package_from_where_it_is(
    monkeypatch, published, repository, source, upload
):
    monkeypatch.setattr(hosted, "is_published", lambda: published)
    monkeypatch.setattr(hosted, "read_repository", lambda: repository)
    cell = hosted.write_set_up()
    assert (
        f'SOURCE = "{source}"' in cell
        and ("pip wheel --no-deps ." in cell) == upload
        and "@" not in cell
    )
    compile(cell, "set-up", "exec")


def test_each_cell_of_a_hosted_notebook_says_about_how_long_it_takes():
    lesson = [cell.source for cell in hosted.read_source(hosted.list_sources()[0]).cells]
    for file in (hosted.FILE, hosted.GPU_FILE):
        for cell in nbformat.read(file, as_version=4).cells:
            if cell.cell_type == "code" and cell.source not in lesson:
                comment = cell.source.partition("\n")[0]
                assert comment.startswith("# ") and re.search(
                    r"\b(seconds?|minutes?)\b", comment
                ), cell.source
    (about,) = (
        cell.source
        for cell in nbformat.read(hosted.FILE, as_version=4).cells
        if cell.id == "about-the-machine"
    )
    assert "Each cell of the\nlesson takes a second or two" in about


def test_the_newest_zip_beside_the_notebook_is_taken_and_none_is_no_fault(tmp_path, capsys):
    taken = []
    names = {
        "HERE": tmp_path,
        "os": os,
        "run_module": lambda *command, else_say: taken.append(command),
    }
    exec(hosted.IMPORT_WORK, names)
    assert not taken and "nothing was changed" in capsys.readouterr().out
    for age, name in enumerate(
        ("my-course (1).zip", "my-course.zip", "my-course-101500.zip", "photos.zip")
    ):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (1000 - age, 1000 - age))
    exec(hosted.IMPORT_WORK, names)
    assert taken == [("course_command", "import", str(tmp_path / "my-course (1).zip"))]


def test_the_half_hour_on_a_gpu_begins_with_the_same_set_up():
    notebook = nbformat.read(hosted.GPU_FILE, as_version=4)
    nbformat.validate(notebook)
    assert notebook == hosted.make_gpu_notebook(), "run python -m course_lib.authoring.hosted"
    assert not any(cell.get("outputs") for cell in notebook.cells)
    first = nbformat.read(hosted.FILE, as_version=4)
    assert notebook.cells[:3] == first.cells[:3] and notebook.cells[-2:] == first.cells[-2:]
    assert (
        notebook.cells[0].source == hosted.write_set_up()
        and "import course_lib\n" in notebook.cells[4].source
    )
    text = "\n".join(cell.source for cell in notebook.cells)
    assert not [exercise for exercise in catalog.exercises().values() if exercise.file in text], (
        "the catalog has the names of the files"
    )
