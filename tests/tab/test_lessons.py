"""Lessons in JupyterLite: run from top to bottom, checked, reloaded, and nothing asked of any other
host."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

from course_lib import catalog
from course_lib.base import paths

pytestmark = pytest.mark.timeout(1800)  # a bound, for a machine that is busy with other work
_PATIENCE = 600_000  # milliseconds, a bound likewise

_PANEL = ".course-exercise:has(button:text-is('Check'))"
_RUN_ALL = """
async () => {
    const notebook = jupyterapp.shell.currentWidget;
    await notebook.context.ready;
    await notebook.sessionContext.ready;
    await jupyterapp.commands.execute("notebook:run-all-cells");
    return notebook.content.model.toJSON().cells.flatMap((cell) => (cell.outputs ?? []).filter((o) => o.output_type === "error" || o.name === "stderr"))
        .map((output) => output.evalue ?? output.text);
}
"""  # noqa: E501
_SCROLL = """
async () => {
    const notebook = jupyterapp.shell.currentWidget.content;
    const cells = notebook.model.toJSON().cells;
    notebook.activeCellIndex = cells.findIndex((cell) => cell.cell_type === "code" && [cell.source].flat().join("").includes("exercise("));
    await notebook.scrollToItem(notebook.activeCellIndex);
}
"""  # noqa: E501
_SAVE = """
async ([path, text]) => {
    await jupyterapp.serviceManager.contents.save(path, {type: "file", format: "text", content: text});
}
"""  # noqa: E501
_KERNEL = """
async (code) => {
    const kernel = jupyterapp.shell.currentWidget.sessionContext.session.kernel;
    let said = "";
    const asked = kernel.requestExecute({code, stop_on_error: true});
    asked.onIOPub = (message) => { said += message.content.text ?? message.content.evalue ?? ""; };
    await asked.done;
    return said;
}
"""


class Lesson:
    """One lesson in a page of the browser."""

    def __init__(self, page: Any, site: str, name: str):
        self.page, self.site, self.name = page, site, name
        self.hosts: set[str] = set()
        self.asked: set[str] = set()
        page.on(
            "request",
            lambda request: self.hosts.add(
                "/".join(request.url.removeprefix("blob:").split("/")[:3])
            ),
        )
        page.context.on(
            "request",
            lambda request: self.asked.add(request.url.removeprefix(f"{site}/").partition("?")[0]),
        )
        page.set_default_timeout(_PATIENCE)

    def open(self) -> None:
        self.page.goto(f"{self.site}/lab/index.html?path=notebooks/{self.name}")
        self.page.wait_for_selector(".jp-NotebookPanel .jp-Cell")

    def run_all(self) -> list[str]:
        """Return what cells raised or printed as errors."""
        return self.page.evaluate(_RUN_ALL)

    def run(self, code: str) -> str:
        return self.page.evaluate(_KERNEL, code)

    def write(self, exercise: str, text: str) -> None:
        self.page.evaluate(_SAVE, [f"exercises/{catalog.get(exercise).file}.py", text])

    def press_check(self, words: str) -> None:
        """Press Check of the lesson's first exercise, and wait until its panel says ``words``."""
        panel = self.page.locator(_PANEL).first
        panel.locator("button:text-is('Check')").click()
        panel.filter(has_text=words).wait_for()

    def show_panel(self) -> None:
        """Scroll to the cell of the exercise: JupyterLab draws a cell when it is near."""
        self.page.evaluate(_SCROLL)
        self.page.wait_for_selector(_PANEL)


@pytest.fixture
def open_lesson(site, browser) -> Iterator[Any]:
    with contextlib.ExitStack() as pages:

        def opened(number: str) -> Lesson:
            (file,) = paths.NOTEBOOKS.glob(f"{number}_*.ipynb")
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            pages.callback(page.close)
            lesson = Lesson(page, site, file.name)
            lesson.open()
            return lesson

        yield opened


def read_solution(exercise: str) -> str:
    return (paths.SOLUTIONS / f"{catalog.get(exercise).file}.py").read_text(encoding="utf-8")


def test_lesson_00_from_the_first_cell_to_a_pass_that_is_still_there_after_a_reload(
    open_lesson, site
):
    lesson = open_lesson("00")
    assert lesson.run_all() == []
    lesson.show_panel()
    lesson.press_check("not attempted")
    solution = read_solution("00a")
    lesson.write(
        "00a", solution.replace("tl.store(y_ptr + offsets, ", "tl.store(y_ptr + offsets, 2 * ")
    )
    lesson.press_check("fail")
    lesson.write("00a", solution)
    lesson.press_check("pass")
    lesson.open()
    assert lesson.run_all() == []
    lesson.show_panel()
    assert "pass" in lesson.page.locator(_PANEL).inner_text()
    assert solution == lesson.run(
        "print(open('/drive/exercises/ex00a_masked_copy.py').read(), end='')"
    )
    assert lesson.hosts == {site}


def test_the_files_that_a_page_loads_before_a_lesson_are_those_that_its_first_cell_asks_for(
    open_lesson, site
):
    lesson = open_lesson("00")
    lesson.page.wait_for_function(
        "jupyterapp.shell.currentWidget.sessionContext.session?.kernel?.status === 'idle'"
    )
    assert lesson.run("import course_lib; print(course_lib.DEVICE)").endswith("cpu\n")
    listed = {
        name for name, _ in lesson.page.evaluate("async () => (await fetch('/files.json')).json()")
    }
    first = {"pyodide/pyodide.js", "pyodide/pyodide-lock.json"}
    assert {name for name in lesson.asked if name.startswith("pyodide/")} - first == listed


@pytest.mark.parametrize("number", ["03", "12"])
def test_every_cell_of_a_lesson_runs(number, open_lesson, site):
    lesson = open_lesson(number)
    assert lesson.run_all() == []
    assert lesson.hosts == {site}


def test_what_needs_pytorch_says_so_in_one_line(open_lesson):
    (said,) = open_lesson("17").run_all()
    assert "needs PyTorch" in said and "on your machine" in said


def test_a_check_of_lesson_12_finds_the_race(open_lesson):
    lesson = open_lesson("12")
    lesson.run_all()
    lesson.show_panel()
    lesson.write("12a", read_solution("12a").replace("tl.debug_barrier()", "pass"))
    lesson.press_check("barrier")


def test_a_tab_in_chinese_speaks_it_from_the_page_to_the_verdict(browser, chinese_site):
    with browser.new_page(viewport={"width": 1280, "height": 900}) as page:
        lesson = Lesson(page, chinese_site, "00_start_here.ipynb")
        lesson.open()
        assert lesson.run_all() == []
        assert "内核" in page.evaluate(
            "JSON.stringify(jupyterapp.shell.currentWidget.content.model.toJSON().cells.map((cell)"
            " => cell.source))"
        )
        page.evaluate(_SCROLL)
        panel = page.locator(".course-exercise:has(button:text-is('检查'))").first
        panel.locator("button:text-is('检查')").click()
        panel.filter(has_text="还没有做").wait_for()
        assert "掩码" in lesson.run(
            "print(open('/drive/exercises/ex00a_masked_copy.py').read(), end='')"
        )
