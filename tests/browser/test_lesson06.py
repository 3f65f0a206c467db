"""Lesson 06 in a real JupyterLab: step through the tree by keyboard, let warps shuffle, choose an
algorithm; in both themes."""

from __future__ import annotations

import pytest


@pytest.mark.sweep
def test_the_tree_and_the_counter_follow_their_controls(course, page, expect):
    course.run("06_reductions_and_memory", "reduction_tree(", "pass_counter(", 'exercise("06a")')

    # the tree: the button, then the slider by keyboard
    tree = page.locator('[data-picture^="reduction_tree-"]').first
    tree.scroll_into_view_if_needed()
    expect(tree.locator(".caption")).to_contain_text("Thread t starts with x[t].")
    tree.get_by_role("button", name="Step", exact=True).click()
    expect(tree.locator(".title")).to_contain_text("Step 1 of 4")
    tree.get_by_label("frame").press("ArrowRight")
    expect(tree.locator(".caption")).to_contain_text(
        "Step 2 of 4, stride 4: each thread t from 0 to 3 adds the number of thread t + 4"
    )
    tree.locator('[data-key="cell-3-1"]').click()
    expect(tree.locator(".title")).to_contain_text("Thread 1 holds the sum of 4 of the 16 values")
    tree.get_by_label("warp shuffles", exact=True).check()
    expect(tree.locator(".caption")).to_contain_text("warp shuffles")

    # the counter: choose a bar, then scrub along the row
    counter = page.locator('[data-picture^="pass_counter-"]').first
    counter.scroll_into_view_if_needed()
    expect(counter.locator(".caption")).to_contain_text(
        "5 sweeps for reading, 3 sweeps for writing"
    )
    counter.locator('[data-key="bar-two_pass"]').press("Enter")
    expect(counter.locator(".caption")).to_contain_text("3 sweeps for reading, 1 sweep for writing")
    counter.locator('[data-key="bar-naive"]').press("Enter")
    expect(counter.locator(".caption")).to_contain_text(
        "7 launches: 5 sweeps for reading, 3 sweeps for writing"
    )
    counter.locator('[data-key="at"]').press("ArrowRight")
    expect(counter.locator(".caption")).to_contain_text("Access 1 of 64 of the first row: read x")

    # a kernel that is not yet written gives words, and the picture stays
    page.get_by_label("count your own kernel:").select_option(label="exercise 06a")
    page.get_by_role("button", name="Count it", exact=True).click()
    expect(page.get_by_text("No new picture for own = 06a")).to_be_visible()
    expect(counter.locator(".title")).to_contain_text("op by op: 8 sweeps")
    course.solve("ex06a_row_sum.py")
    page.get_by_role("button", name="Count it", exact=True).click()
    counted = page.locator('[data-picture^="pass_counter-"]').first
    expect(counted.locator(".title")).to_contain_text("your 06a: 1 pass, 0.5 times those of a copy")

    course.shoot("lesson06-counter")
    course.theme("Dark")
    course.assert_readable(counted.locator(".title"))
    course.shoot("lesson06-counter-dark")
    tree.scroll_into_view_if_needed()
    course.shoot("lesson06-tree-dark")
