"""RMSNorm of rows longer than BLOCK (02c): its cases and wrong formulas."""

from __future__ import annotations

from functools import partial

from course_lib.exercises.rms_norm_kernels import BLOCKED_CASES, list_blocked_models, plan_rms_norm
from course_lib.grading.cases.plan import Part

PARTS = {
    "rms_norm_blocked_kernel": Part(
        BLOCKED_CASES, partial(plan_rms_norm, sweeps=2), list_blocked_models
    )
}
