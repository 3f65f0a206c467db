"""The course in a real browser: a site that is built once, served from this machine, and Chromium."""

from __future__ import annotations

import contextlib
import functools
import http.server
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from chromium import open_browser

from course_lib.authoring import tab
from course_lib.base import paths

# In place of ml_dtypes, which Pyodide 0.27 lacks. bf16 is fp16 here, so that no test may look at a number in bf16.
_WITHOUT_BF16 = b"""
import numpy
bfloat16 = float8_e4m3fn = float8_e5m2 = numpy.float16
finfo = numpy.finfo
"""


def find_pyodide() -> Path:
    if not (folder := os.environ.get("COURSE_PYODIDE")):
        pytest.skip("the course in a browser tab is tried by `make tab-test`, which fetches Pyodide (75 MB)")
    return Path(folder).resolve()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    extensions_map = http.server.SimpleHTTPRequestHandler.extensions_map | {".wasm": "application/wasm", ".mjs": "text/javascript"}

    def log_message(self, *arguments: Any) -> None:
        pass


@pytest.fixture(scope="session")
def site(tmp_path_factory) -> Iterator[str]:
    """The address of the site."""
    with serve_site(tmp_path_factory.mktemp("tab"), tab.record_answers([paths.NOTEBOOKS / "12_locks.ipynb"])) as address:
        yield address


@contextlib.contextmanager
def serve_site(folder: Path, answers: dict[str, object]) -> Iterator[str]:
    """Build the site into ``folder``, and serve it."""
    pyodide = find_pyodide()
    known = json.loads((pyodide / "pyodide-lock.json").read_text())["packages"]
    without = (
        []
        if "ml-dtypes" in known or "ml_dtypes" in known
        else [tab.Package("ml_dtypes", "0", {"ml_dtypes.py": _WITHOUT_BF16}, ("ml_dtypes",), ("numpy",))]
    )
    tab.build_site(pyodide, folder, answers, without)
    (folder / "empty.html").write_text("<!doctype html><title>empty</title>")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()


@pytest.fixture
def browser() -> Iterator[Any]:
    with open_browser() as opened:
        yield opened
