"""Lesson 11 in a real JupyterLab: name a hidden mistake, choose one, read the line, change the
norm, check a panel; light and dark."""

from __future__ import annotations

import pytest


@pytest.mark.sweep
def test_a_learner_finds_the_missing_term(course, page, expect):
    course.run("11_dx", "missing_term(", 'exercise("11a")')

    # it opens with a mistake that is not told, and takes a guess
    picture = page.locator('[data-picture^="missing_term-"]')
    picture.scroll_into_view_if_needed()
    title, caption = picture.locator(".title"), picture.locator(".caption")
    expect(title).to_contain_text("which one?")
    expect(picture).not_to_contain_text("is missing")
    course.shoot("lesson11-mystery")

    def choose(name: str) -> None:
        picture.get_by_role("radio", name=name, exact=True).check()

    choose("xhat")
    choose("c2")
    expect(title).to_contain_text("Not \u201cc2 left out\u201d")
    choose("c1")
    expect(title).to_contain_text("Yes, c1 left out")

    # a mistake is chosen: the words follow
    picture.get_by_role("button", name="Choose it myself").click()
    expect(title).to_contain_text("No error")
    choose("c1")
    expect(title).to_contain_text("The error is c1 * rstd along xhat: c1 is missing")
    course.shoot("lesson11-missing-c1")

    # by keyboard: mean/std from 3 to 100 with bf16 statistics
    choose("bf16 statistics")
    expect(title).to_contain_text("digits are lost somewhere")
    slider = picture.locator('[data-control="ratio"] input')
    slider.press("ArrowRight")
    slider.press("ArrowRight")
    expect(caption).to_contain_text("mean/std = 100")
    expect(title).to_contain_text("xhat is wrong")

    # RMSNorm, and the test that sees nothing
    choose("RMSNorm")
    choose("c2")
    expect(title).to_contain_text("RMSNorm has no c2")
    choose("LayerNorm")
    choose("c1")
    choose("all 1, as y.sum() sends")
    choose("all 1")
    expect(title).to_contain_text("This test does not see the mistake")

    # a hidden mistake is not told
    picture.get_by_role("button", name="Hide a mistake").click()
    expect(title).to_contain_text("which one?")

    # the dark theme
    course.theme("Dark")
    expect(picture).to_have_attribute("data-theme", "dark")
    course.shoot("lesson11-missing-dark")
    course.assert_readable(caption)

    course.panel.scroll_into_view_if_needed()
    expect(course.check()).to_contain_text("11a dx of LayerNorm: not attempted")
    course.solve("ex11a_layer_norm_dx.py")
    expect(course.check()).to_contain_text(course.PASS)
