"""Lesson 04 in a real JupyterLab: step through the tree by keyboard, let warps shuffle, choose an algorithm; in both themes."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]


def test_the_tree_and_the_counter_follow_their_controls(course, page, expect):
    course.run("04_reductions_and_memory")

    captions, images = course.captions, course.pictures
    assert captions.count() == 3  # two trees and the counter

    # the tree: the button, then the slider by keyboard
    tree = captions.nth(0)
    tree.scroll_into_view_if_needed()
    expect(tree).to_contain_text("Thread t starts with value t.")
    page.get_by_role("button", name="Step", exact=True).first.click()
    expect(tree).to_contain_text("Step 1 of 4")
    before = images.nth(0).get_attribute("src")
    # the last handle of the first widget is the frame's
    frame = page.locator(".widget-slider", has_text="frame").first.locator(".noUi-handle")
    frame.focus()
    frame.press("ArrowRight")
    expect(tree).to_contain_text("Step 2 of 4, stride 4: threads t = 0 to 3 add the number of thread t + 4")
    expect(images.nth(0)).not_to_have_attribute("src", before)
    page.locator(".widget-dropdown select").nth(0).select_option(label="warp shuffles")
    expect(tree).to_contain_text("warp shuffles")

    # the counter
    counter = captions.nth(2)
    counter.scroll_into_view_if_needed()
    expect(counter).to_contain_text("3 passes of reading, 1 of writing")
    before = images.nth(2).get_attribute("src")
    page.locator(".widget-dropdown", has_text="algorithm").locator("select").select_option(label="op by op")
    expect(counter).to_contain_text("5 launches: 5 passes of reading, 3 of writing")
    expect(images.nth(2)).not_to_have_attribute("src", before)

    ink = "e => getComputedStyle(e).color"
    light = counter.evaluate(ink)
    course.shoot("lesson04-counter")
    course.theme("Dark")
    assert counter.evaluate(ink) != light, "the caption keeps its light-theme colour on a dark page"
    course.shoot("lesson04-counter-dark")
    tree.scroll_into_view_if_needed()
    course.shoot("lesson04-tree-dark")
