"""A reader of lesson 05 in a real JupyterLab: run it, move the accuracy picture, draw a kernel of
their own, light and dark."""

from __future__ import annotations

import re

import pytest


@pytest.mark.sweep
def test_a_reader_moves_the_accuracy_picture(course, page, expect):
    picture = page.locator('[data-picture^="accuracy-"]').first
    caption = picture.locator(".caption")
    course.run("05_statistics_kernels", "accuracy()", until=picture)

    # by keyboard: the ratio of the line is in the words
    picture.scroll_into_view_if_needed()
    expect(caption).to_contain_text("in 4 rows at mean/std = 1000:")
    picture.locator('[data-key="ratio"]').press("ArrowRight")
    expect(caption).to_contain_text("in 4 rows at mean/std = 3162:")

    # a kernel of the reader's: unsolved it gives words, solved a curve
    page.get_by_label("your 05b", exact=True).check()
    run = page.get_by_role("button", name="Run the kernels", exact=True)
    run.click()
    expect(caption).to_contain_text(
        "your 05b gave nothing to draw: exercises/ex05b_welford_statistics.py is still as the"
        " course wrote it."
    )
    course.solve("ex05b_welford_statistics.py")
    run.click()
    expect(caption).to_contain_text(re.compile(r"your 05b \d(\.\d)?·10⁻"))
    course.shoot("lesson05-accuracy")
    course.theme("Dark")
    course.assert_readable(picture.locator(".title"))
    course.shoot("lesson05-accuracy-dark")
