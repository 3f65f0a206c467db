"""The two widgets of lesson 06 that look into a kernel, moved in a real JupyterLab, in both themes."""

from __future__ import annotations

import re

import nbformat
import pytest

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]
CELLS = [
    "import course_lib",
    """import torch
from course_lib.kernels.layer_norm import layer_norm_blocked_kernel
from course_lib.lessons import access_map, kernel_explorer
DEVICE = course_lib.DEVICE
x, y = torch.randn(4, 100, device=DEVICE).half(), torch.empty(4, 100, device=DEVICE).half()
w, b, mean, rstd = (torch.ones(n, device=DEVICE) for n in (100, 100, 4, 4))
both = {"HAS_W": True, "HAS_B": True}""",
    "access_map(layer_norm_blocked_kernel, (4,), x, y, w, b, mean, rstd, 100, 1, 100, 1, 100, 1e-5, **both, BLOCK=64)",
    'kernel_explorer("resident", BLOCK=1024)',
]


def shoot(course, cell, name: str) -> None:
    """The output of a cell in the dark and in the light theme."""
    for theme in ("Dark", "Light"):
        course.theme(theme)
        course.page.wait_for_timeout(300)
        course.shoot(f"{name}-{theme.lower()}", cell)


def test_both_widgets_follow_the_reader(course, page, expect):
    cells = [nbformat.v4.new_code_cell(text) for text in CELLS]
    kernel = {"kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}}
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=kernel), course.root / "notebooks" / "widgets.ipynb")
    listing = page.locator(".course-source select")
    course.run("widgets", until=listing)
    expect(listing).to_be_visible()
    outputs = page.locator(".jp-OutputArea-output .widget-vbox").filter(has=page.locator(".widget-image"))
    the_map, explorer = outputs.nth(0), outputs.nth(1)

    # the map: a step, then another program, by keyboard
    the_map.scroll_into_view_if_needed()
    caption, image = the_map.locator("p[role=status]"), the_map.locator(".widget-image")
    expect(caption).to_contain_text("Program 0, operation 1 of 14: first read of x, 64 lanes")
    before = image.get_attribute("src")
    the_map.get_by_role("button", name="Step", exact=True).click()
    expect(caption).to_contain_text("operation 2 of 14: first read of x, 36 lanes, 28 masked")
    expect(image).not_to_have_attribute("src", before)
    handle = the_map.locator(".widget-slider .noUi-handle").first
    handle.focus()
    handle.press("ArrowRight")
    expect(caption).to_contain_text("Program 1, operation 1 of 14")
    expect(caption).to_contain_text("x 3 reads, y 1 write, w 4 reads")
    shoot(course, the_map, "lesson06-access-map")

    # the explorer: fewer warps, more registers
    explorer.scroll_into_view_if_needed()
    caption, image = explorer.locator("p[role=status]"), explorer.locator(".widget-image")
    expect(caption).to_contain_text("resident, rows of 1024 columns in fp16")
    registers = int(re.search(r"(\d+) registers a thread", caption.inner_text())[1])
    before = image.get_attribute("src")
    handle = explorer.locator(".widget-slider .noUi-handle").nth(1)
    handle.focus()
    handle.press("ArrowLeft")
    expect(caption).to_contain_text("2 warps, sm_90")
    expect(image).not_to_have_attribute("src", before)
    assert int(re.search(r"(\d+) registers a thread", caption.inner_text())[1]) > registers

    # another dtype is compiled beside the cells, and shown when it is there
    explorer.get_by_label("dtype").select_option("fp32")
    expect(caption).to_contain_text(
        re.compile(r"in fp32, 1 row a program, 2 warps, sm_90: \d+ registers"), timeout=60_000
    )
    expect(caption).not_to_contain_text("being compiled", timeout=60_000)

    # the listing: a click selects a line, the arrow keys move on from there
    def region(words: str):
        return explorer.get_by_role("region", name=re.compile(words))

    expect(region("^PTX of line")).to_contain_text("ld.global")
    text = listing.locator("option", has_text=re.compile(r"tl\.sum\(x,.axis=1\)"))
    number = int(text.inner_text().split()[0])
    text.click()
    expect(region(f"^SASS of line {number}:")).to_contain_text("SHFL")
    line, count = (
        explorer.locator(".widget-slider", has_text=re.compile(f"^{name}")).locator(".noUi-handle")
        for name in ("line\\d", "lines")
    )
    line.focus()
    line.press("ArrowRight")
    expect(region(f"^PTX of line {number + 1}:")).to_be_attached()
    count.focus()
    count.press("ArrowRight")
    expect(region("^PTX of 2 lines")).to_be_attached()
    shoot(course, explorer, "lesson06-explorer")
