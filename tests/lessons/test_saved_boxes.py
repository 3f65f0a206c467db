"""What a notebook has saved of a question, a panel or a review takes the colours of the page, where
nothing was run yet."""

from __future__ import annotations

import pytest
from chromium import open_browser

from course_lib import exercise
from course_lib.lessons import predict, review_predictions

_DARK = "--jp-cell-editor-background: rgb(33, 33, 33); --jp-content-font-color1: rgb(230, 230, 230)"
SAVED = {
    "question": lambda: predict("01-five"),
    "panel": lambda: exercise("00a"),
    "review": lambda: review_predictions("01"),
}


@pytest.mark.parametrize("make", SAVED.values(), ids=SAVED)
def test_a_saved_box_is_dark_on_a_dark_page(make, tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_STATE", str(tmp_path))
    saved = make()._repr_mimebundle_()["text/html"]
    with open_browser() as browser:
        page = browser.new_page()
        page.set_content(f'<body style="{_DARK}">{saved}')
        boxes = page.locator(".course-box")
        assert boxes.count()
        for box in boxes.all():
            read = "e => [getComputedStyle(e).backgroundColor, getComputedStyle(e).color]"
            assert box.evaluate(read) == ["rgb(33, 33, 33)", "rgb(230, 230, 230)"]
