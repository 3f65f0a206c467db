"""Counts are exact: a wrong one is told beside the right one, with all digits, and not in allowed
errors."""

from __future__ import annotations

from course_lib import catalog
from course_lib.catalog import texts
from course_lib.grading.check import check
from course_lib.grading.judging.wording import format_number
from course_lib.grading.report import make_report


def test_a_wrong_count_is_told_beside_the_right_one(tmp_path):
    exercise = catalog.get("15a")
    right = "read = 3 * matrix + M * 2 * N * itemsize"
    file = tmp_path / exercise.file
    file.write_text(
        texts.read_solution(exercise).replace(right, f"{right} + 96 * M"), encoding="utf-8"
    )
    verdict = check(exercise, file)
    assert verdict.cause == "wrong_values" and "read is 136, it should be 40." in verdict.message
    shown = str(make_report(verdict, exercise))
    assert (
        "allowed error" not in verdict.message + shown
        and verdict.first is not None
        and verdict.first.ratio is None
    )


def test_a_count_keeps_all_its_digits():
    assert [format_number(value) for value in (12345678.0, -3.0, 0.5, 1e30)] == [
        "12345678",
        "-3",
        "0.5",
        "1e+30",
    ]
