"""A learner's path through lesson 01, in a real JupyterLab: run it, type rows into the stepper, check an exercise, in both themes."""

from __future__ import annotations

import re
import shutil

import pytest

from course_lib import paths

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]
SHOTS = paths.ROOT / "build" / "screenshots"  # git-ignored: to be looked at after a run
IDLE = re.compile(r"\| Idle")


def test_a_learner_works_through_lesson_01(lab, page):
    from playwright.sync_api import expect

    SHOTS.mkdir(parents=True, exist_ok=True)
    page.goto(lab.address("notebooks/01_normalisation.ipynb"))
    page.locator(".jp-Notebook").wait_for()
    page.get_by_role("button", name=IDLE).wait_for()
    page.evaluate("() => { window.jupyterapp.commands.execute('notebook:run-all-cells'); }")
    panel = page.locator(".course-exercise").first
    panel.wait_for(state="attached", timeout=120_000)
    page.get_by_role("button", name=IDLE).wait_for(timeout=120_000)
    errors = page.locator('[data-mime-type="application/vnd.jupyter.error"], [data-mime-type="application/vnd.jupyter.stderr"]')
    assert errors.count() == 0, errors.first.inner_text()

    # the stepper: own rows, the other norm, another eps; the words follow
    caption = page.locator(".widget-html p[role=status]").first
    caption.scroll_into_view_if_needed()
    expect(caption).to_contain_text("LayerNorm, row 0 of 3 x 8")
    norm, data, block, eps = (page.locator(".widget-dropdown select").nth(n) for n in range(4))
    typed = page.locator(".widget-text input").first
    expect(typed).to_be_hidden()
    data.select_option("type your own")
    expect(typed).to_be_visible()
    typed.fill("1 2 6; 101 102 106")
    typed.press("Enter")
    expect(caption).to_contain_text("row 0 of 2 x 3")
    block.select_option("2")
    norm.select_option("RMSNorm")
    expect(caption).to_contain_text("RMSNorm, row 0 of 2 x 3, sweep 1 of 2")
    typed.fill("1 2; 3")
    typed.press("Enter")
    expect(caption).to_contain_text("every row needs as many numbers as the others")
    typed.fill(".002 -.002")
    typed.press("Enter")
    eps.select_option("0.001")
    expect(caption).to_contain_text("eps = 0.001 matters here")
    page.screenshot(path=SHOTS / "lesson01-stepper.png")
    page.evaluate("() => window.jupyterapp.commands.execute('apputils:change-theme', { theme: 'JupyterLab Dark' })")
    page.wait_for_function("() => document.body.dataset.jpThemeLight === 'false'")
    caption.scroll_into_view_if_needed()
    page.screenshot(path=SHOTS / "lesson01-stepper-dark.png")
    light, dark = caption.evaluate("e => [getComputedStyle(e).color, getComputedStyle(document.body).backgroundColor]")
    assert light != dark
    page.get_by_role("button", name="Reset", exact=True).first.click()
    expect(caption).to_contain_text("LayerNorm, row 0 of 3 x 8")
    expect(typed).to_be_hidden()

    # 01a: unsolved, half solved, solved
    panel.scroll_into_view_if_needed()
    check = panel.get_by_role("button", name="Check", exact=True)
    verdict = panel.locator(".course-verdict")
    check.click()
    expect(verdict).to_contain_text("01a LayerNorm in PyTorch operations: not attempted")
    solution = (paths.SOLUTIONS / "ex01a_layer_norm.py").read_text()
    (lab.root / "exercises" / "ex01a_layer_norm.py").write_text(solution.replace("torch.rsqrt(var + eps)", "1 / (torch.sqrt(var) + eps)"))
    check.click()
    expect(verdict).to_contain_text("Eps stands outside the root", timeout=60_000)
    shutil.copy(paths.SOLUTIONS / "ex01a_layer_norm.py", lab.root / "exercises")
    check.click()
    expect(verdict).to_contain_text("pass, 17 of 17 cases right", timeout=60_000)
    panel.screenshot(path=SHOTS / "lesson01-pass-dark.png")
