"""A learner's path through lesson 06, in a real JupyterLab: run it, move a slider, check, solve, check again."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from course_lib import paths

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]
SHOTS = paths.ROOT / "build" / "screenshots"  # git-ignored: to be looked at after a run
IDLE = re.compile(r"\| Idle")


def picture_of(page) -> str:
    """The PNG that the block stepper shows now; a live widget's image is a blob, a saved figure is inside the page."""
    return page.locator(".widget-image[src^=blob]").first.get_attribute("src")


def shoot(page, name: str) -> None:
    SHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SHOTS / f"{name}.png")


def test_a_learner_works_through_lesson_06(lab, page):
    from playwright.sync_api import expect

    page.goto(lab.address("notebooks/06_layer_norm_forward.ipynb"))
    page.locator(".jp-Notebook").wait_for()
    page.get_by_role("button", name=IDLE).wait_for()
    page.evaluate("() => { window.jupyterapp.commands.execute('notebook:run-all-cells'); }")
    panel = page.locator(".course-exercise").first
    panel.wait_for(state="attached", timeout=120_000)
    page.get_by_role("button", name=IDLE).wait_for(timeout=120_000)
    errors = page.locator('[data-mime-type="application/vnd.jupyter.error"], [data-mime-type="application/vnd.jupyter.stderr"]')
    assert errors.count() == 0, errors.first.inner_text()

    # the block stepper: its picture and its words follow the slider
    caption = page.locator(".widget-html p[role=status]").first
    caption.scroll_into_view_if_needed()
    before, words = picture_of(page), caption.inner_text()
    page.get_by_role("button", name="Step", exact=True).first.click()
    expect(caption).not_to_have_text(words)
    handle = page.locator(".widget-slider .noUi-handle").first
    handle.focus()
    handle.press("ArrowRight")
    page.wait_for_function("before => document.querySelector('.widget-image[src^=blob]').src !== before", arg=before)
    shoot(page, "lesson06-stepper")

    # the first panel is 06a's: unsolved, then solved
    panel.scroll_into_view_if_needed()
    check = panel.get_by_role("button", name="Check", exact=True)
    verdict = panel.locator(".course-verdict")
    check.click()
    expect(verdict).to_contain_text("06a LayerNorm forward, block by block: not attempted")
    shoot(page, "lesson06-not-attempted")
    shutil.copy(paths.SOLUTIONS / "ex06a_layer_norm_forward.py", lab.root / "exercises")
    check.click()
    expect(verdict).to_contain_text("pass, 20 of 20 cases right")
    expect(verdict).to_contain_text("What you avoided.")
    shoot(page, "lesson06-pass")
    page.evaluate("() => window.jupyterapp.commands.execute('apputils:change-theme', { theme: 'JupyterLab Dark' })")
    page.wait_for_function("() => document.body.dataset.jpThemeLight === 'false'")
    panel.screenshot(path=SHOTS / "lesson06-pass-dark.png")
    listing = panel.locator("pre", has_text="layer_norm_blocked_kernel")
    painted = "e => [e, ...e.querySelectorAll('span')].map(n => getComputedStyle(n).backgroundColor)"
    assert set(listing.evaluate(painted)) <= {"rgb(252, 252, 250)", "rgba(0, 0, 0, 0)"}, "dark text on a dark theme's background"

    # the link opens the learner's file beside the notebook
    panel.get_by_role("button", name=re.compile("beside this notebook")).click()
    editor = page.locator(".jp-FileEditor")
    editor.wait_for()
    assert editor.bounding_box()["x"] > page.locator(".jp-NotebookPanel").bounding_box()["x"]
    expect(editor).to_contain_text("layer_norm_blocked_kernel")
    shoot(page, "lesson06-file-beside")

    # Reset asks first, keeps the work, and the panel still checks
    panel.get_by_role("button", name="Reset", exact=True).click()
    panel.get_by_role("button", name="Yes", exact=True).click()
    expect(panel).to_contain_text("The file is as the course wrote it.")
    kept = list((lab.root / ".course" / "kept").glob("ex06a*"))
    assert [Path(copy).read_text() for copy in kept] == [(paths.SOLUTIONS / "ex06a_layer_norm_forward.py").read_text()]
    check.click()
    expect(verdict).to_contain_text("not attempted")
