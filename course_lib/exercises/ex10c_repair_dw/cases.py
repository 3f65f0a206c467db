"""Repair the published dw (10c): its cases and wrong formulas."""

from __future__ import annotations

from functools import partial

from course_lib.exercises.vjps import LAYER_NORM_CASES, list_models, plan_layer_norm
from course_lib.grading.cases.plan import Part

PARTS = {
    "dw_and_db": Part(
        LAYER_NORM_CASES,
        partial(plan_layer_norm, arguments=("dy", "x"), gradients=("dw", "db"), dtype="fp32"),
        partial(list_models, ()),
    )
}
