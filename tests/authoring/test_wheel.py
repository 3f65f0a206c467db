"""The wheel has of an exercise's folder what a learner gets."""

from __future__ import annotations

import re
import zipfile

from course_lib import catalog
from course_lib.authoring.wheel import build_wheel


def test_it_has_what_checks_each_exercise_and_nothing_that_is_nearly_a_solution(tmp_path):
    with zipfile.ZipFile(build_wheel(tmp_path)) as wheel:
        names = {name for name in wheel.namelist() if re.match("course_lib/exercises/.+/", name)}
    assert names == {
        f"course_lib/exercises/{exercise.file}/{name}"
        for exercise in catalog.exercises().values()
        for name in ("exercise.toml", "cases.py")
    }
