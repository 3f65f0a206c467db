"""Lesson 04 in a real JupyterLab: step through the tree by keyboard, let warps shuffle, choose an algorithm; in both themes."""

from __future__ import annotations

import re

import pytest

from course_lib import paths

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]
SHOTS = paths.ROOT / "build" / "screenshots"  # git-ignored: to be looked at after a run
IDLE = re.compile(r"\| Idle")


def test_the_tree_and_the_counter_follow_their_controls(lab, page):
    from playwright.sync_api import expect

    page.goto(lab.address("notebooks/04_reductions_and_memory.ipynb"))
    page.locator(".jp-Notebook").wait_for()
    page.get_by_role("button", name=IDLE).wait_for()
    page.evaluate("() => { window.jupyterapp.commands.execute('notebook:run-all-cells'); }")
    page.locator(".course-exercise").first.wait_for(state="attached", timeout=120_000)
    page.get_by_role("button", name=IDLE).wait_for(timeout=120_000)
    errors = page.locator('[data-mime-type="application/vnd.jupyter.error"], [data-mime-type="application/vnd.jupyter.stderr"]')
    assert errors.count() == 0, errors.first.inner_text()

    captions = page.locator(".widget-html p[role=status]")
    assert captions.count() == 3  # two trees and the counter
    images = page.locator(".widget-image[src^=blob]")

    # the tree: the button, then the slider by keyboard
    tree = captions.nth(0)
    tree.scroll_into_view_if_needed()
    expect(tree).to_contain_text("Thread t starts with value t.")
    page.get_by_role("button", name="Step", exact=True).first.click()
    expect(tree).to_contain_text("Step 1 of 4")
    before = images.nth(0).get_attribute("src")
    # the last handle of the first widget is the frame's
    frame = page.locator(".widget-slider", has_text="frame").first.locator(".noUi-handle")
    frame.focus()
    frame.press("ArrowRight")
    expect(tree).to_contain_text("Step 2 of 4, stride 4: threads t = 0 to 3 add the number of thread t + 4")
    page.wait_for_function("before => document.querySelectorAll('.widget-image[src^=blob]')[0].src !== before", arg=before)
    page.locator(".widget-dropdown select").nth(0).select_option(label="warp shuffles")
    expect(tree).to_contain_text("warp shuffles")

    # the counter
    counter = captions.nth(2)
    counter.scroll_into_view_if_needed()
    expect(counter).to_contain_text("3 passes of reading, 1 of writing")
    shown = images.nth(2).get_attribute("src")
    page.locator(".widget-dropdown", has_text="algorithm").locator("select").select_option(label="op by op")
    expect(counter).to_contain_text("5 launches: 5 passes of reading, 3 of writing")
    page.wait_for_function("before => document.querySelectorAll('.widget-image[src^=blob]')[2].src !== before", arg=shown)

    SHOTS.mkdir(parents=True, exist_ok=True)
    ink = "e => getComputedStyle(e).color"
    light = counter.evaluate(ink)
    page.screenshot(path=SHOTS / "lesson04-counter.png")
    page.evaluate("() => window.jupyterapp.commands.execute('apputils:change-theme', { theme: 'JupyterLab Dark' })")
    page.wait_for_function("() => document.body.dataset.jpThemeLight === 'false'")
    assert counter.evaluate(ink) != light, "the caption keeps its light-theme colour on a dark page"
    page.screenshot(path=SHOTS / "lesson04-counter-dark.png")
    tree.scroll_into_view_if_needed()
    page.screenshot(path=SHOTS / "lesson04-tree-dark.png")
