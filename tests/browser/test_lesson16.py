"""Lesson 16 in a real JupyterLab: programs that wait for words, with too little room and with
enough."""

from __future__ import annotations

import pytest


@pytest.mark.sweep
def test_a_reader_makes_a_deadlock_and_gets_out_of_it(course, page, expect):
    picture = page.locator('[data-picture^="schedule-"]').first
    title, caption = picture.locator(".title"), picture.locator(".caption")
    course.run("16_long_rows", "resident=ROOM", until=caption)

    caption.scroll_into_view_if_needed()
    picture.get_by_label("3 programs").check(force=True)
    picture.locator('[data-control="at"] input').press("End")
    expect(title).to_have_text("Deadlock: no move of any program can end a wait")
    expect(caption).to_contain_text("cannot start: there is room for 3 programs at a time")
    title.scroll_into_view_if_needed()
    course.shoot("lesson16-deadlock")

    # by hand: the three programs of a row have the room, and the others come after them
    picture.get_by_role("button", name="By hand from the start").click()
    for program in (0, 1, 2):
        picture.locator(f'[data-key="move-{program}"]').click()
    expect(picture.locator('[data-key="move-3"]')).to_have_count(0)
    picture.get_by_role("button", name="Let the rest run").click()
    expect(caption).to_contain_text("no race, no deadlock; memory holds 111 | 222")

    # with tickets any three will do
    picture.get_by_label("tickets").check(force=True)
    picture.get_by_role("button", name="By hand from the start").click()
    for program in (5, 0, 3):
        picture.locator(f'[data-key="move-{program}"]').click()
    course.theme("Dark")
    title.scroll_into_view_if_needed()
    course.shoot("lesson16-tickets-dark")
    picture.get_by_role("button", name="Let the rest run").click()
    expect(caption).to_contain_text("memory holds 111 | 222")
