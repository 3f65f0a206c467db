"""Lesson 10 in a real JupyterLab: losses drawn as they come, runs chosen and compared by keyboard, a panel; light and dark."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.timeout(420)]


def test_a_learner_compares_trainings_and_wires_a_norm(course, page, expect):
    course.run("10_autograd", until=page.locator(".widget-dropdown", has_text="apart").nth(1), seconds=240)

    # the first widget was fed while the course's norm trained: it ends with all 100 steps
    expect(course.captions.first).to_contain_text("the course's LayerNorm against PyTorch's LayerNorm, 100 steps")
    expect(course.captions.first).to_contain_text("Further apart than 0.001: never")

    # the second starts with the norm that never returns dw; another run is chosen: picture and words follow
    widget = page.locator(".jp-OutputArea-output .widget-vbox").filter(has=page.locator(".widget-image")).last
    caption, picture = widget.locator("p[role=status]"), widget.locator(".widget-image")
    run, apart = (widget.locator(".widget-dropdown", has_text=name).locator("select") for name in ("dw never", "1e-6"))
    caption.scroll_into_view_if_needed()
    expect(caption).to_contain_text("dw never returned against")
    before = picture.get_attribute("src")
    course.shoot("lesson10-dw-missing")
    run.select_option("PyTorch's, embedding one ulp off")
    expect(caption).to_contain_text("one ulp off against")
    expect(picture).not_to_have_attribute("src", before)

    # by keyboard: fewer steps
    slider = widget.locator(".widget-slider .noUi-handle").first
    slider.focus()
    slider.press("ArrowLeft")
    expect(caption).to_contain_text("99 steps")
    run.select_option("dw never returned")
    apart.select_option("0.01")
    expect(caption).to_contain_text("Further apart than 0.01: from step")
    run.select_option("PyTorch's, embedding one ulp off")

    # the exercise: unsolved, then solved
    course.panel.scroll_into_view_if_needed()
    expect(course.check()).to_contain_text("10a Wire it up: not attempted")
    course.solve("ex10a_wire_it_up.py")
    verdict = course.check()
    expect(verdict).to_contain_text("10a Wire it up: pass", timeout=60_000)
    expect(verdict).to_contain_text("in PyTorch's autograd (CPU)")
    course.shoot("lesson10-pass")

    # the dark theme: the figure keeps its light panel, the words stay readable
    course.theme("Dark")
    run.select_option("dw never returned")
    expect(caption).to_contain_text("dw never returned against")
    caption.scroll_into_view_if_needed()
    expect(caption).to_be_in_viewport()
    course.shoot("lesson10-dark")
    course.assert_readable(caption)
