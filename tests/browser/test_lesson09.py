"""The schedule explorer of lesson 09 in a real JupyterLab: step, seed, another kernel, the keyboard; light and dark."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]


def test_the_schedule_explorer_moves(course, page, expect):
    caption, image = course.captions.first, course.pictures.first
    course.run("09_backward_dw_db", until=caption, seconds=150)

    # step, and the keyboard: words and picture follow
    caption.scroll_into_view_if_needed()
    expect(caption).to_contain_text("Seed 0, operation 0 of")
    before = image.get_attribute("src")
    page.get_by_role("button", name="Step", exact=True).first.click()
    expect(caption).to_contain_text("operation 1 of")
    expect(image).not_to_have_attribute("src", before)
    handle = page.locator(".widget-slider .noUi-handle").first
    handle.focus()
    handle.press("ArrowRight")
    expect(caption).to_contain_text("operation 2 of")
    handle.press("End")
    expect(caption).to_contain_text("Race on buffer_ptr")
    course.shoot("lesson09-race")

    # another seed: another order
    seed = page.get_by_label("seed").first
    words = caption.inner_text()
    seed.fill("3")
    seed.press("Enter")
    expect(caption).to_contain_text("Seed 3, operation 0 of")
    assert caption.inner_text() != words

    # a deadlock, and the learner's own file, which is run in a second process
    kernel = page.locator(".widget-dropdown select").first
    for name, words in (
        ("never released", "Deadlock in wrong_release_kernel"),
        ("09a, your file", "add_to_buffers_kernel"),
    ):
        now = image.get_attribute("src")
        kernel.select_option(name)
        expect(image).not_to_have_attribute("src", now)
        course.wait_until_idle(60)
        handle.focus()
        handle.press("End")
        expect(caption).to_contain_text(words, timeout=30_000)
    course.shoot("lesson09-yours")
    course.theme("Dark")
    caption.scroll_into_view_if_needed()
    course.shoot("lesson09-dark")
