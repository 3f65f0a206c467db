"""What the compiler made of a kernel, in lesson 08 in a real JupyterLab, in both themes: moved,
compiled anew, and the learner's own."""

from __future__ import annotations

import re

import pytest


@pytest.mark.sweep
def test_the_explorer_follows_the_reader_and_takes_the_learners_kernel(course, page, expect):
    # the first has the blocked kernel
    explorer = page.locator('[data-picture^="compiled_kernel-"]').nth(1)
    title, caption = explorer.locator(".title"), explorer.locator(".caption")
    course.run("08_rows_in_registers", 'kernel_explorer("resident"', until=caption)

    # fewer warps, more registers; on one warp the row does not fit
    explorer.scroll_into_view_if_needed()
    expect(caption).to_contain_text("resident, rows of 8192 columns in fp16")
    registers = int(re.search(r"(\d+) registers per thread", caption.inner_text())[1])
    expect(title).to_contain_text("BLOCK = 8192 spills registers with")
    explorer.locator('[data-control="warps"] input').press("ArrowLeft")
    expect(caption).to_contain_text("2 warps, sm_90")
    assert int(re.search(r"(\d+) registers per thread", caption.inner_text())[1]) > registers

    # a line is pressed, and the keys move on from there
    line = explorer.locator('[data-key^="line-"]', has_text="tl.sum(x, axis=1)")
    line.click()
    expect(explorer.locator("svg.drawing")).to_contain_text("SHFL")
    number = int(line.get_attribute("data-key").split("-")[1])
    explorer.locator('[data-control="line"] input').press("ArrowRight")
    expect(caption).not_to_contain_text(f"Line {number} became")

    # another BLOCK and dtype are compiled by Python, and stand beside the first
    page.locator(".widget-dropdown", has_text="BLOCK").last.locator("select").select_option("1024")
    page.locator(".widget-dropdown", has_text="dtype").last.locator("select").select_option("fp32")
    ask = page.get_by_role("button", name="Compile it").last
    ask.click()
    expect(caption).to_contain_text(
        re.compile(r"in fp32, 1 row per program, 4 warps, sm_90: \d+ registers")
    )
    explorer.get_by_label(re.compile("in fp16")).check(force=True)
    expect(caption).to_contain_text("in fp16")
    for theme in ("Dark", "Light"):
        course.theme(theme)
        course.shoot(f"lesson08-explorer-{theme.lower()}", explorer)

    # the learner's kernel, once it is written
    course.solve("ex08a_layer_norm_resident.py")
    page.locator(".widget-dropdown", has_text="kernel").last.locator("select").select_option(
        "yours, 08a"
    )
    ask.click()
    expect(caption).to_contain_text("yours, 08a, rows of 1024 columns in fp32")


@pytest.mark.sweep
def test_a_learner_finishes_exercise_08a(course, expect):
    course.run("08_rows_in_registers", 'exercise("08a")')
    panel = course.panel
    panel.scroll_into_view_if_needed()
    expect(course.check()).to_contain_text(
        "08a LayerNorm forward, rows that stay in registers: not attempted"
    )
    course.solve("ex08a_layer_norm_resident.py")
    expect(course.check()).to_contain_text(course.PASS)
