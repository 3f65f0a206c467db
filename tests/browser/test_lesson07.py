"""A learner's path through lesson 07, in a real JupyterLab: run it, move a slider, check, solve, check again."""

from __future__ import annotations

import re
from pathlib import Path

from course_lib.base import paths


def test_a_learner_works_through_lesson_07(course, page, expect):
    course.run("07_layer_norm_any_row", "block_stepper(kind=", 'exercise("07a")')

    # the block stepper begins with the bug: the words follow the steps
    picture = page.locator('[data-picture^="block_stepper-"]')
    picture.scroll_into_view_if_needed()
    for _ in range(4):
        picture.get_by_role("button", name="Step", exact=True).click()
    expect(picture.locator(".title")).to_contain_text("3 lanes past the end add mean² to the sum of squares")
    picture.get_by_text("mask the deviation").click()
    expect(picture.locator(".caption")).to_contain_text("3 lanes lie past column 4 and add 0.")
    course.shoot("lesson07-stepper")

    # the first panel is 07a's: unsolved, then solved
    panel = course.panel
    panel.scroll_into_view_if_needed()
    expect(course.check()).to_contain_text("07a LayerNorm forward, block by block: not attempted")
    course.shoot("lesson07-not-attempted")
    course.solve("ex07a_layer_norm_forward.py")
    verdict = course.check()
    expect(verdict).to_contain_text(course.PASS)
    expect(verdict).to_contain_text("What you avoided.")
    course.shoot("lesson07-pass")
    course.theme("Dark")
    course.shoot("lesson07-pass-dark", panel)
    listing = panel.locator("pre", has_text="layer_norm_blocked_kernel")
    painted = "e => [e, ...e.querySelectorAll('span')].map(n => getComputedStyle(n).backgroundColor)"
    assert set(listing.evaluate(painted)) <= {"rgb(252, 252, 250)", "rgba(0, 0, 0, 0)"}, "dark text on a dark theme's background"

    # the link opens the learner's file beside the notebook
    panel.get_by_role("button", name=re.compile("beside this notebook")).click()
    editor = page.locator(".jp-FileEditor")
    editor.wait_for()
    assert editor.bounding_box()["x"] > page.locator(".jp-NotebookPanel").bounding_box()["x"]
    expect(editor).to_contain_text("layer_norm_blocked_kernel")
    course.shoot("lesson07-file-beside")

    # Reset asks first, keeps the work, and the panel still checks
    panel.get_by_role("button", name="Reset", exact=True).click()
    panel.get_by_role("button", name="Yes", exact=True).click()
    expect(panel).to_contain_text("The file is as the course wrote it.")
    kept = list((course.root / ".course" / "kept").glob("ex07a*"))
    assert [Path(copy).read_text() for copy in kept] == [(paths.SOLUTIONS / "ex07a_layer_norm_forward.py").read_text()]
    expect(course.check()).to_contain_text("not attempted")
