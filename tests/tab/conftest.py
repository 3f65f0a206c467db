"""The course in a real browser: a site that is built once, served from this machine, and
Chromium."""

from __future__ import annotations

import contextlib
import functools
import http.server
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from course_lib.authoring import compiler_answers, tab
from course_lib.base import paths


def find_pyodide() -> Path:
    if not (folder := os.environ.get("COURSE_PYODIDE")):
        pytest.skip(
            "the course in a browser tab is tried by `make tab-test`, which fetches Pyodide (75 MB)"
        )
    return Path(folder).resolve()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    extensions_map = http.server.SimpleHTTPRequestHandler.extensions_map | {
        ".wasm": "application/wasm",
        ".mjs": "text/javascript",
    }

    def log_message(self, *arguments: Any) -> None:
        pass


@pytest.fixture(scope="session")
def site(tmp_path_factory) -> Iterator[str]:
    """The address of the site. Workers of one run share its folder, and each serves it."""
    pyodide = find_pyodide()
    base = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent
    folder, done = base / "tab", base / "tab.done"
    with FileLock(base / "tab.lock"):
        if not done.exists():
            build_site(
                pyodide,
                folder,
                compiler_answers.find(paths.NOTEBOOKS / "12_locks.ipynb")[0].answers,
            )
            done.touch()
    with serve(folder) as address:
        yield address


@pytest.fixture
def chinese_site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a site in Chinese."""
    monkeypatch.setenv("COURSE_LANG", "zh_CN")
    build_site(find_pyodide(), tmp_path / "tab", {})
    with serve(tmp_path / "tab") as address:
        yield address


def build_site(pyodide: Path, folder: Path, answers: compiler_answers.Answers) -> None:
    """Build the site into ``folder``, with a page that is empty."""
    tab.build_site(tab.find_distribution(pyodide), folder, answers)
    (folder / "empty.html").write_text("<!doctype html><title>empty</title>")


@contextlib.contextmanager
def serve(folder: Path) -> Iterator[str]:
    """Serve a folder on this machine, at the address that is yielded."""
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(_Quiet, directory=str(folder))
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
