"""Lesson 04 in a real JupyterLab: the merge tree stepped and split with the keyboard, light and
dark, and exercise 04a solved."""

from __future__ import annotations

import pytest


@pytest.mark.sweep
def test_the_tree_is_stepped_and_split_and_an_exercise_is_solved(course, page, expect):
    course.run("04_streaming_and_merging", "merge_tree(", 'exercise("04a")')

    tree = page.locator('[data-picture^="merge_tree-"]').first
    tree.scroll_into_view_if_needed()
    expect(tree.locator(".title")).to_contain_text("Each block takes in its first number")
    step = tree.get_by_role("button", name="Step", exact=True)
    step.click()
    expect(tree.locator(".title")).to_contain_text("Welford: each block takes in its number 2")
    for _ in range(3):
        step.press("Space")
    expect(tree.locator(".title")).to_contain_text("8 numbers: M2 = 0 + 0 + 32 = 32, variance 4")
    course.shoot("lesson04-tree")
    tree.locator('[data-key="split"]').press("ArrowLeft")
    expect(tree.locator(".caption")).to_contain_text("split in two by hand")
    course.theme("Dark")
    course.assert_readable(tree.locator(".title"))
    course.shoot("lesson04-tree-dark")

    panel = course.panel
    panel.scroll_into_view_if_needed()
    expect(course.check()).to_contain_text("04a Welford's algorithm: not attempted")
    course.solve("ex04a_welford.py")
    expect(course.check()).to_contain_text(course.PASS)
    course.shoot("lesson04-pass-dark", panel)
