"""The pictures that are saved in the built notebooks: they have the scripts of today, and can be
drawn in each language."""

from __future__ import annotations

import json
import re

import pytest

from course_lib.base import paths
from course_lib.base.translation import LANGUAGES
from course_lib.lessons.kit.output import MovingPicture, read_picture


def list_pictures(lesson: str) -> list[str]:
    cells = json.loads(next(paths.NOTEBOOKS.glob(f"{lesson}_*.ipynb")).read_text(encoding="utf-8"))[
        "cells"
    ]
    outputs = [
        "".join(output.get("data", {}).get("text/html", ""))
        for cell in cells
        for output in cell.get("outputs", [])
    ]
    return [markup for markup in outputs if read_picture(markup) is not None]


LESSONS = [
    lesson
    for lesson in sorted(file.name[:2] for file in paths.NOTEBOOKS.glob("[0-9][0-9]_*.ipynb"))
    if list_pictures(lesson)
]


@pytest.mark.parametrize("lesson", LESSONS)
def test_a_saved_picture_has_the_script_of_today(lesson):
    stale = [
        picture.name
        for markup in list_pictures(lesson)
        if (picture := read_picture(markup)) and picture.make_html() != markup
    ]
    assert not stale, (
        f"`python -m course_lib.authoring.notebooks --pictures {lesson}` writes them anew: {stale}"
    )


class Several:
    """Some pictures below one another, which a page shows as it shows one."""

    def __init__(self, pictures: list[MovingPicture]) -> None:
        self.pictures = pictures

    def make_html(self) -> str:
        return "".join(picture.make_html() for picture in self.pictures)


@pytest.mark.parametrize("lesson", LESSONS)
def test_a_saved_picture_is_drawn_in_each_language(lesson, show, monkeypatch):
    for language in LANGUAGES:
        monkeypatch.setenv("COURSE_LANG", language)
        pictures = [read_picture(markup) for markup in list_pictures(lesson)]
        drawn = show(Several(pictures)).page.evaluate(
            "[...document.querySelectorAll('[data-picture]')].map(({ stage }) =>"
            " [stage.title.textContent, stage.caption.textContent])"
        )
        for picture, (title, caption) in zip(pictures, drawn, strict=True):
            assert title and bool(re.search("[\u4e00-\u9fff]", title + caption)) == (
                language != "en"
            ), (picture.name, language)
