"""Lesson 17 in a real JupyterLab: pairs of bug and input are clicked, tests are handed in, and the
boxes fill; light and dark."""

from __future__ import annotations

import pytest


@pytest.mark.sweep
def test_a_learner_predicts_and_catches_bugs(course, page, expect):
    course.run("17_bug_museum", 'predict("17-seen")', 'exercise("17a")', "show_met(met)")

    # four pairs are right; a fifth, for input A, is not
    prediction = page.locator(
        ".jp-OutputArea-output", has=page.get_by_role("button", name="kernel 1: A")
    ).first
    for cell in ("kernel 1: B", "kernel 1: C", "kernel 2: C", "kernel 3: D", "kernel 1: A"):
        prediction.get_by_role("button", name=cell).click()
    course.shoot("lesson17-cells")
    prediction.get_by_role("button", name="That is my prediction").click()
    expect(page.get_by_text("A is what most tests draw")).to_be_visible()
    course.shoot("lesson17-answered")

    # one of the seven tests is too weak; a prediction is a box of the same class as a panel
    course.panel = page.locator(
        ".course-exercise", has=page.get_by_role("button", name="Check", exact=True)
    )
    course.panel.scroll_into_view_if_needed()
    expect(course.check()).to_contain_text("not attempted")
    course.solve("ex17a_museum_tests.py")
    file = course.root / "exercises" / "ex17a_museum_tests.py"
    right = file.read_text()
    file.write_text(
        right.replace("torch.randn(5, 37) + 10", "torch.randn(5, 64) + 10").replace("(37)", "(64)")
    )
    verdict = course.check()
    expect(verdict).to_contain_text("fail, 6 of 7 bugs caught")
    expect(verdict).to_contain_text("catch_padding returns for a kernel with one block for the row")
    course.shoot("lesson17-fail")
    file.write_text(right)
    expect(course.check()).to_contain_text("pass, 7 of 7 bugs caught")

    course.theme("Dark")
    course.panel.scroll_into_view_if_needed()
    course.shoot("lesson17-dark")
