"""A learner's path through lesson 07, in a real JupyterLab: its pictures, one of which asks Python,
and the panel of an exercise."""

from __future__ import annotations

import re
from pathlib import Path

from course_lib.base import paths

STORED = "        tl.store(y_ptr + cols"
LOADED_AGAIN = "        y += 0 * tl.load(x_ptr + cols, mask=mask, other=0.0).to(tl.float32)\n"
WITH_MASK, WITHOUT_MASK = "deviation = tl.where(cols < N, x - mean, 0.0)", "deviation = x - mean"


def test_a_learner_works_through_lesson_07(course, page, expect):
    course.run("07_layer_norm_any_row", "block_stepper(kind=", "forward_map(", 'exercise("07a")')
    follow_the_block_stepper(course, page, expect)
    follow_the_access_map(course, page, expect)
    check_until_it_passes(course, expect)
    ask_for_the_learners_kernel(page, expect)
    look_in_the_dark(course)
    open_the_file_beside(course, page, expect)
    reset(course, expect)


def follow_the_block_stepper(course, page, expect):
    """It begins with the bug: the words follow the steps."""
    picture = page.locator('[data-picture^="block_stepper-"]')
    picture.scroll_into_view_if_needed()
    for _ in range(4):
        picture.get_by_role("button", name="Step", exact=True).click()
    expect(picture.locator(".title")).to_contain_text(
        "3 lanes past the end add mean² to the sum of squares"
    )
    picture.get_by_text("mask the deviation").click()
    expect(picture.locator(".caption")).to_contain_text("3 lanes lie past column 4 and add 0.")
    course.shoot("lesson07-stepper")


def follow_the_access_map(course, page, expect):
    """A step, another program by keyboard, a lane; then the learner's kernel, which is not written
    yet."""
    access_map = page.locator('[data-picture^="access_map-"]').first
    caption = access_map.locator(".caption")
    access_map.scroll_into_view_if_needed()
    expect(caption).to_contain_text(
        "Program 0, operation 1 of 14: first read of tensor x by 64 lanes"
    )
    access_map.get_by_role("button", name="Step", exact=True).click()
    expect(caption).to_contain_text(
        "operation 2 of 14: first read of tensor x by 36 lanes (28 more lanes masked)"
    )
    access_map.locator('[data-control="program"] input').press("ArrowRight")
    expect(caption).to_contain_text("Program 1, operation 2 of 14")
    access_map.locator('[data-key="lane-5"]').click()
    expect(caption).to_contain_text("Lane 5 accesses x[169]")
    course.shoot("lesson07-access-map", access_map)
    page.locator(".widget-dropdown", has_text="kernel").locator("select").select_option(
        "yours, 07a"
    )
    page.get_by_role("button", name="Run it", exact=True).click()
    expect(page.get_by_text("No new picture for kernel = yours, 07a")).to_contain_text(
        "Do exercise 07a first"
    )
    expect(caption).to_contain_text("Program 1, operation 2 of 14")


def check_until_it_passes(course, expect):
    """The first panel is 07a's: unsolved, with a mistake, solved."""
    course.panel.scroll_into_view_if_needed()
    counted = course.panel.locator(".course-counts")
    expect(counted).to_have_text(re.compile(r"at most 3\s*yours\s*\?\s*course\s*3\s*least\s*2"))
    expect(course.check()).to_contain_text("07a LayerNorm forward, block by block: not attempted")
    course.shoot("lesson07-not-attempted")
    course.solve("ex07a_layer_norm_forward.py")
    file = course.root / "exercises" / "ex07a_layer_norm_forward.py"
    right = file.read_text()
    assert right.count(WITH_MASK) == 1
    file.write_text(right.replace(WITH_MASK, WITHOUT_MASK))
    expect(course.check()).to_contain_text("Padding in the variance")
    file.write_text(right.replace(STORED, LOADED_AGAIN + STORED))
    expect(course.check()).to_contain_text("More sweeps over memory")
    expect(counted).to_have_text(re.compile(r"at most 3\s*yours\s*4\s*course\s*3\s*least\s*2"))
    course.shoot("lesson07-reads-too-often")
    file.write_text(right)
    verdict = course.check()
    expect(counted).to_have_text(re.compile(r"at most 3\s*yours\s*3\s*course\s*3\s*least\s*2"))
    expect(verdict).to_contain_text(course.PASS)
    expect(verdict).to_contain_text("What you avoided.")
    course.shoot("lesson07-pass")


def ask_for_the_learners_kernel(page, expect):
    access_map = page.locator('[data-picture^="access_map-"]').first
    page.get_by_role("button", name="Run it", exact=True).click()
    expect(access_map.locator(".caption")).to_contain_text(
        "Program 0, operation 1 of 14: first read of tensor x by 64 lanes"
    )
    expect(access_map).to_contain_text("total += tl.load")


def look_in_the_dark(course):
    course.theme("Dark")
    course.shoot("lesson07-pass-dark", course.panel)
    listing = course.panel.locator("pre", has_text="layer_norm_blocked_kernel")
    painted = (
        "e => [e, ...e.querySelectorAll('span')].map(n => getComputedStyle(n).backgroundColor)"
    )
    assert set(listing.evaluate(painted)) <= {"rgb(252, 252, 250)", "rgba(0, 0, 0, 0)"}, (
        "dark text on a dark theme's background"
    )


def open_the_file_beside(course, page, expect):
    """The link opens the learner's file beside the notebook."""
    course.panel.get_by_role("button", name=re.compile("beside this notebook")).click()
    editor = page.locator(".jp-FileEditor")
    editor.wait_for()
    assert editor.bounding_box()["x"] > page.locator(".jp-NotebookPanel").bounding_box()["x"]
    expect(editor).to_contain_text("layer_norm_blocked_kernel")
    course.shoot("lesson07-file-beside")


def reset(course, expect):
    """Reset asks first, keeps the work, and the panel still checks."""
    course.panel.get_by_role("button", name="Reset", exact=True).click()
    course.panel.get_by_role("button", name="Yes", exact=True).click()
    expect(course.panel).to_contain_text("The file is as the course wrote it.")
    kept = list((course.root / ".course" / "kept").glob("ex07a*"))
    assert [Path(copy).read_text() for copy in kept] == [
        (paths.SOLUTIONS / "ex07a_layer_norm_forward.py").read_text()
    ]
    expect(course.check()).to_contain_text("not attempted")
