"""A learner's path through lesson 02, in a real JupyterLab: the picture of a row, and 02a
checked."""

from __future__ import annotations

import pytest

from course_lib.base import paths


@pytest.mark.sweep
def test_a_learner_works_through_lesson_02(course, page, expect):
    course.run("02_rms_norm", "block_stepper(", 'exercise("02a")')

    row = page.locator('[data-picture^="block_stepper-"]').first
    row.scroll_into_view_if_needed()
    row.locator('[data-key="step-1"]').click()
    expect(row.locator(".title")).to_contain_text("The lanes add up to Inf")
    course.shoot("lesson02-row")

    # 02a, the first panel: unsolved, eps outside the root, solved
    expect(course.check()).to_contain_text("02a RMSNorm in PyTorch operations: not attempted")
    solution = (paths.SOLUTIONS / "ex02a_rms_norm.py").read_text()
    (course.root / "exercises" / "ex02a_rms_norm.py").write_text(
        solution.replace("torch.rsqrt(mean_square + eps)", "1 / (torch.sqrt(mean_square) + eps)")
    )
    expect(course.check()).to_contain_text("eps stands outside the root")
    course.solve("ex02a_rms_norm.py")
    expect(course.check()).to_contain_text(course.PASS)
    course.shoot("lesson02-pass", course.panel)
