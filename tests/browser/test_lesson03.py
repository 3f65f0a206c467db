"""Lesson 03 in a real JupyterLab: both widgets moved with the keyboard, light and dark, and exercise 03a solved."""

from __future__ import annotations

import re
import shutil

import pytest

from course_lib import paths

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]
SHOTS = paths.ROOT / "build" / "screenshots"  # git-ignored: to be looked at after a run
IDLE = re.compile(r"\| Idle")


def test_both_widgets_move_and_an_exercise_is_solved(lab, page):
    from playwright.sync_api import expect

    SHOTS.mkdir(parents=True, exist_ok=True)
    page.goto(lab.address("notebooks/03_statistics.ipynb"))
    page.locator(".jp-Notebook").wait_for()
    page.get_by_role("button", name=IDLE).wait_for()
    page.evaluate("() => { window.jupyterapp.commands.execute('notebook:run-all-cells'); }")
    panel = page.locator(".course-exercise").first
    panel.wait_for(state="attached", timeout=120_000)
    page.get_by_role("button", name=IDLE).wait_for(timeout=120_000)
    errors = page.locator('[data-mime-type="application/vnd.jupyter.error"], [data-mime-type="application/vnd.jupyter.stderr"]')
    assert errors.count() == 0, errors.first.inner_text()

    # the cancellation explorer: another algorithm, then the mean by the arrow keys
    captions = page.locator(".widget-html p[role=status]")
    pictures = page.locator(".widget-image[src^=blob]")
    explorer = captions.first
    explorer.scroll_into_view_if_needed()
    expect(explorer).to_contain_text("One-pass at mean/std = 1000: 12 % off, and y looks as good as ever")
    before = pictures.first.get_attribute("src")
    page.locator(".widget-dropdown select").first.select_option("two-pass")
    expect(explorer).to_contain_text("Two-pass at mean/std = 1000: right to")
    assert pictures.first.get_attribute("src") != before
    page.locator(".widget-dropdown select").first.select_option("one-pass")
    handle = page.locator(".widget-slider .noUi-handle").first
    handle.focus()
    handle.press("ArrowLeft")
    expect(explorer).to_contain_text("One-pass at mean/std = 300: 1.6 % off")
    page.screenshot(path=SHOTS / "lesson03-explorer.png")

    # the merge tree: a step, then the slider
    tree = captions.nth(1)
    tree.scroll_into_view_if_needed()
    expect(tree).to_contain_text("Frame 1 of 8.")
    page.get_by_role("button", name="Step", exact=True).first.click()
    expect(tree).to_contain_text("Frame 2 of 8. 8 numbers in blocks of 1, fp32. The means are 2 and -1, d = -3")
    page.get_by_role("button", name="Step", exact=True).first.press("Space")
    expect(tree).to_contain_text("Frame 3 of 8.")
    page.evaluate("() => window.jupyterapp.commands.execute('apputils:change-theme', { theme: 'JupyterLab Dark' })")
    page.wait_for_function("() => document.body.dataset.jpThemeLight === 'false'")
    page.screenshot(path=SHOTS / "lesson03-tree-dark.png")

    # the first panel is 03a's: unsolved, then solved
    panel.scroll_into_view_if_needed()
    check = panel.get_by_role("button", name="Check", exact=True)
    verdict = panel.locator(".course-verdict")
    check.click()
    expect(verdict).to_contain_text("03a One pass and two passes: not attempted")
    shutil.copy(paths.SOLUTIONS / "ex03a_one_pass_two_pass.py", lab.root / "exercises")
    check.click()
    expect(verdict).to_contain_text("pass, 34 of 34 cases right")
    panel.screenshot(path=SHOTS / "lesson03-pass-dark.png")
