"""README says what the stored measurements, the lessons and the wrong solutions say."""

from __future__ import annotations

import re

import pytest

from course_lib import catalog
from course_lib.authoring import readme
from course_lib.authoring.lesson_size import measure
from course_lib.authoring.notebooks import find_notebook, list_sources
from course_lib.base import paths
from course_lib.base.errors import CourseError

PAGE = readme.PAGE.read_text(encoding="utf-8")
_ROW = re.compile(r"^\| \[(\d\d) [^\]]*\]\(([^)]*)\):[^|]*\| (\d[\d +]*) \| ([^|]*)\|$", re.MULTILINE)


@pytest.mark.parametrize("page", [readme.PAGE, readme.KERNELS_PAGE], ids=lambda page: page.name)
def test_the_kernels_stand_there_as_they_were_measured(page):
    text = page.read_text(encoding="utf-8")
    assert readme.make_page(text, page) == text, "run python -m course_lib.authoring.readme"


def test_a_page_without_the_marks_is_not_guessed_at():
    with pytest.raises(CourseError, match="end of kernels"):
        readme.make_page("# A page")
    with pytest.raises(CourseError, match="end of launch"):
        readme.make_page(PAGE.replace("<!-- end of launch -->", ""))


def test_every_lesson_is_linked_with_its_minutes_and_exercises():
    rows = {number: (link, minutes, re.findall(r"\b\d\d[a-z]\b", does)) for number, link, minutes, does in _ROW.findall(PAGE)}
    for source in list_sources():
        number, said = source.name[:2], " + ".join(str(size.said) for size in measure(source))
        has = [e.id for e in catalog.required().values() if e.lesson == number]
        assert number in rows, f"README.md has no line for lesson {number} in its table of lessons"
        link, minutes, exercises = rows.pop(number)
        assert paths.ROOT / link == find_notebook(source), f"README.md links lesson {number} to {link}"
        assert minutes == said, f"README.md says that lesson {number} takes {minutes} minutes, and its page {said}"
        assert exercises == has, f"README.md names {exercises} as the exercises of lesson {number}, which has {has}"
    assert not rows, f"README.md lists lessons that are not there: {', '.join(rows)}"
