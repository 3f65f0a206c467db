"""Lesson 03 in a real JupyterLab: the picture moved with the keyboard, light and dark, and exercise
03a solved."""

from __future__ import annotations

import pytest


@pytest.mark.sweep
def test_the_picture_moves_and_the_exercise_is_solved(course, page, expect):
    course.run("03_large_means", "cancellation(", 'exercise("03a")')

    # the cancellation explorer: another algorithm, then the mean by the arrow keys
    explorer = page.locator('[data-picture^="cancellation-"]').first
    explorer.scroll_into_view_if_needed()
    title = explorer.locator(".title")
    # above it the page asks what a reader of y would notice: at first it does not say
    expect(title).not_to_contain_text("and y looks right")
    for _ in range(5):
        explorer.locator('[data-key="ratio"]').press("ArrowRight")
    expect(title).to_contain_text(
        "One-pass at mean/std = 300: the variance is 0.68 % off, and y looks right"
    )
    explorer.get_by_label("two-pass", exact=True).check()
    expect(title).to_contain_text("Two-pass at mean/std = 300: right to")
    explorer.get_by_label("one-pass", exact=True).check()
    explorer.locator('[data-key="ratio"]').press("ArrowRight")
    expect(title).to_contain_text("One-pass at mean/std = 1000: ")
    course.shoot("lesson03-explorer")
    course.theme("Dark")
    course.assert_readable(title)

    panel = course.panel
    panel.scroll_into_view_if_needed()
    expect(course.check()).to_contain_text("03a One-pass and two-pass: not attempted")
    course.solve("ex03a_one_pass_two_pass.py")
    expect(course.check()).to_contain_text(course.PASS)
    course.shoot("lesson03-pass-dark", panel)
