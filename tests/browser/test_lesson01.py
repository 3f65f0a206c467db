"""A learner's path through lesson 01, in a real JupyterLab: step through the kernel, drag a number,
check an exercise, in both themes."""

from __future__ import annotations

import pytest

from course_lib.base import paths


@pytest.mark.sweep
def test_a_learner_works_through_lesson_01(course, page, expect):
    course.run("01_first_layer_norm", "figures.step_norm_kernel(", 'exercise("01a")')

    # the row of eight: a step, and a number moved; the words follow
    eight = page.locator('[data-picture^="block_stepper-"]').first
    eight.scroll_into_view_if_needed()
    eight.locator('[data-key="step-1"]').click()
    expect(eight.locator(".title")).to_have_text("The lanes add up to 40, so the mean is 5")
    eight.locator('[data-key="x-7"]').press("ArrowUp")
    expect(eight.locator(".title")).to_have_text("The lanes add up to 40.5, so the mean is 5.063")
    eight.get_by_role("button", name="Reset", exact=True).click()
    course.shoot("lesson01-eight")

    # the row of five: the lanes past the end
    five = page.locator('[data-picture^="block_stepper-"]').last
    five.scroll_into_view_if_needed()
    five.locator('[data-key="step-2"]').click()
    expect(five.locator(".title")).to_have_text(
        "3 lanes past the end add mean² to the sum of squares"
    )
    course.theme("Dark")
    expect(five).to_have_attribute("data-theme", "dark")
    course.assert_readable(five.locator(".caption"))
    course.shoot("lesson01-five-dark")

    # 01a: unsolved, half solved, solved
    panel = course.panel
    panel.scroll_into_view_if_needed()
    expect(course.check()).to_contain_text("01a LayerNorm in PyTorch operations: not attempted")
    solution = (paths.SOLUTIONS / "ex01a_layer_norm.py").read_text()
    (course.root / "exercises" / "ex01a_layer_norm.py").write_text(
        solution.replace("torch.rsqrt(var + eps)", "1 / (torch.sqrt(var) + eps)")
    )
    expect(course.check()).to_contain_text("eps stands outside the root")
    course.solve("ex01a_layer_norm.py")
    expect(course.check()).to_contain_text(course.PASS)
    course.shoot("lesson01-pass-dark", panel)
