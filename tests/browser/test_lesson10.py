"""Lesson 10 in a real JupyterLab: turn the projection, make it no projector, see formulas, check a
panel; light and dark."""

from __future__ import annotations

import pytest


@pytest.mark.sweep
def test_a_learner_turns_the_projection(course, page, expect):
    course.run("10_vjps", "projection()", 'exercise("10a")')

    # the formulas are typeset, and none is left with an error in it
    page.locator(".jp-Notebook mjx-container").first.wait_for(state="attached")
    assert page.locator(".jp-Notebook mjx-merror").count() == 0

    picture = page.locator('[data-picture^="projection-"]')
    picture.scroll_into_view_if_needed()
    caption = picture.locator(".caption")
    course.shoot("lesson10-projection")

    # wdy turns by keyboard: the words follow, and the mean of what is left stays 0
    words = caption.inner_text()
    picture.locator('[data-key="wdy"]').press("ArrowRight")
    expect(caption).not_to_have_text(words)
    expect(caption).to_contain_text(
        "The mean of this vector is 0.00, so a step along it cannot change the mean of the row."
    )
    expect(caption).to_contain_text("the matrix is a projector")

    # eps: six steps to 3, and part of the push along xhat comes through
    slider = picture.locator('[data-control="eps"] input')
    for _ in range(6):
        slider.press("ArrowRight")
    expect(caption).to_contain_text("the matrix is no projector")
    course.shoot("lesson10-projection-eps")

    # RMSNorm: the mean may change
    picture.get_by_role("radio", name="RMSNorm", exact=True).check()
    expect(caption).to_contain_text("changes the mean of the row")

    # the dark theme
    course.theme("Dark")
    expect(picture).to_have_attribute("data-theme", "dark")
    course.shoot("lesson10-projection-dark")
    course.assert_readable(caption)

    course.panel.scroll_into_view_if_needed()
    expect(course.check()).to_contain_text("10a The VJP of LayerNorm: not attempted")
