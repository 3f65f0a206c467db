"""A reader of lesson 05 in a real JupyterLab: run it, move the accuracy widget, draw a kernel of their own, light and dark."""

from __future__ import annotations

import re

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]


def test_a_reader_moves_the_accuracy_widget(course, page, expect):
    caption = course.captions.first
    course.run("05_statistics_in_triton", until=caption, seconds=180)

    # by keyboard: the slider's ratio is in the words, and the picture changes
    caption.scroll_into_view_if_needed()
    expect(caption).to_contain_text("At mean/std = 1000,")
    widget = page.locator(".jp-OutputArea-output", has=caption).first  # the panels have pictures of their own
    image = widget.locator(".widget-image[src^=blob]").first
    before = image.get_attribute("src")
    handle = widget.locator(".widget-slider .noUi-handle").first
    handle.focus()
    handle.press("ArrowRight")
    expect(caption).to_contain_text("At mean/std = 3162,")
    expect(image).not_to_have_attribute("src", before)

    # a kernel of the reader's: unsolved it gives words, solved a curve
    mine = widget.get_by_label("your 05b", exact=True)
    mine.check()
    expect(caption).to_contain_text(
        "your 05b gave nothing to draw: exercises/ex05b_welford_statistics.py is still as the course wrote it."
    )
    course.solve("ex05b_welford_statistics.py")
    mine.uncheck()
    mine.check()
    expect(caption).to_contain_text(re.compile(r"your 05b \d(\.\d)?e-0\d"), timeout=60_000)
    course.shoot("lesson05-accuracy", widget)
    course.theme("Dark")
    course.shoot("lesson05-accuracy-dark", widget)
    widget.get_by_role("button", name="Reset", exact=True).click()
    expect(caption).to_contain_text("At mean/std = 1000,")
