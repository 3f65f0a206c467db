"""Lesson 10 in a real JupyterLab: losses drawn as they come, runs chosen and compared by keyboard, a panel; light and dark."""

from __future__ import annotations

import re
import shutil

import pytest

from course_lib import paths

pytestmark = [pytest.mark.browser, pytest.mark.timeout(420)]
SHOTS = paths.ROOT / "build" / "screenshots"  # git-ignored: to be looked at after a run
IDLE = re.compile(r"\| Idle")


def test_a_learner_compares_trainings_and_wires_a_norm(lab, page):
    from playwright.sync_api import expect

    page.goto(lab.address("notebooks/10_autograd.ipynb"))
    page.locator(".jp-Notebook").wait_for()
    page.get_by_role("button", name=IDLE).wait_for()
    page.evaluate("() => { window.jupyterapp.commands.execute('notebook:run-all-cells'); }")
    widgets = page.locator(".widget-dropdown", has_text="apart")
    widgets.nth(1).wait_for(state="attached", timeout=240_000)
    page.get_by_role("button", name=IDLE).wait_for(timeout=120_000)
    errors = page.locator('[data-mime-type="application/vnd.jupyter.error"], [data-mime-type="application/vnd.jupyter.stderr"]')
    assert errors.count() == 0, errors.first.inner_text()

    # the first widget was fed while the course's norm trained: it ends with all 100 steps
    captions = page.locator(".widget-html p[role=status]")
    expect(captions.first).to_contain_text("the course's LayerNorm against PyTorch's LayerNorm, 100 steps")
    expect(captions.first).to_contain_text("Further apart than 0.001: never")

    # the second starts with the norm that never returns dw; another run is chosen: picture and words follow
    widget = page.locator(".jp-OutputArea-output .widget-vbox").filter(has=page.locator(".widget-image")).last
    caption, picture = widget.locator("p[role=status]"), widget.locator(".widget-image")
    run, apart = (widget.locator(".widget-dropdown", has_text=name).locator("select") for name in ("dw never", "1e-6"))
    caption.scroll_into_view_if_needed()
    expect(caption).to_contain_text("dw never returned against")
    before = picture.get_attribute("src")
    SHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SHOTS / "lesson10-dw-missing.png")
    run.select_option("PyTorch's, embedding one ulp off")
    expect(caption).to_contain_text("one ulp off against")
    expect(picture).not_to_have_attribute("src", before)

    # by keyboard: fewer steps
    slider = widget.locator(".widget-slider .noUi-handle").first
    slider.focus()
    slider.press("ArrowLeft")
    expect(caption).to_contain_text("99 steps")
    run.select_option("dw never returned")
    apart.select_option("0.01")
    expect(caption).to_contain_text("Further apart than 0.01: from step")
    run.select_option("PyTorch's, embedding one ulp off")

    # the exercise: unsolved, then solved
    panel = page.locator(".course-exercise").first
    panel.scroll_into_view_if_needed()
    verdict = panel.locator(".course-verdict")
    panel.get_by_role("button", name="Check", exact=True).click()
    expect(verdict).to_contain_text("10a Wire it up: not attempted")
    shutil.copy(paths.SOLUTIONS / "ex10a_wire_it_up.py", lab.root / "exercises")
    panel.get_by_role("button", name="Check", exact=True).click()
    expect(verdict).to_contain_text("10a Wire it up: pass", timeout=60_000)
    expect(verdict).to_contain_text("in PyTorch's autograd (CPU)")
    page.screenshot(path=SHOTS / "lesson10-pass.png")

    # the dark theme: the figure keeps its light panel, the words stay readable
    page.evaluate("() => window.jupyterapp.commands.execute('apputils:change-theme', { theme: 'JupyterLab Dark' })")
    page.wait_for_function("() => document.body.dataset.jpThemeLight === 'false'")
    run.select_option("dw never returned")
    expect(caption).to_contain_text("dw never returned against")
    caption.scroll_into_view_if_needed()
    expect(caption).to_be_in_viewport()
    page.screenshot(path=SHOTS / "lesson10-dark.png")
    colours = caption.evaluate("e => [getComputedStyle(e).color, getComputedStyle(document.body).backgroundColor]")
    light, dark = (sum(int(part) for part in re.findall(r"\d+", colour)[:3]) for colour in colours)
    assert abs(light - dark) > 300, f"the caption is {colours[0]} on {colours[1]}"
