"""The access map of lesson 07, moved in a real JupyterLab, in both themes: the course's kernel, then the learner's."""

from __future__ import annotations


def test_the_map_follows_the_reader_and_takes_the_learners_kernel(course, page, expect):
    the_map = page.locator('[data-picture^="access_map-"]').first
    caption = the_map.locator(".caption")
    course.run("07_layer_norm_any_row", "forward_map(", until=caption)

    # a step, another program by keyboard, a lane
    the_map.scroll_into_view_if_needed()
    expect(caption).to_contain_text("Program 0, operation 1 of 14: first read of tensor x by 64 lanes")
    the_map.get_by_role("button", name="Step", exact=True).click()
    expect(caption).to_contain_text("operation 2 of 14: first read of tensor x by 36 lanes (28 more lanes masked)")
    the_map.locator('[data-control="program"] input').press("ArrowRight")
    expect(caption).to_contain_text("Program 1, operation 2 of 14")
    the_map.locator('[data-key="lane-5"]').click()
    expect(caption).to_contain_text("Lane 5 accesses x[169]")
    for theme in ("Dark", "Light"):
        course.theme(theme)
        page.wait_for_timeout(300)
        course.shoot(f"lesson07-access-map-{theme.lower()}", the_map)

    # the learner's kernel: not written yet, then written
    page.locator(".widget-dropdown", has_text="kernel").locator("select").select_option("yours, 07a")
    ask = page.get_by_role("button", name="Run it", exact=True)
    ask.click()
    expect(page.get_by_text("No new picture for kernel = yours, 07a")).to_contain_text("Do exercise 07a first")
    expect(caption).to_contain_text("Program 1, operation 2 of 14")
    course.solve("ex07a_layer_norm_forward.py")
    ask.click()
    expect(caption).to_contain_text("Program 0, operation 1 of 14: first read of tensor x by 64 lanes", timeout=60_000)
    expect(the_map).to_contain_text("total += tl.load")
