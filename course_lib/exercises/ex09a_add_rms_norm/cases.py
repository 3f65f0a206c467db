"""Residual addition and RMSNorm in one kernel (09a): its cases and wrong formulas."""

from __future__ import annotations

from collections.abc import Iterator

from course_lib.exercises.batteries import make_case
from course_lib.exercises.rms_norm_kernels import (
    ONE_BLOCK_CASES,
    list_models,
    list_total_models,
    plan_add_rms_norm,
)
from course_lib.grading.cases.counts import Count, Quantity
from course_lib.grading.cases.plan import Model, Part


def _list_fused_models() -> Iterator[tuple[str, Model]]:
    yield from list_models()
    yield from list_total_models(("x", "residual", "y", "w"))


# 09a has four matrices, so it needs further cases for their dtypes.
CASES = (
    *ONE_BLOCK_CASES,
    make_case("fp32 sum", 2, 33, 64, "only x and the residual are in half precision",
        "the sum is rounded to the dtype of its summands",
        dtypes=(("x", "fp16"), ("residual", "fp16"))),
    make_case("fp32 total", 2, 33, 64, "each tensor in a dtype of its own",
        "the sum is rounded to the dtype of x or y", dtypes=(("x", "bf16"), ("y", "fp16"))),
    make_case("bf16 total", 2, 33, 64, "each tensor in a dtype of its own",
        "y is computed from the sum before it is rounded",
        dtypes=(("residual", "fp16"), ("total", "bf16"))),
    make_case("fp16 total", 2, 33, 64, "each tensor in a dtype of its own",
        "the sum is rounded to the dtype of x",
        dtypes=(("x", "bf16"), ("total", "fp16"), ("w", "bf16"))),
)  # fmt: skip


PARTS = {
    "add_rms_norm_kernel": Part(
        CASES,
        plan_add_rms_norm,
        _list_fused_models,
        # x and the residual are loaded, total and y are stored: four times the 2 bytes of fp16
        counts=(Count(Quantity.MOVED, course=8, least=8),),
        counted_case="fp16, std 100",
    )
}
