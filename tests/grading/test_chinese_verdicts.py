"""What a check says in Chinese, in a notebook with the table of all cases: no English sentence is
left in it."""

from __future__ import annotations

import html
import re

import pytest
from english import find_english

from course_lib import catalog
from course_lib.authoring.verdicts import check_mutant
from course_lib.catalog import mutants
from course_lib.grading.cases.case import describe_name
from course_lib.lessons.panel_page import write_verdict


@pytest.fixture(autouse=True)
def chinese(monkeypatch):
    monkeypatch.setenv("COURSE_LANG", "zh")
    catalog.exercises.cache_clear()
    yield
    catalog.exercises.cache_clear()


@pytest.mark.parametrize(
    ("exercise_id", "mutant"),
    [
        ("00a", "no_store_mask"), ("01a", "the_library"), ("04b", "between_term_forgotten"),
        ("10a", "no_projection"), ("15a", "gradients_stay_fp32"),
    ],
)  # fmt: skip
def test_a_verdict_has_no_english_sentence(exercise_id, mutant, tmp_path):
    exercise = catalog.get(exercise_id)
    entry = next(entry for entry in mutants.read_mutants(exercise) if entry["id"] == mutant)
    page = write_verdict(check_mutant(exercise, entry, tmp_path), exercise)
    code = r"<(style|pre|code)\b.*?</\1>"
    told = html.unescape(re.sub(r"<[^>]+>", "|", re.sub(code, "", page, flags=re.DOTALL)))
    assert re.search("[\u4e00-\u9fff]", told) and find_english(told) == [], told


def test_the_name_of_a_case_is_translated_in_parts():
    assert describe_name("two_stage_backward, a row a chunk") == "two_stage_backward，每段一行"
