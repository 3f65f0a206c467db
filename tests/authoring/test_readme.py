"""README says what the stored measurements, the lessons and the wrong solutions say."""

from __future__ import annotations

import re

import pytest

from course_lib import catalog
from course_lib.authoring import readme, repository
from course_lib.authoring.lesson_size import measure
from course_lib.authoring.notebooks import find_notebook, list_sources
from course_lib.base import paths
from course_lib.base.errors import CourseError

PAGE = readme.PAGE.read_text(encoding="utf-8")
_ROW = re.compile(
    r"^\| \[(\d\d) [^\]]*\]\(([^)]*)\):[^|]*\| (\d[\d +]*) \| ([^|]*)\|$", re.MULTILINE
)


@pytest.mark.parametrize(
    "page", [readme.PAGE, readme.EVIDENCE_PAGE, readme.KERNELS_PAGE], ids=lambda page: page.name
)
def test_what_is_generated_in_a_page_is_that_of_today(page):
    text = page.read_text(encoding="utf-8")
    assert readme.make_page(text, page) == text, "run python -m course_lib.authoring.readme"


def test_a_page_without_the_marks_is_not_guessed_at():
    with pytest.raises(CourseError, match="end of kernels"):
        readme.make_page("# A page", readme.EVIDENCE_PAGE)
    with pytest.raises(CourseError, match="end of start"):
        readme.make_page(PAGE.replace("<!-- end of start -->", ""))


def test_the_package_is_named_as_it_can_be_had():
    from_clone = (
        "uvx --from CLONE norm-kernels-course my-course, pip install CLONE, pip install"
        ' "CLONE[lab]", uvx --refresh --from CLONE norm-kernels-course update'
    )
    from_index = (
        "uvx norm-kernels-course my-course, pip install norm-kernels-course, pip install"
        ' "norm-kernels-course[lab]", uvx norm-kernels-course@latest update'
    )
    assert (
        readme.spell_package(from_clone, published=True)
        == from_index
        == readme.spell_package(from_index, published=True)
    )
    assert (
        readme.spell_package(from_index, published=False)
        == from_clone
        == readme.spell_package(from_clone, published=False)
    )
    for page in readme.SPELLED:
        text = page.read_text(encoding="utf-8")
        assert readme.spell_package(text, repository.is_published()) == text, (
            "run python -m course_lib.authoring.readme"
        )


def test_readme_is_short_and_names_no_package_that_cannot_be_had():
    words = re.sub(
        r"<!--.*?-->|<picture>.*?</picture>|\]\([^)]*\)", " ", PAGE, flags=re.DOTALL
    ).split()
    assert len([word for word in words if re.search(r"\w", word)]) <= 900
    assert repository.is_published() or paths.DISTRIBUTION not in PAGE


def test_every_lesson_is_linked_with_its_minutes_and_exercises():
    rows = {
        number: (link, minutes, re.findall(r"\b\d\d[a-z]\b", does))
        for number, link, minutes, does in _ROW.findall(PAGE)
    }
    for source in list_sources():
        number, said = source.name[:2], " + ".join(str(size.said) for size in measure(source))
        has = [e.id for e in catalog.required().values() if e.lesson == number]
        assert number in rows, f"README.md has no line for lesson {number} in its table of lessons"
        link, minutes, exercises = rows.pop(number)
        assert paths.ROOT / link == find_notebook(source), (
            f"README.md links lesson {number} to {link}"
        )
        assert minutes == said, (
            f"README.md says that lesson {number} takes {minutes} minutes, and its page {said}"
        )
        assert exercises == has, (
            f"README.md names {exercises} as the exercises of lesson {number}, which has {has}"
        )
    assert not rows, f"README.md lists lessons that are not there: {', '.join(rows)}"
