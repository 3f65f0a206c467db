"""Chromium for the tests that look at pages."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

from course_lib.authoring.stills import CHROMIUM_ARGUMENTS, find_chromium


def import_playwright() -> Any:
    return pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed; `make env` installs it"
    )


@contextlib.contextmanager
def open_browser() -> Iterator[Any]:
    """A browser that ends with the block. Playwright's event loop, kept for longer, would be in the
    way of tests that run notebooks."""
    playwright = import_playwright()
    executable = find_chromium()
    if executable is None:
        pytest.skip("no Chromium on this machine; on Debian `apt install chromium`")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=executable, args=CHROMIUM_ARGUMENTS)
        yield browser
        browser.close()
