"""Stages the pages, and has Sphinx build them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

import nbformat

from course_lib.authoring import tab
from course_lib.authoring.compiler_answers import Answers
from course_lib.authoring.notebooks import read_with_answers
from course_lib.authoring.pyodide import Distribution
from course_lib.authoring.site import front, guides, lessons
from course_lib.authoring.site.html import CourseSource
from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.base.translation import choose_language, translate_markdown
from course_lib.base.translation import gettext as _
from course_lib.lessons.stylesheets import PANEL_STYLE
from course_lib.lessons.translated import read_translated, translate_notebook

_HERE = Path(__file__).parent
# An icon: a row of four lanes, the last one masked. Without an icon a browser requests one that
# does not exist.
_ICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><path fill="#0072b2" d="M0'
    ' 3h3v10H0zM4 3h3v10H4zM8 3h3v10H8z"/><path fill="none" stroke="#8a8a8a" d="M12.5'
    ' 3.5h3v9h-3z"/></svg>\n'
)
# the theme's search page has no heading
_SEARCH = (
    f'{{% extends "!search.html" %}}{{% block content %}}<h1>{_("Search")}</h1>{{{{ super() }}}}{{%'
    " endblock %}"
)


@dataclass(frozen=True)
class TabParts:
    """What a browser tab needs besides the lessons: a distribution of Pyodide, and the compiler's
    answers to the lessons."""

    pyodide: Distribution
    answers: Answers


def build(
    out: Path,
    numbers: Collection[str] = (),
    source: CourseSource | None = None,
    in_tab: TabParts | None = None,
) -> list[Path]:
    """Write the site into ``out``, in place of its old content.

    Args:
        numbers: the numbers of lessons, such as "03"; none means all.
        in_tab: with what the lessons run in the browser, in ``out/tab``; None leaves this out.

    Returns: the site's pages.

    Raises: CourseError if a page cannot be made, or Sphinx has a warning: a link that leads
    nowhere, a formula that cannot be drawn.
    """
    staged = out.with_name(f"{out.name}-source")
    for folder in (staged, out):
        shutil.rmtree(folder, ignore_errors=True)
    source = source or CourseSource.read()
    if in_tab is not None:
        tab.build_site(in_tab.pyodide, staged / "_extra" / "tab", in_tab.answers)
        source = replace(
            source,
            tab_bytes=tab.count_bytes(staged / "_extra" / "tab"),
            bf16_in_tab=in_tab.pyodide.has_bf16,
        )
    stage(staged, numbers, source)
    run_sphinx(staged, out)
    return sorted(page for page in out.rglob("*.html") if out / "tab" not in page.parents)


def stage(folder: Path, numbers: Collection[str], source: CourseSource) -> None:
    """Write everything that Sphinx reads into ``folder``.

    Raises: CourseError if there is no such lesson, or a page cannot be made.
    """
    files = [
        file
        for file in sorted(paths.NOTEBOOKS.glob("*.ipynb"))
        if not numbers or file.name[:2] in numbers
    ]
    if not files or len(files) < len(set(numbers)):
        raise CourseError(
            f"not every one of the lessons {', '.join(numbers) or 'of the course'} is in"
            f" {paths.shown(paths.NOTEBOOKS)}. `make build` builds them."
        )
    built = {file.stem: read_with_answers(file) for file in files}
    if choose_language() != "en":
        for name, notebook in built.items():
            translate_notebook(notebook, f"lesson{name[:2]}")
    names = guides.list_guides()
    pages = {*names, *(f"notebooks/{name}.ipynb" for name in built)}
    for name, notebook in built.items():
        page = lessons.make_page(notebook, name, source)
        for cell in page.cells:
            if cell.cell_type == "markdown":
                cell.source = guides.mend_links(
                    cell.source, f"notebooks/{name}.ipynb", source, pages
                )
        _write(folder / "notebooks" / f"{name}.ipynb", nbformat.writes(page))
    shutil.copytree(paths.NOTEBOOKS / "images", folder / "notebooks" / "images")
    for name in names:
        _write(folder / name, guides.read_guide(name, source, pages))
    # the README's table has what each lesson is about
    readme = translate_markdown((paths.ROOT / "README.md").read_text(encoding="utf-8"), "readme")
    lesson_facts = [lessons.read_lesson(notebook, name, readme) for name, notebook in built.items()]
    _write(folder / "index.md", front.write_front(built, lesson_facts, names, source))
    for file in files:
        _write(folder / "_extra" / "notebooks" / file.name, read_translated(file))
    # without it, GitHub Pages leaves out folders that begin with _
    _write(folder / "_extra" / ".nojekyll", "")
    outputs = PANEL_STYLE.removeprefix("<style>").removesuffix("</style>")
    _write(
        folder / "_static" / "site.css",
        outputs + "\n" + (_HERE / "site.css").read_text(encoding="utf-8"),
    )
    _write(folder / "conf.py", (_HERE / "conf.py").read_text(encoding="utf-8"))
    _write(folder / "_static" / "icon.svg", _ICON)
    _write(folder / "_templates" / "search.html", _SEARCH)
    shutil.copy(paths.ROOT / "docs" / "images" / "course-light.png", folder / "_static")
    _write(folder / "_static" / "site.js", (_HERE / "site.js").read_text(encoding="utf-8"))


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def run_sphinx(staged: Path, out: Path) -> None:
    """Build the site with Sphinx, which prints its warnings and errors.

    Raises: CourseError if Sphinx ends with a warning or an error.
    """
    from sphinx.cmd.build import main

    doctrees = staged.with_name(f"{staged.name}-doctrees")
    # Every warning is an error. Sphinx ends after it has shown all of them.
    arguments = [
        "-q",
        "-W",
        "--keep-going",
        "-b",
        "html",
        "-d",
        str(doctrees),
        str(staged),
        str(out),
    ]
    try:
        failed = main(["-j", str(min(os.cpu_count() or 1, 4)), *arguments])
    finally:
        shutil.rmtree(doctrees, ignore_errors=True)
    if failed:
        raise CourseError(
            "the site could not be built; Sphinx said why above. Its sources are in"
            f" {paths.shown(staged)}."
        )
