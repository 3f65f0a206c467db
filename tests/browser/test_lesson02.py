"""Lesson 02 in a real JupyterLab: turn the projection, make it no projector, see formulas, check a panel; light and dark."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]


def test_a_learner_turns_the_projection(course, page, expect):
    course.run("02_vjps")

    # the formulas are typeset, and none is left with an error in it
    page.locator(".jp-Notebook mjx-container").first.wait_for(state="attached")
    assert page.locator(".jp-Notebook mjx-merror").count() == 0

    caption = course.captions.first
    caption.scroll_into_view_if_needed()
    course.shoot("lesson02-projection")

    # wdy turns by keyboard: the caption follows, and the mean of what is left stays 0
    slider = page.locator(".widget-slider", has_text="turn wdy").locator(".noUi-handle")
    picture = course.pictures.first
    before, words = picture.get_attribute("src"), caption.inner_text()
    slider.focus()
    slider.press("ArrowRight")
    expect(caption).not_to_have_text(words)
    expect(picture).not_to_have_attribute("src", before)
    expect(caption).to_contain_text("Its mean is 0, so a step along it cannot change the mean of the row.")
    expect(caption).to_contain_text("it is a projector")

    # eps: six steps to 3, and part of the push along xhat comes through
    slider = page.locator(".widget-hslider", has_text="eps").locator(".noUi-handle")
    before = picture.get_attribute("src")
    slider.focus()
    for _ in range(6):
        slider.press("ArrowRight")
    expect(caption).to_contain_text("it is no projector")
    expect(picture).not_to_have_attribute("src", before)
    course.shoot("lesson02-projection-eps")

    # RMSNorm: the mean may change
    norm = page.locator(".widget-dropdown", has_text="norm").locator("select").first
    norm.select_option("RMSNorm")
    expect(caption).to_contain_text("changes the mean of the row")

    # the dark theme: the drawing keeps its light panel, the words stay readable
    course.theme("Dark")
    caption.scroll_into_view_if_needed()
    course.shoot("lesson02-projection-dark")
    course.assert_readable(caption)

    course.panel.scroll_into_view_if_needed()
    expect(course.check()).to_contain_text("02a The VJP of LayerNorm: not attempted")
