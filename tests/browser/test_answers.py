"""After Run all, in a real JupyterLab: no answer is in view before its prediction, and then it
is."""

from __future__ import annotations


def test_an_answer_opens_with_its_prediction_and_by_a_click(course, page, expect):
    course.run(
        "01_first_layer_norm",
        'predict("01-outlier")',
        "for last in (9, 90",
        'predict("01-five")',
        "step_norm_kernel([11",
        answers_open=False,
    )
    outlier = page.locator(".jp-OutputArea", has_text="9000:").last
    five = page.locator('[data-picture^="block_stepper-"]').last
    told = page.get_by_text("The lanes past the end load 0")
    expect(page.locator(".course-closed")).to_have_count(2)
    expect(outlier.locator("pre").last).to_be_hidden()
    expect(five).to_be_hidden()
    expect(told).to_have_count(0)
    course.shoot("answers-closed")

    asked = page.locator(".course-exercise", has_text="The row is 11 12 14 15 16").first
    asked.get_by_label("nothing").check()
    asked.get_by_role("button", name="That is my prediction").click()
    expect(told).to_be_visible()
    expect(five).to_be_visible()
    five.locator('[data-key="step-2"]').click()
    expect(five.locator(".title")).to_have_text(
        "3 lanes past the end add mean² to the sum of squares"
    )
    expect(outlier.locator("pre").last).to_be_hidden()

    page.locator("summary", has_text="Answer. Predict first").first.click()
    expect(outlier.locator("pre").last).to_be_visible()
    course.shoot("answers-open")
    course.theme("Dark")
    course.assert_readable(told)
    course.shoot("answers-open-dark")
