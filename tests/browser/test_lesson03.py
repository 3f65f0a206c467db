"""Lesson 03 in a real JupyterLab: both widgets moved with the keyboard, light and dark, and exercise 03a solved."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]


def test_both_widgets_move_and_an_exercise_is_solved(course, page, expect):
    course.run("03_statistics")

    # the cancellation explorer: another algorithm, then the mean by the arrow keys
    explorer, picture = course.captions.first, course.pictures.first
    explorer.scroll_into_view_if_needed()
    expect(explorer).to_contain_text("One-pass at mean/std = 1000: 12 % off, and y looks as good as ever")
    before = picture.get_attribute("src")
    page.locator(".widget-dropdown select").first.select_option("two-pass")
    expect(explorer).to_contain_text("Two-pass at mean/std = 1000: right to")
    assert picture.get_attribute("src") != before
    page.locator(".widget-dropdown select").first.select_option("one-pass")
    handle = page.locator(".widget-slider .noUi-handle").first
    handle.focus()
    handle.press("ArrowLeft")
    expect(explorer).to_contain_text("One-pass at mean/std = 300: 1.6 % off")
    course.shoot("lesson03-explorer")

    # the merge tree: a step, then the slider
    tree = course.captions.nth(1)
    tree.scroll_into_view_if_needed()
    expect(tree).to_contain_text("Frame 1 of 8.")
    page.get_by_role("button", name="Step", exact=True).first.click()
    expect(tree).to_contain_text("Frame 2 of 8. 8 numbers in blocks of 1, fp32. The means are 2 and -1, d = -3")
    page.get_by_role("button", name="Step", exact=True).first.press("Space")
    expect(tree).to_contain_text("Frame 3 of 8.")
    course.theme("Dark")
    course.shoot("lesson03-tree-dark")

    # the first panel is 03a's: unsolved, then solved
    panel = course.panel
    panel.scroll_into_view_if_needed()
    expect(course.check()).to_contain_text("03a One pass and two passes: not attempted")
    course.solve("ex03a_one_pass_two_pass.py")
    expect(course.check()).to_contain_text(course.PASS)
    course.shoot("lesson03-pass-dark", panel)
