"""LayerNorm forward, block by block (07a): its cases and wrong formulas."""

from __future__ import annotations

from functools import partial

from course_lib.exercises.layer_norm_kernels import BLOCKED_CASES, list_models, make_plan
from course_lib.grading.cases.counts import Count, Quantity
from course_lib.grading.cases.plan import Part

PARTS = {
    "layer_norm_blocked_kernel": Part(
        BLOCKED_CASES,
        partial(make_plan, resident=False, reads=3),
        list_models,
        # One read is too few: a row longer than BLOCK is gone when the mean is known.
        counts=(Count(Quantity.READS, course=3, least=2, tensor="x"),),
        counted_case="many blocks",
    )
}
