"""A learner's path through lesson 06, in a real JupyterLab: run it, move a slider, check, solve, check again."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from course_lib.base import paths

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]


def test_a_learner_works_through_lesson_06(course, page, expect):
    course.run("06_layer_norm_forward")

    # the block stepper: its picture and its words follow the slider
    caption = course.captions.first
    caption.scroll_into_view_if_needed()
    picture = course.pictures.first
    before, words = picture.get_attribute("src"), caption.inner_text()
    page.get_by_role("button", name="Step", exact=True).first.click()
    expect(caption).not_to_have_text(words)
    handle = page.locator(".widget-slider .noUi-handle").first
    handle.focus()
    handle.press("ArrowRight")
    expect(picture).not_to_have_attribute("src", before)
    course.shoot("lesson06-stepper")

    # the first panel is 06a's: unsolved, then solved
    panel = course.panel
    panel.scroll_into_view_if_needed()
    expect(course.check()).to_contain_text("06a LayerNorm forward, block by block: not attempted")
    course.shoot("lesson06-not-attempted")
    course.solve("ex06a_layer_norm_forward.py")
    verdict = course.check()
    expect(verdict).to_contain_text(course.PASS)
    expect(verdict).to_contain_text("What you avoided.")
    course.shoot("lesson06-pass")
    course.theme("Dark")
    course.shoot("lesson06-pass-dark", panel)
    listing = panel.locator("pre", has_text="layer_norm_blocked_kernel")
    painted = "e => [e, ...e.querySelectorAll('span')].map(n => getComputedStyle(n).backgroundColor)"
    assert set(listing.evaluate(painted)) <= {"rgb(252, 252, 250)", "rgba(0, 0, 0, 0)"}, (
        "dark text on a dark theme's background"
    )

    # the link opens the learner's file beside the notebook
    panel.get_by_role("button", name=re.compile("beside this notebook")).click()
    editor = page.locator(".jp-FileEditor")
    editor.wait_for()
    assert editor.bounding_box()["x"] > page.locator(".jp-NotebookPanel").bounding_box()["x"]
    expect(editor).to_contain_text("layer_norm_blocked_kernel")
    course.shoot("lesson06-file-beside")

    # Reset asks first, keeps the work, and the panel still checks
    panel.get_by_role("button", name="Reset", exact=True).click()
    panel.get_by_role("button", name="Yes", exact=True).click()
    expect(panel).to_contain_text("The file is as the course wrote it.")
    kept = list((course.root / ".course" / "kept").glob("ex06a*"))
    assert [Path(copy).read_text() for copy in kept] == [(paths.SOLUTIONS / "ex06a_layer_norm_forward.py").read_text()]
    expect(course.check()).to_contain_text("not attempted")
