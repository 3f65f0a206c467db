"""RMSNorm forward (02b): its cases and wrong formulas."""

from __future__ import annotations

from course_lib.exercises.rms_norm_kernels import ONE_BLOCK_CASES, list_models, plan_rms_norm
from course_lib.grading.cases.plan import Part

PARTS = {"rms_norm_kernel": Part(ONE_BLOCK_CASES, plan_rms_norm, list_models)}
