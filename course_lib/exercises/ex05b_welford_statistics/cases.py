"""Welford in the lanes, and a merge (05b): its cases and wrong formulas."""

from __future__ import annotations

from functools import partial

from course_lib.exercises.expectations import bound_welford
from course_lib.exercises.statistics_kernels import (
    WELFORD_CASES,
    list_welford_models,
    plan_statistics,
)
from course_lib.grading.cases.plan import Part

PARTS = {
    "welford_kernel": Part(
        WELFORD_CASES, partial(plan_statistics, terms=bound_welford, sweeps=1), list_welford_models
    )
}
