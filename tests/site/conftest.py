"""The whole site, built once a test run as `make site` builds it, and pages of it in a real
browser."""

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
    pytest.importorskip(
        "myst_nb", reason="the site's tools are not installed; `make dev` installs them"
    )
    base = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent
    out, done = base / "site", base / "site.done"
    with FileLock(base / "site.lock"):
        if not done.exists():
            command = [sys.executable, "-m", "course_lib.authoring.site", "--out", str(out)]
            built = subprocess.run(
                command, cwd=paths.ROOT, capture_output=True, text=True, check=False
            )
            assert built.returncode == 0, built.stdout + built.stderr
            done.touch()
    return out


# those in view or above or below it; one in a closed fold is drawn when it is opened
_PICTURES = (
    "[...document.querySelectorAll('[data-picture]')].filter((host) => host.stage &&"
    " host.checkVisibility())"
)


class Opened:
    """A page of the site, opened from its folder, and what went wrong with it."""

    def __init__(self, page: Any, file: Path, anchor: str = "", width: int = 1280) -> None:
        self.page = page
        self.faults: list[str] = []
        self._listeners = {
            "pageerror": lambda error: self.faults.append(str(error)),
            "console": lambda message: (
                self.faults.append(message.text) if message.type == "error" else None
            ),
            "request": self._note_request,
        }
        for event, listener in self._listeners.items():
            page.on(event, listener)
        page.set_viewport_size({"width": width, "height": 900})
        page.goto(file.as_uri() + anchor)

    def leave(self) -> None:
        """Leave the page as the next test wants it."""
        for event, listener in self._listeners.items():
            self.page.remove_listener(event, listener)
        self.page.mouse.move(0, 0)
        self.page.emulate_media(color_scheme="light")
        self.page.goto("about:blank")

    def _note_request(self, request: Any) -> None:
        if not request.url.startswith(("file:", "data:", "blob:")):
            self.faults.append(f"asks the network for {request.url}")

    def set_width(self, width: int) -> None:
        self.page.set_viewport_size({"width": width, "height": 900})
        self._wait_for_pictures()

    def open_folds(self) -> None:
        self.page.evaluate(
            "document.querySelectorAll('details').forEach((fold) => { fold.open = true; })"
        )
        self._wait_for_pictures()

    def _wait_for_pictures(self) -> None:
        """Wait until each picture is drawn for the width that it has now."""
        self.page.wait_for_function(
            f"{_PICTURES}.every(({{ stage }}) => Number(stage.svg.getAttribute('width')) ==="
            " stage.width)"
        )

    def set_theme(self, theme: str) -> None:
        self.page.evaluate(f"document.body.dataset.theme = '{theme}'")
        self.wait_for_theme(theme)

    def wait_for_theme(self, theme: str) -> None:
        """Wait until each picture has the theme's colours, and no colour of the page changes any
        more."""
        self.page.wait_for_function(
            f"{_PICTURES}.every((host) => host.dataset.theme === '{theme}')"
        )
        self.page.wait_for_function(
            "document.getAnimations().every((animation) => animation.playState !== 'running')"
        )


@pytest.fixture(scope="session")
def site_pages(session_browser: Any) -> list[Any]:
    """Pages that no test uses now. A new one takes half a second of processor time."""
    return []


@pytest.fixture
def open_page(site: Path, browser: Any, site_pages: list[Any]) -> Iterator[Any]:
    """Return a function that opens a page by its path in the site."""
    opened: list[Opened] = []
    with_touch: list[Any] = []

    def open_one(name: str, anchor: str = "", width: int = 1280, *, touch: bool = False) -> Opened:
        if touch:
            page = browser.new_page(
                viewport={"width": width, "height": 900},
                color_scheme="light",
                has_touch=True,
                is_mobile=True,
            )
            with_touch.append(page)
        else:
            page = site_pages.pop() if site_pages else browser.new_page(color_scheme="light")
        page.set_default_timeout(120_000)
        opened.append(Opened(page, site / name, anchor, width))
        return opened[-1]

    yield open_one
    for one in opened:
        if one.page in with_touch:
            one.page.close()
        else:
            one.leave()
            site_pages.append(one.page)
