"""PNGs of the moving pictures in a built notebook, for pages that run no script."""

from __future__ import annotations

import base64
import importlib.util
import re
import shutil
from typing import Any

from course_lib.base.errors import CourseError

_PICTURE = re.compile(r'<div data-picture="([^"]+)"')
_PAGE = "<!doctype html><meta charset=utf-8><body style='margin: 12px; background: #fff'>{html}"
_WIDTH = 900  # CSS pixels
# Chromium cannot use its sandbox when it runs as root. The other arguments prevent network
# requests.
CHROMIUM_ARGUMENTS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
    " --disable-component-update --disable-sync --disable-dev-shm-usage"
).split()


def find_chromium() -> str | None:
    return next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
    )


def add_pngs(notebook: dict[str, Any]) -> None:
    """Add to every moving picture of the notebook, in place, a PNG of its first state.

    Raises: CourseError if the notebook has a moving picture, and Chromium or playwright is missing.
    """
    outputs = [
        output
        for cell in notebook["cells"]
        for output in cell.get("outputs", [])
        if _PICTURE.search(_get_html(output))
    ]
    if not outputs:
        return
    executable = find_chromium()
    # only authors need both
    if executable is None or importlib.util.find_spec("playwright") is None:
        raise CourseError(
            "a lesson with moving pictures is built with a picture of each, for which playwright"
            " opens it in Chromium. Run `make dev`, and install Chromium (Debian, Ubuntu: apt"
            " install chromium)."
        )
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=executable, args=CHROMIUM_ARGUMENTS)
        page = browser.new_page(viewport={"width": _WIDTH, "height": 800})
        for output in outputs:
            page.set_content(_PAGE.format(html=_get_html(output)))
            page.wait_for_function("document.querySelector('[data-picture]').stage")
            shot = page.locator("[data-picture]").screenshot(animations="disabled")
            output["data"]["image/png"] = base64.b64encode(shot).decode("ascii")
            output.setdefault("metadata", {})["image/png"] = {
                "alt": output["data"]["text/plain"],
                "width": _WIDTH - 24,
            }
        browser.close()


def _get_html(output: dict[str, Any]) -> str:
    return "".join(output.get("data", {}).get("text/html", ""))
