"""Residual and RMSNorm in place (09b): its cases and wrong formulas."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from course_lib.exercises.batteries import make_case
from course_lib.exercises.rms_norm_kernels import (
    BLOCKED_CASES,
    compute_wrong,
    list_blocked_models,
    list_total_models,
    plan_add_rms_norm,
)
from course_lib.exercises.tensors import round_values
from course_lib.exercises.wrong_formulas import WRONG_COLUMNS
from course_lib.grading.cases.plan import Model, Outputs, Part, Plan


def _list_in_place_models() -> Iterator[tuple[str, Model]]:
    for stored in (False, True):
        yield "overwritten_read", lambda p, stored=stored: _add_to_total(p, stored)
    for cause, columns in WRONG_COLUMNS:
        yield cause, lambda p, columns=columns: _store_total_in(p, columns(p.case))
    yield from list_blocked_models()
    yield from list_total_models(("x", "y", "w"))


def _add_to_total(p: Plan, stored: bool) -> Outputs:
    """Return the outputs if x is added once more to a total that is there already, for y;
    ``stored``: that sum is stored again."""
    right, twice = compute_wrong(p), p.inputs["first"] + p.inputs["x"]
    again = round_values(twice, p.tensor("total").dtype)
    y = {"y": (again if stored else twice) * right["rstd"][:, None] * p.inputs["w"]}
    return right | y | ({"total": again} if stored else {})


def _store_total_in(p: Plan, columns: slice | np.ndarray) -> Outputs:
    """Return the outputs if only these columns of total are overwritten."""
    total = p.inputs["residual"].copy()
    total[:, columns] = p.inputs["x"][:, columns]
    return compute_wrong(p) | {"total": total}


# In 09b the residual has the dtype of total, and rows may be longer than BLOCK.
CASES = (
    *BLOCKED_CASES,
    make_case("fp32 sum", 2, 33, 16, "total is in fp32, the other matrices in half precision",
        "the sum is rounded to the dtype of x or y", dtypes=(("x", "fp16"), ("y", "fp16"))),
    make_case("fp32 total", 2, 33, 16, "each tensor in a dtype of its own",
        "the sum is rounded to the dtype of x or y", dtypes=(("x", "bf16"), ("y", "fp16"))),
    make_case("bf16 total", 2, 33, 16, "each tensor in a dtype of its own",
        "y or rstd is computed from the sum before it is rounded",
        dtypes=(("total", "bf16"), ("w", "fp16"))),
    make_case("fp16 total", 2, 33, 64, "each tensor in a dtype of its own, one block",
        "x is rounded to the dtype of total before the sum",
        dtypes=(("total", "fp16"), ("w", "bf16"))),
)  # fmt: skip


PARTS = {
    "add_rms_norm_in_place_kernel": Part(
        CASES, partial(plan_add_rms_norm, in_place=True), _list_in_place_models
    )
}
