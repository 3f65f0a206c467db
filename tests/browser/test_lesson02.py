"""Lesson 02 in a real JupyterLab: turn the projection, make it no projector, see formulas, check a panel; light and dark."""

from __future__ import annotations

import re

import pytest

from course_lib import paths

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]
SHOTS = paths.ROOT / "build" / "screenshots"  # git-ignored: to be looked at after a run
IDLE = re.compile(r"\| Idle")


def picture_of(page) -> str:
    """The PNG that the projection shows now; a live widget's image is a blob, a saved figure is inside the page."""
    return page.locator(".widget-image[src^=blob]").first.get_attribute("src")


def wait_for_another(page, before: str) -> None:
    page.wait_for_function("before => document.querySelector('.widget-image[src^=blob]').src !== before", arg=before)


def test_a_learner_turns_the_projection(lab, page):
    from playwright.sync_api import expect

    page.goto(lab.address("notebooks/02_vjps.ipynb"))
    page.locator(".jp-Notebook").wait_for()
    page.get_by_role("button", name=IDLE).wait_for()
    page.evaluate("() => { window.jupyterapp.commands.execute('notebook:run-all-cells'); }")
    panel = page.locator(".course-exercise").first
    panel.wait_for(state="attached", timeout=120_000)
    page.get_by_role("button", name=IDLE).wait_for(timeout=120_000)
    errors = page.locator('[data-mime-type="application/vnd.jupyter.error"], [data-mime-type="application/vnd.jupyter.stderr"]')
    assert errors.count() == 0, errors.first.inner_text()

    # the formulas are typeset, and none is left with an error in it
    page.locator(".jp-Notebook mjx-container").first.wait_for(state="attached")
    assert page.locator(".jp-Notebook mjx-merror").count() == 0

    caption = page.locator(".widget-html p[role=status]").first
    caption.scroll_into_view_if_needed()
    SHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SHOTS / "lesson02-projection.png")

    # wdy turns by keyboard: the caption follows, and the mean of what is left stays 0
    slider = page.locator(".widget-slider", has_text="turn wdy").locator(".noUi-handle")
    before, words = picture_of(page), caption.inner_text()
    slider.focus()
    slider.press("ArrowRight")
    expect(caption).not_to_have_text(words)
    wait_for_another(page, before)
    expect(caption).to_contain_text("Its mean is 0, so a step along it cannot change the mean of the row.")
    expect(caption).to_contain_text("it is a projector")

    # eps: six steps to 3, and part of the push along xhat comes through
    slider = page.locator(".widget-hslider", has_text="eps").locator(".noUi-handle")
    before = picture_of(page)
    slider.focus()
    for _ in range(6):
        slider.press("ArrowRight")
    expect(caption).to_contain_text("it is no projector")
    wait_for_another(page, before)
    page.screenshot(path=SHOTS / "lesson02-projection-eps.png")

    # RMSNorm: the mean may change
    norm = page.locator(".widget-dropdown", has_text="norm").locator("select").first
    norm.select_option("RMSNorm")
    expect(caption).to_contain_text("changes the mean of the row")

    # the dark theme: the drawing keeps its light panel, the words stay readable
    page.evaluate("() => window.jupyterapp.commands.execute('apputils:change-theme', { theme: 'JupyterLab Dark' })")
    page.wait_for_function("() => document.body.dataset.jpThemeLight === 'false'")
    caption.scroll_into_view_if_needed()
    page.screenshot(path=SHOTS / "lesson02-projection-dark.png")
    colours = caption.evaluate("e => [getComputedStyle(e).color, getComputedStyle(document.body).backgroundColor]")
    light, dark = (sum(int(part) for part in re.findall(r"\d+", colour)[:3]) for colour in colours)
    assert abs(light - dark) > 300, f"the caption is {colours[0]} on {colours[1]}"

    panel.scroll_into_view_if_needed()
    panel.get_by_role("button", name="Check", exact=True).click()
    expect(panel.locator(".course-verdict")).to_contain_text("02a The VJP of LayerNorm: not attempted")
