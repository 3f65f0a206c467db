"""Cross entropy in one pass (18b): its cases and wrong formulas."""

from __future__ import annotations

from functools import partial

from course_lib.exercises.cross_entropy import (
    FORBIDDEN,
    LONG_ROW_CASES,
    list_forward_models,
    plan_forward,
)
from course_lib.grading.cases.plan import Part

PARTS = {
    "cross_entropy_one_pass_kernel": Part(
        LONG_ROW_CASES,
        partial(plan_forward, reads=1),
        list_forward_models,
        rare=FORBIDDEN,
        unwritten={"lse": "statistics_not_saved"},
    )
}
