"""The VJP of RMSNorm (10b): its cases and wrong formulas."""

from __future__ import annotations

from functools import partial

from course_lib.exercises.dx_kernels import RARE
from course_lib.exercises.vjps import (
    RMS_NORM_CASES,
    RMS_NORM_DX_MISTAKES,
    list_models,
    plan_gradients,
)
from course_lib.grading.cases.plan import Part
from course_lib.norms import reference

PARTS = {
    "rms_norm_vjp": Part(
        RMS_NORM_CASES,
        partial(plan_gradients, norm=reference.rms_norm, vjp=reference.rms_norm_vjp),
        partial(list_models, RMS_NORM_DX_MISTAKES),
        rare=RARE,
    )
}
