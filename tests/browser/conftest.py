"""A real JupyterLab in a real browser, over a copy of the course's notebooks and exercises.

`make test` runs what JupyterLab can do to each kind of thing that a lesson shows: a prediction with
folded answers, a panel, a picture, one that asks Python, one that is fed while a cell runs, a
question asked again, a hunt. The same in further lessons has the mark of a sweep: tests/pictures
proves what their pictures say, tests/site that each moves in a page, and `make nbval` that their
cells run.
"""

from __future__ import annotations

import ast
import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import symtable
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nbformat
import pytest
from chromium import import_playwright

from course_lib.authoring import exercises
from course_lib.base import paths

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

# git-ignored: to be looked at after a run with --screenshots
SHOTS = paths.ROOT / "build" / "screenshots"
_TOKEN = "course-test"
# Bounds, for a machine that is busy with other work: what is waited for takes seconds.
_MAX_SECONDS = 600
_MAX_MILLISECONDS = 1000 * _MAX_SECONDS
_OPEN_ANSWERS = """new MutationObserver(() => document.querySelectorAll(".course-closed:not([open])").forEach((fold) => { fold.open = true; }))
    .observe(document, { subtree: true, childList: true })"""  # noqa: E501


@dataclass(frozen=True)
class Lab:
    """A running JupyterLab: ``root`` is the folder it serves, with notebooks/ and exercises/ in
    it."""

    root: Path
    url: str

    def address(self, path: str) -> str:
        return f"{self.url}/lab/tree/{path}?token={_TOKEN}&reset"

    def ask(self, method: str, path: str) -> bytes:
        """What the server's API answers."""
        request = urllib.request.Request(f"{self.url}/{path}?token={_TOKEN}", method=method)
        return urllib.request.urlopen(request, timeout=_MAX_SECONDS).read()


class Course:
    """A learner at work: a notebook of the course in a browser, and the folder ``root`` with the
    learner's files."""

    PASS = re.compile(r"pass, (\d+) of \1 cases right")

    def __init__(self, lab: Lab, page: Page, *, keep_screenshots: bool = False):
        self.lab = lab
        self.root = lab.root
        self.page = page
        self._keep_screenshots = keep_screenshots
        self.captions = page.locator(".widget-html p[role=status]")
        # of live widgets; a saved figure is inside the page
        self.pictures = page.locator(".widget-image[src^=blob]")
        self.panel = page.locator(".course-exercise").first

    def run(
        self, notebook: str, *cells: str, until: Locator | None = None, answers_open: bool = True
    ) -> None:
        """Open the notebook and run its cells: those that hold one of the texts ``cells``, and what
        they need; all without it.

        The tests of the lessons run every cell. It waits for ``until``; without it, for the first
        panel. Answers to predictions that nobody made are closed then; ``answers_open`` opens each
        as it comes. Fails if a cell leaves an error, or writes to stderr.
        """
        if answers_open:
            self.page.add_init_script(_OPEN_ANSWERS)
        if cells:
            leave_out_others(self.root / "notebooks" / f"{notebook}.ipynb", cells)
        self.page.goto(self.lab.address(f"notebooks/{notebook}.ipynb"))
        self.page.locator(".jp-Notebook").wait_for()
        self.wait_until_idle()
        self.page.evaluate(
            "() => { window.jupyterapp.commands.execute('notebook:run-all-cells'); }"
        )
        (until or self.panel).wait_for(state="attached")
        self.wait_until_idle()
        errors = self.page.locator(
            '[data-mime-type="application/vnd.jupyter.error"],'
            ' [data-mime-type="application/vnd.jupyter.stderr"]'
        )
        assert errors.count() == 0, errors.first.inner_text()

    def wait_until_idle(self) -> None:
        self.page.get_by_role("button", name=re.compile(r"\| Idle")).wait_for()

    def theme(self, name: str) -> None:
        """Switch to "Dark" or "Light"."""
        self.page.evaluate(
            "theme => window.jupyterapp.commands.execute('apputils:change-theme', { theme })",
            f"JupyterLab {name}",
        )
        self.page.wait_for_function(
            "light => document.body.dataset.jpThemeLight === light",
            arg=str(name == "Light").lower(),
        )

    def shoot(self, name: str, element: Locator | None = None) -> None:
        """With --screenshots, keep one of the window, or of one element."""
        if not self._keep_screenshots:
            return
        # a theme's colours arrive after its name
        self.page.wait_for_function(
            "document.getAnimations().every((animation) => animation.playState !== 'running')"
        )
        SHOTS.mkdir(parents=True, exist_ok=True)
        (element or self.page).screenshot(path=SHOTS / f"{name}.png")

    def assert_readable(self, words: Locator) -> None:
        """Fails if the words of an element are about as bright as what is painted behind them."""
        colours = words.evaluate("""element => {
                for (let behind = element; ; behind = behind.parentElement ?? behind.getRootNode().host) {
                    const paper = getComputedStyle(behind).backgroundColor;
                    if (!/, 0\\)$/.test(paper)) return [getComputedStyle(element).color, paper];
                }
            }""")  # noqa: E501
        ink, paper = (
            sum(int(part) for part in re.findall(r"\d+", colour)[:3]) for colour in colours
        )
        assert abs(ink - paper) > 300, f"the words are {colours[0]} on {colours[1]}"

    def solve(self, file: str) -> None:
        """The solution becomes the learner's file."""
        shutil.copy(paths.SOLUTIONS / file, self.root / "exercises")

    def check(self) -> Locator:
        """Press Check in the first panel; the verdict, which comes later."""
        self.panel.get_by_role("button", name="Check", exact=True).click()
        return self.panel.locator(".course-verdict")


def leave_out_others(file: Path, wanted: tuple[str, ...]) -> None:
    """Leave out every code cell of a notebook but the first, those that hold a text of ``wanted``,
    and those that bind what they read."""
    notebook = nbformat.read(file, as_version=4)
    codes = [cell for cell in notebook.cells if cell.cell_type == "code"]
    lacking = [text for text in wanted if not any(text in cell.source for cell in codes)]
    assert not lacking, f"{file.name} has no cell with {lacking}"
    left_out, read = set(), set()
    for cell in reversed(codes[1:]):
        binds, reads = find_names(cell.source)
        if binds & read or any(text in cell.source for text in wanted):
            read |= reads
        else:
            left_out.add(cell.id)
    notebook.cells = [cell for cell in notebook.cells if cell.get("id") not in left_out]
    nbformat.write(notebook, file)


def find_names(code: str) -> tuple[set[str], set[str]]:
    """The global names that a cell binds, or changes by ``name[...] =`` or ``name.x =``, and those
    that it or its functions read."""
    binds, reads = set(), set()
    tables = [symtable.symtable(code, "cell", "exec")]
    for table in tables:
        tables += table.get_children()
        for symbol in table.get_symbols():
            is_global = table.get_type() == "module" or symbol.is_global()
            if is_global and (symbol.is_assigned() or symbol.is_imported()):
                binds.add(symbol.get_name())
            if is_global and symbol.is_referenced():
                reads.add(symbol.get_name())
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, (ast.Subscript, ast.Attribute)) and isinstance(node.ctx, ast.Store):
            owner = node.value
            while isinstance(owner, (ast.Subscript, ast.Attribute)):
                owner = owner.value
            if isinstance(owner, ast.Name):
                binds.add(owner.id)
    return binds, reads


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.browser)
            item.add_marker(pytest.mark.timeout(3 * _MAX_SECONDS))


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """One JupyterLab for all tests of a worker: starting it takes longer than most of them."""
    folder = tmp_path_factory.mktemp("jupyterlab")
    root = folder / "course"
    root.mkdir()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("TRITON_INTERPRET", "COURSE_EXPECT")
    }
    environment |= {
        "COURSE_EXERCISES": str(root / "exercises"),
        "COURSE_STATE": str(root / ".course"),
        "PYTHONPATH": os.pathsep.join(
            filter(None, [str(paths.ROOT), os.environ.get("PYTHONPATH")])
        ),
        "JUPYTER_CONFIG_DIR": str(folder / "config"),
        "JUPYTER_DATA_DIR": str(folder / "data"),
        "JUPYTER_RUNTIME_DIR": str(folder / "runtime"),
    }
    command = [
        sys.executable, "-m", "jupyterlab", "--no-browser", "--ip=127.0.0.1", f"--port={port}",
        "--allow-root", f"--IdentityProvider.token={_TOKEN}",
        f"--ServerApp.root_dir={root}", "--LabApp.news_url=",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
        "--LabApp.expose_app_in_browser=True",
    ]  # fmt: skip
    log = folder / "lab.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            command,
            env=environment,
            cwd=root,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    try:
        url = f"http://127.0.0.1:{port}"
        _wait_for(f"{url}/api?token={_TOKEN}", process, log)
        yield Lab(root, url)
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()


@pytest.fixture
def lab(server: Lab) -> Iterator[Lab]:
    """The JupyterLab as a newcomer finds it: the course's notebooks, exercises without a solution,
    no settings, no kernel."""
    shutil.copytree(
        paths.NOTEBOOKS,
        server.root / "notebooks",
        ignore=shutil.ignore_patterns("source", ".ipynb_checkpoints", "__pycache__"),
    )
    exercises.write(server.root / "exercises")
    yield server
    for session in json.loads(server.ask("GET", "api/sessions")):
        server.ask("DELETE", f"api/sessions/{session['id']}")
    for kept in (*server.root.iterdir(), server.root.parent / "config" / "lab"):
        shutil.rmtree(kept, ignore_errors=not kept.exists())


def _wait_for(address: str, server: subprocess.Popen, log: Path) -> None:
    end = time.monotonic() + _MAX_SECONDS
    while time.monotonic() < end and server.poll() is None:
        with contextlib.suppress(urllib.error.URLError, OSError):
            urllib.request.urlopen(address, timeout=1)
            return
        time.sleep(0.2)
    pytest.fail(f"JupyterLab did not answer:\n{log.read_text()[-3000:]}")


@pytest.fixture(scope="session")
def contexts(session_browser: Any) -> list[Any]:
    """The browser's one context, once a test has made it: what JupyterLab loads is in its cache for
    the next test."""
    return []


@pytest.fixture
def page(browser: Any, contexts: list[Any]) -> Iterator[Page]:
    """A new window of the browser."""
    if not contexts:
        contexts.append(browser.new_context(viewport={"width": 1400, "height": 1600}))
    view = contexts[0].new_page()
    view.set_default_timeout(_MAX_MILLISECONDS)
    import_playwright().expect.set_options(timeout=_MAX_MILLISECONDS)
    yield view
    view.close()


@pytest.fixture
def expect(page: Page) -> Any:
    """Playwright's assertions, which wait."""
    return import_playwright().expect


@pytest.fixture
def course(page: Page, lab: Lab, request: pytest.FixtureRequest) -> Course:
    return Course(lab, page, keep_screenshots=request.config.getoption("--screenshots"))
