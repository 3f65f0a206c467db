"""Lesson 14 in a real JupyterLab: a loss that is drawn as it comes, runs chosen and compared by
keyboard, a panel; light and dark."""

from __future__ import annotations

import pytest


def test_a_loss_is_drawn_as_it_comes(course, page, expect):
    picture = page.locator('[data-picture^="loss_curves-"]').first
    notebook = course.root / "notebooks" / "14_a_norm_that_trains.ipynb"
    text = notebook.read_text(encoding="utf-8")
    assert text.count("STEPS = 300") == 1
    # a tenth of a minute's training
    notebook.write_text(text.replace("STEPS = 300", "STEPS = 30"), encoding="utf-8")
    course.run(notebook.stem, "gather_norm()", "for loss in training", until=picture)
    # the picture was fed while the norm trained: it ends with all steps
    expect(picture.locator(".caption")).to_contain_text(
        "30 steps: the loss of the course's LayerNorm goes from"
    )
    expect(
        page.locator(
            ".jp-OutputArea-output", has_text="your 08a is still as the course wrote it"
        ).first
    ).to_be_visible()


@pytest.mark.sweep
def test_a_learner_compares_trainings_and_wires_a_norm(course, page, expect):
    pictures = page.locator('[data-picture^="loss_curves-"]')
    course.run(
        "14_a_norm_that_trains",
        "gather_norm()",
        "for loss in training",
        "loss_curves(runs, STEPS, baseline=corpus.training.entropy(), show",
        'exercise("14a")',
        until=pictures.nth(1),
    )

    # the first picture was fed while the norm trained: it ends with all 300 steps
    expect(pictures.first.locator(".caption")).to_contain_text(
        "300 steps: the loss of the course's LayerNorm goes from"
    )
    expect(
        page.locator(
            ".jp-OutputArea-output", has_text="your 08a is still as the course wrote it"
        ).first
    ).to_be_visible()

    # the second starts with the wrong sign; another run is chosen: the words follow
    picture = pictures.last
    title, caption = picture.locator(".title"), picture.locator(".caption")
    picture.scroll_into_view_if_needed()
    expect(caption).to_contain_text("the loss of wrong sign of c1 goes from")
    course.shoot("lesson14-wrong-sign")
    picture.get_by_role("radio", name="w left out", exact=True).check()
    expect(caption).to_contain_text("the loss of w left out goes from")

    # by keyboard: another step, another limit
    picture.locator('[data-key="step"]').press("ArrowRight")
    expect(caption).to_contain_text("Step 1: ")
    before = title.inner_text()
    picture.locator('[data-key="limit"]').press("ArrowUp")
    picture.locator('[data-key="limit"]').press("ArrowUp")
    expect(title).not_to_have_text(before)

    # the exercise: unsolved, then solved
    course.panel.scroll_into_view_if_needed()
    expect(course.check()).to_contain_text("14a Wire it up: not attempted")
    course.solve("ex14a_wire_it_up.py")
    verdict = course.check()
    expect(verdict).to_contain_text("14a Wire it up: pass")
    expect(verdict).to_contain_text("in PyTorch's autograd (CPU)")
    course.shoot("lesson14-pass")

    # the dark theme
    course.theme("Dark")
    expect(picture).to_have_attribute("data-theme", "dark")
    picture.scroll_into_view_if_needed()
    expect(caption).to_be_in_viewport()
    course.shoot("lesson14-dark")
    course.assert_readable(caption)
