"""A reader of lesson 05 in a real JupyterLab: run it, move the accuracy widget, draw a kernel of their own, light and dark."""

from __future__ import annotations

import re
import shutil

import pytest

from course_lib import paths

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]
SHOTS = paths.ROOT / "build" / "screenshots"  # git-ignored: to be looked at after a run
IDLE = re.compile(r"\| Idle")


def test_a_reader_moves_the_accuracy_widget(lab, page):
    from playwright.sync_api import expect

    SHOTS.mkdir(parents=True, exist_ok=True)
    page.goto(lab.address("notebooks/05_statistics_in_triton.ipynb"))
    page.locator(".jp-Notebook").wait_for()
    page.get_by_role("button", name=IDLE).wait_for()
    page.evaluate("() => { window.jupyterapp.commands.execute('notebook:run-all-cells'); }")
    caption = page.locator(".widget-html p[role=status]").first
    caption.wait_for(state="attached", timeout=180_000)
    page.get_by_role("button", name=IDLE).wait_for(timeout=180_000)
    errors = page.locator('[data-mime-type="application/vnd.jupyter.error"], [data-mime-type="application/vnd.jupyter.stderr"]')
    assert errors.count() == 0, errors.first.inner_text()

    # by keyboard: the slider's ratio is in the words, and the picture changes
    caption.scroll_into_view_if_needed()
    expect(caption).to_contain_text("At mean/std = 1000,")
    widget = page.locator(".jp-OutputArea-output", has=caption).first  # the panels have pictures of their own
    image = widget.locator(".widget-image[src^=blob]").first
    before = image.get_attribute("src")
    handle = widget.locator(".widget-slider .noUi-handle").first
    handle.focus()
    handle.press("ArrowRight")
    expect(caption).to_contain_text("At mean/std = 3162,")
    expect(image).not_to_have_attribute("src", before)

    # a kernel of the reader's: unsolved it gives words, solved a curve
    mine = widget.get_by_label("your 05b", exact=True)
    mine.check()
    expect(caption).to_contain_text("your 05b gave nothing to draw: exercises/ex05b_welford_statistics.py is still as the course wrote it.")
    shutil.copy(paths.SOLUTIONS / "ex05b_welford_statistics.py", lab.root / "exercises")
    mine.uncheck()
    mine.check()
    expect(caption).to_contain_text(re.compile(r"your 05b \d\.\de-0\d"), timeout=60_000)
    widget.screenshot(path=SHOTS / "lesson05-accuracy.png")
    page.evaluate("() => window.jupyterapp.commands.execute('apputils:change-theme', { theme: 'JupyterLab Dark' })")
    page.wait_for_function("() => document.body.dataset.jpThemeLight === 'false'")
    widget.screenshot(path=SHOTS / "lesson05-accuracy-dark.png")
    widget.get_by_role("button", name="Reset", exact=True).click()
    expect(caption).to_contain_text("At mean/std = 1000,")
