"""Lesson 08 in a real JupyterLab: choose a mistake, read the line, change the norm, check a panel; light and dark."""

from __future__ import annotations

import re
import shutil

import pytest

from course_lib import paths

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]
SHOTS = paths.ROOT / "build" / "screenshots"  # git-ignored: to be looked at after a run
IDLE = re.compile(r"\| Idle")


def picture_of(page) -> str:
    """The PNG that the widget shows now; a live widget's image is a blob, a saved figure is inside the page."""
    return page.locator(".widget-image[src^=blob]").first.get_attribute("src")


def wait_for_another(page, before: str) -> None:
    page.wait_for_function("before => document.querySelector('.widget-image[src^=blob]').src !== before", arg=before)


def test_a_learner_finds_the_missing_term(lab, page):
    from playwright.sync_api import expect

    page.goto(lab.address("notebooks/08_backward_dx.ipynb"))
    page.locator(".jp-Notebook").wait_for()
    page.get_by_role("button", name=IDLE).wait_for()
    page.evaluate("() => { window.jupyterapp.commands.execute('notebook:run-all-cells'); }")
    panel = page.locator(".course-exercise").first
    panel.wait_for(state="attached", timeout=150_000)
    page.get_by_role("button", name=IDLE).wait_for(timeout=120_000)
    errors = page.locator('[data-mime-type="application/vnd.jupyter.error"], [data-mime-type="application/vnd.jupyter.stderr"]')
    assert errors.count() == 0, errors.first.inner_text()
    page.locator(".jp-Notebook mjx-container").first.wait_for(state="attached")
    assert page.locator(".jp-Notebook mjx-merror").count() == 0

    # a mistake is chosen: picture and words follow
    caption = page.locator(".widget-html p[role=status]").first
    caption.scroll_into_view_if_needed()
    expect(caption).to_contain_text("No error.")
    before = picture_of(page)
    wrong = page.locator(".widget-dropdown", has_text="wrong").locator("select").first
    wrong.select_option("c1 left out")
    expect(caption).to_contain_text("All along xhat, by c1 * rstd: c1 is missing.")
    wait_for_another(page, before)
    SHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SHOTS / "lesson08-missing-c1.png")

    # by keyboard: mean/std from 3 to 100 with bf16 statistics
    wrong.select_option("statistics saved in bf16")
    expect(caption).to_contain_text("digits are lost somewhere")
    slider = page.locator(".widget-hslider", has_text="mean/std").locator(".noUi-handle").first
    slider.focus()
    slider.press("ArrowRight")
    slider.press("ArrowRight")
    expect(caption).to_contain_text("mean/std = 100")
    expect(caption).to_contain_text("xhat is off")

    # RMSNorm: the words of the mistakes change with the norm
    page.locator(".widget-dropdown", has_text="norm").locator("select").first.select_option("RMSNorm")
    expect(caption).to_contain_text("RMSNorm, N = 16")
    wrong.select_option("a c2 put in")
    expect(caption).to_contain_text("RMSNorm has no c2")

    # the test that sees nothing
    page.locator(".widget-dropdown", has_text="norm").locator("select").first.select_option("LayerNorm")
    wrong.select_option("c1 left out")
    page.locator(".widget-dropdown", has_text="dy").locator("select").first.select_option("all 1, as y.sum() sends")
    page.locator(".widget-dropdown", has_text="0.5 to 2").locator("select").first.select_option("all 1")
    expect(caption).to_contain_text("This test does not see the mistake")

    # the dark theme: the figure keeps its light panel, the words stay readable
    page.evaluate("() => window.jupyterapp.commands.execute('apputils:change-theme', { theme: 'JupyterLab Dark' })")
    page.wait_for_function("() => document.body.dataset.jpThemeLight === 'false'")
    wrong.select_option("c1 and c2 left out")
    expect(caption).to_contain_text("All along 1, by c2 * rstd")  # with dy and w of ones c1 is 0
    caption.scroll_into_view_if_needed()
    page.screenshot(path=SHOTS / "lesson08-missing-dark.png")
    colours = caption.evaluate("e => [getComputedStyle(e).color, getComputedStyle(document.body).backgroundColor]")
    light, dark = (sum(int(part) for part in re.findall(r"\d+", colour)[:3]) for colour in colours)
    assert abs(light - dark) > 300, f"the caption is {colours[0]} on {colours[1]}"

    panel.scroll_into_view_if_needed()
    verdict = panel.locator(".course-verdict")
    panel.get_by_role("button", name="Check", exact=True).click()
    expect(verdict).to_contain_text("08a dx of LayerNorm: not attempted")
    shutil.copy(paths.SOLUTIONS / "ex08a_layer_norm_dx.py", lab.root / "exercises")
    panel.get_by_role("button", name="Check", exact=True).click()
    expect(verdict).to_contain_text("pass, 22 of 22 cases right", timeout=30_000)
