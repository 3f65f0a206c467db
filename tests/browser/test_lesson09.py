"""The schedule explorer of lesson 09 in a real JupyterLab: step, seed, another kernel, the keyboard; light and dark."""

from __future__ import annotations

import re

import pytest

from course_lib import paths

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]
SHOTS = paths.ROOT / "build" / "screenshots"  # git-ignored: to be looked at after a run
IDLE = re.compile(r"\| Idle")


def shoot(page, name: str) -> None:
    SHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SHOTS / f"{name}.png")


def test_the_schedule_explorer_moves(lab, page):
    from playwright.sync_api import expect

    page.goto(lab.address("notebooks/09_backward_dw_db.ipynb"))
    page.locator(".jp-Notebook").wait_for()
    page.get_by_role("button", name=IDLE).wait_for()
    page.evaluate("() => { window.jupyterapp.commands.execute('notebook:run-all-cells'); }")
    caption = page.locator(".widget-html p[role=status]").first
    caption.wait_for(state="attached", timeout=120_000)
    page.get_by_role("button", name=IDLE).wait_for(timeout=150_000)
    errors = page.locator('[data-mime-type="application/vnd.jupyter.error"], [data-mime-type="application/vnd.jupyter.stderr"]')
    assert errors.count() == 0, errors.first.inner_text()

    # step, and the keyboard: words and picture follow
    image = page.locator(".widget-image[src^=blob]").first
    caption.scroll_into_view_if_needed()
    expect(caption).to_contain_text("Seed 0, operation 0 of")
    before = image.get_attribute("src")
    page.get_by_role("button", name="Step", exact=True).first.click()
    expect(caption).to_contain_text("operation 1 of")
    page.wait_for_function("before => document.querySelector('.widget-image[src^=blob]').src !== before", arg=before)
    handle = page.locator(".widget-slider .noUi-handle").first
    handle.focus()
    handle.press("ArrowRight")
    expect(caption).to_contain_text("operation 2 of")
    handle.press("End")
    expect(caption).to_contain_text("Race on buffer_ptr")
    shoot(page, "lesson09-race")

    # another seed: another order
    seed = page.get_by_label("seed").first
    words = caption.inner_text()
    seed.fill("3")
    seed.press("Enter")
    expect(caption).to_contain_text("Seed 3, operation 0 of")
    assert caption.inner_text() != words

    # a deadlock, and the learner's own file, which is run in a second process
    kernel = page.locator(".widget-dropdown select").first
    for name, words in (("never released", "Deadlock in wrong_release_kernel"), ("09a, your file", "add_to_buffers_kernel")):
        now = image.get_attribute("src")
        kernel.select_option(name)
        page.wait_for_function("now => document.querySelector('.widget-image[src^=blob]').src !== now", arg=now, timeout=60_000)
        page.get_by_role("button", name=IDLE).wait_for(timeout=60_000)
        handle.focus()
        handle.press("End")
        expect(caption).to_contain_text(words, timeout=30_000)
    shoot(page, "lesson09-yours")
    page.evaluate("() => window.jupyterapp.commands.execute('apputils:change-theme', { theme: 'JupyterLab Dark' })")
    page.wait_for_function("() => document.body.dataset.jpThemeLight === 'false'")
    caption.scroll_into_view_if_needed()
    shoot(page, "lesson09-dark")
