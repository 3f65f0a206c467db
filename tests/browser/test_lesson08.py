"""Lesson 08 in a real JupyterLab: choose a mistake, read the line, change the norm, check a panel; light and dark."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]


def test_a_learner_finds_the_missing_term(course, page, expect):
    course.run("08_backward_dx", seconds=150)
    page.locator(".jp-Notebook mjx-container").first.wait_for(state="attached")
    assert page.locator(".jp-Notebook mjx-merror").count() == 0

    # a mistake is chosen: picture and words follow
    caption = course.captions.first
    caption.scroll_into_view_if_needed()
    expect(caption).to_contain_text("No error.")
    picture = course.pictures.first
    before = picture.get_attribute("src")
    wrong = page.locator(".widget-dropdown", has_text="wrong").locator("select").first
    wrong.select_option("c1 left out")
    expect(caption).to_contain_text("All along xhat, by c1 * rstd: c1 is missing.")
    expect(picture).not_to_have_attribute("src", before)
    course.shoot("lesson08-missing-c1")

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
    course.theme("Dark")
    wrong.select_option("c1 and c2 left out")
    expect(caption).to_contain_text("All along 1, by c2 * rstd")  # with dy and w of ones c1 is 0
    caption.scroll_into_view_if_needed()
    course.shoot("lesson08-missing-dark")
    course.assert_readable(caption)

    course.panel.scroll_into_view_if_needed()
    expect(course.check()).to_contain_text("08a dx of LayerNorm: not attempted")
    course.solve("ex08a_layer_norm_dx.py")
    expect(course.check()).to_contain_text(course.PASS, timeout=30_000)
