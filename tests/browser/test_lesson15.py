"""Lesson 15 in a real JupyterLab: a prediction, a step, the roofline by hand, the race with both
clocks, the exercise; light and dark."""

from __future__ import annotations

import pytest


@pytest.mark.sweep
def test_a_learner_reads_a_curve_races_and_counts_bytes(course, page, expect):
    roofline = page.locator('[data-picture^="kernel_roofline-"]')
    race = page.locator('[data-picture^="norm_race-"]')
    course.run(
        "15_measuring",
        'predict("15-climb")',
        'step("15-flight")',
        "kernel_roofline()",
        "norm_race()",
        "show_kernels()",
        'exercise("15a")',
        until=roofline.first,
    )

    # a prediction is committed, and answered
    asked = page.locator(".course-exercise", has_text="has to move eight times the bytes").first
    asked.get_by_label("8 times as long").check()
    asked.get_by_role("button", name="That is my prediction").click()
    expect(asked).to_contain_text("Not 8 times: that would be so if the bytes set the time")

    # the roofline: another kernel, other bytes; a kernel that was not begun is refused in words
    title = roofline.locator(".title")
    roofline.scroll_into_view_if_needed()
    roofline.get_by_role("radio", name="asks for").check()
    roofline.locator('[data-key="share-blocked"]').press("Enter")
    expect(title).to_contain_text("above the roof, because a cache supplied data")
    course.shoot("lesson15-roofline")
    page.get_by_label("your own kernel:").select_option("exercise 08a")
    page.get_by_role("button", name="Put it there").click()
    expect(
        page.locator(
            ".jp-OutputArea-output", has_text="your 08a is still as the course wrote it"
        ).first
    ).to_be_visible()
    expect(title).to_contain_text("a cache supplied data")

    # the race, with Python's call
    race.scroll_into_view_if_needed()
    race.get_by_role("radio", name="with Python's call").check()
    expect(race.locator(".title")).to_contain_text("torch.compile is first")
    course.shoot("lesson15-race")

    # the sources unfold; the exercise: unsolved, then solved
    page.locator("summary", has_text="resident_forward").click()
    expect(page.locator("details[open] pre", has_text="def resident_kernel(").first).to_be_visible()
    panel = page.locator(".course-exercise", has_text="Account for the bytes").first
    panel.scroll_into_view_if_needed()
    course.solve("ex15a_bytes_asked.py")
    panel.get_by_role("button", name="Check", exact=True).click()
    expect(panel).to_contain_text("15a Account for the bytes: pass")
    course.shoot("lesson15-pass")

    course.theme("Dark")
    expect(roofline).to_have_attribute("data-theme", "dark")
    roofline.scroll_into_view_if_needed()
    course.shoot("lesson15-dark")
    course.assert_readable(roofline.locator(".caption"))
