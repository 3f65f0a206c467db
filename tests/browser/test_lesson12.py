"""The schedule explorers of lesson 12 in a real JupyterLab: the race at the start, a deadlock, the
learner's file, threads."""

from __future__ import annotations

import pytest


@pytest.mark.sweep
def test_the_schedule_explorer_moves(course, page, expect):
    picture = page.locator('[data-picture^="schedule-"]').first
    title, caption = picture.locator(".title"), picture.locator(".caption")
    course.run("12_locks", "at_fault=True", until=caption)

    # it opens at the first race; the next step loses a number
    caption.scroll_into_view_if_needed()
    expect(title).to_contain_text("A race on total[0]: operations 2 and 3")
    course.shoot("lesson12-race")
    picture.get_by_role("button", name="Step", exact=True).click()
    expect(caption).to_contain_text("stores 10 to total[0]")
    handle = picture.locator('[data-key="at"]')
    handle.press("ArrowRight")
    expect(caption).to_contain_text("operation 5 of")
    picture.locator('[data-control="at"] input').press("End")
    expect(caption).to_contain_text("The end:")

    # another seed: another order; then by hand
    picture.locator('[data-control="seed"] input').press("ArrowRight")
    expect(caption).to_contain_text("seed 76, operation 0 of")
    picture.get_by_role("button", name="By hand from the start").click()
    picture.locator('[data-key="move-0"]').click()
    expect(caption).to_contain_text("Can you find an order that ends with 1?")


@pytest.mark.sweep
def test_a_deadlock_and_the_learners_own_file(course, page, expect):
    pictures = page.locator('[data-picture^="schedule-"]')
    again = page.get_by_role("button", name="Run it as it is now")
    course.run("12_locks", "schedule_explorer(slips)", "your_repair()", until=again)
    picture = pictures.filter(has=page.get_by_label("never given back"))

    picture.get_by_label("never given back").check(force=True)
    picture.locator('[data-control="at"] input').press("End")
    expect(picture.locator(".caption")).to_contain_text("Deadlock in kept_lock_kernel")

    # the learner's file, as the course wrote it, at its first race
    again.scroll_into_view_if_needed()
    yours = pictures.last
    expect(yours.locator(".title")).to_contain_text("A race on lock[")
    expect(yours.locator(".caption")).to_contain_text("add_to_buffers_kernel")
    course.shoot("lesson12-yours")
    course.theme("Dark")
    yours.locator(".title").scroll_into_view_if_needed()
    course.shoot("lesson12-dark")

    # mended, and run once more: no race is left
    course.solve("ex12a_repair_the_lock.py")
    again.click()
    expect(yours.locator(".title")).not_to_contain_text("race")
    yours.locator('[data-control="at"] input').press("End")
    expect(yours.locator(".caption")).to_contain_text("no race, no deadlock")


@pytest.mark.sweep
def test_the_threads_of_one_program(course, page, expect):
    picture = page.locator('[data-picture^="schedule-"]').nth(2)
    title = picture.locator(".title")
    course.run("12_locks", 'view="threads"', until=title)
    expect(title).to_contain_text("Program 0, inside")
    mover = picture.locator('[data-key="thread-0"]')
    while mover.count():  # thread 0 to its end, before the others
        mover.click()
    expect(title).to_contain_text("The lock is open, and threads 1, 2 and 3 have not stored")
    course.shoot("lesson12-threads")
