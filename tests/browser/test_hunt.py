"""The hunt in a real JupyterLab, by keyboard, in both themes."""

from __future__ import annotations

import shutil

from course_lib.base import paths
from course_lib.hunt import draw

FIRST = draw.draw(draw.list_open(set()), 0)
assert FIRST is not None


def test_a_hunt_is_played_by_keyboard(course, page, expect):
    page.set_viewport_size({"width": 900, "height": 1400})
    shutil.copyfile(paths.PACKAGE / "hunt" / "hunt.ipynb", course.root / "notebooks" / "hunt.ipynb")
    course.run("hunt", "hunt()")
    panel = course.panel
    expect(panel).to_contain_text(f"Hunt {FIRST.id}")

    panel.get_by_label("N", exact=True).fill(str(FIRST.probe.N))
    panel.get_by_label("BLOCK").select_option(str(FIRST.probe.BLOCK))
    panel.get_by_label("values").select_option(FIRST.probe.values)
    panel.get_by_role("button", name="Ask").press("Enter")
    expect(panel).to_contain_text(f"Question 1: N={FIRST.probe.N}")
    expect(panel.locator(".course-grid").first).not_to_contain_text("expected")
    course.shoot("hunt-asked-light")
    panel.get_by_role("button", name="Show what is expected").press("Enter")
    expect(panel.locator(".course-grid").first).to_contain_text("expected")
    expect(panel).to_contain_text("shows the mistake")
    for theme in ("Dark", "Light"):
        course.theme(theme)
        course.shoot(f"hunt-exposed-{theme.lower()}")
    course.assert_readable(panel.locator(".course-code").first)

    panel.get_by_label("Line").select_option(index=FIRST.lines[0] - 1)
    panel.get_by_role("button", name="This line is wrong").press("Enter")
    expect(panel).to_contain_text("The hunt is won")
    for theme in ("Dark", "Light"):
        course.theme(theme)
        course.shoot(f"hunt-won-{theme.lower()}")
    panel.get_by_role("button", name="Next hunt").press("Enter")
    expect(panel).not_to_contain_text("The hunt is won")
