"""The whole site, built once a test run as `make site` builds it, and pages of it in a real browser."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from course_lib.base import paths


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site's folder. Workers of one run share it."""
    pytest.importorskip("myst_nb", reason="the site's tools are not installed; `make dev` installs them")
    base = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent
    out, done = base / "site", base / "site.done"
    with FileLock(base / "site.lock"):
        if not done.exists():
            command = [sys.executable, "-m", "course_lib.authoring.site", "--out", str(out)]
            built = subprocess.run(command, cwd=paths.ROOT, capture_output=True, text=True, check=False)
            assert built.returncode == 0, built.stdout + built.stderr
            done.touch()
    return out


class Opened:
    """A page of the site, opened from its folder, and what went wrong with it."""

    def __init__(self, browser: Any, file: Path, anchor: str = "", width: int = 1280, *, touch: bool = False) -> None:
        self.page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme="light", has_touch=touch, is_mobile=touch)
        self.faults: list[str] = []
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on("console", lambda said: self.faults.append(said.text) if said.type == "error" else None)
        self.page.on("request", self._note_request)
        self.page.goto(file.as_uri() + anchor)

    def _note_request(self, request: Any) -> None:
        if not request.url.startswith(("file:", "data:", "blob:")):
            self.faults.append(f"asks the network for {request.url}")

    def set_width(self, width: int) -> None:
        self.page.set_viewport_size({"width": width, "height": 900})
        self.page.wait_for_timeout(120)  # pictures draw anew when they have seen their width

    def open_folds(self) -> None:
        self.page.evaluate("document.querySelectorAll('details').forEach((fold) => { fold.open = true; })")
        self.page.wait_for_timeout(120)

    def set_theme(self, theme: str) -> None:
        self.page.evaluate(f"document.body.dataset.theme = '{theme}'")
        self.page.wait_for_timeout(500)  # pictures look once more after 400 ms


@pytest.fixture
def open_page(site: Path, browser: Any) -> Iterator[Any]:
    """Opens a page by its path in the site."""
    opened: list[Opened] = []

    def open_one(name: str, anchor: str = "", width: int = 1280, *, touch: bool = False) -> Opened:
        opened.append(Opened(browser, site / name, anchor, width, touch=touch))
        return opened[-1]

    yield open_one
    for one in opened:
        one.page.close()
