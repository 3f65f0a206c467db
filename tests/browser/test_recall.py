"""The questions that a lesson asks again, in a real JupyterLab: answered, kept, and there again
after a reload; and the ladder."""

from __future__ import annotations

import pytest


def test_a_question_is_answered_and_its_answer_is_there_after_a_reload(course, page, expect):
    page.set_viewport_size({"width": 900, "height": 1000})
    course.run("04_streaming_and_merging", 'recall("04")', until=course.panel)
    boxes = page.locator(".course-exercise", has_text="Do you remember?")
    expect(boxes).to_have_count(2)
    expect(course.panel).to_contain_text("From lesson 03")
    course.shoot("recall-asked-light")
    course.panel.get_by_role("radio").first.check()
    course.panel.get_by_role("button", name="That is my answer").first.press("Enter")
    expect(course.panel).to_contain_text("Not as before")
    for theme in ("Dark", "Light"):
        course.theme(theme)
        course.shoot(f"recall-answered-{theme.lower()}")
    course.run("04_streaming_and_merging", until=course.panel)
    expect(course.panel).to_contain_text("You answered")


@pytest.mark.sweep
def test_the_ladder_stands_in_a_lesson_and_waits_for_the_first_pass(course, page, expect):
    page.set_viewport_size({"width": 900, "height": 1000})
    picture = page.locator('[data-picture^="chart-"]').last
    course.run("08_rows_in_registers", 'ladder("08")', until=picture)
    expect(picture).to_contain_text("gets a bar here")
    picture.scroll_into_view_if_needed()
    for theme in ("Dark", "Light"):
        course.theme(theme)
        course.shoot(f"ladder-{theme.lower()}")
