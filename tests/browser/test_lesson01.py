"""A learner's path through lesson 01, in a real JupyterLab: run it, type rows into the stepper, check an exercise, in both themes."""

from __future__ import annotations

import pytest

from course_lib.base import paths

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]


def test_a_learner_works_through_lesson_01(course, page, expect):
    course.run("01_normalisation")

    # the stepper: own rows, the other norm, another eps; the words follow
    caption = course.captions.first
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
    course.shoot("lesson01-stepper")
    course.theme("Dark")
    caption.scroll_into_view_if_needed()
    course.shoot("lesson01-stepper-dark")
    course.assert_readable(caption)
    page.get_by_role("button", name="Reset", exact=True).first.click()
    expect(caption).to_contain_text("LayerNorm, row 0 of 3 x 8")
    expect(typed).to_be_hidden()

    # 01a: unsolved, half solved, solved
    panel = course.panel
    panel.scroll_into_view_if_needed()
    expect(course.check()).to_contain_text("01a LayerNorm in PyTorch operations: not attempted")
    solution = (paths.SOLUTIONS / "ex01a_layer_norm.py").read_text()
    (course.root / "exercises" / "ex01a_layer_norm.py").write_text(
        solution.replace("torch.rsqrt(var + eps)", "1 / (torch.sqrt(var) + eps)")
    )
    expect(course.check()).to_contain_text("eps stands outside the root", timeout=60_000)
    course.solve("ex01a_layer_norm.py")
    expect(course.check()).to_contain_text(course.PASS, timeout=60_000)
    course.shoot("lesson01-pass-dark", panel)
