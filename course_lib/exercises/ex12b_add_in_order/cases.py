"""The same bits in every order (12b): its cases and wrong formulas."""

from __future__ import annotations

import numpy as np

from course_lib.exercises.dw_kernels import (
    PICTURE_CASE,
    SHARED_BUFFER_CASES,
    list_locked_models,
    make_buffer_case,
    plan_by_words,
    shares_a_buffer,
)
from course_lib.grading.cases.case import SharedCase
from course_lib.grading.cases.plan import Part, Plan

# Where ``resident`` is 1, a program starts when the one before it has ended: what waits for a later
# program waits forever.
CASES = (
    PICTURE_CASE,
    make_buffer_case("one buffer", 6, 17, 32, "{partials}: every row waits for the one before it",
        "the rows of a buffer are added as they come", mean=3.0, partials=1, orders=6),
    make_buffer_case("room for two", 6, 12, 16,
        "{partials}, two programs run at a time and start in any order",
        "a row waits for a program that has not started", mean=1.0, partials=2, orders=6,
        resident=2),
    make_buffer_case("room for one", 5, 9, 16, "{partials}, one program runs at a time",
        "a program waits for a later one", mean=-1.0, partials=3, orders=4, resident=1),
    *SHARED_BUFFER_CASES,
)  # fmt: skip


def _plan_in_order(case: SharedCase, kernel: str, rng: np.random.Generator) -> Plan[SharedCase]:
    return plan_by_words(case, kernel, rng, "state", 1 + 2 * case.partials)


PARTS = {
    "add_in_order_kernel": Part(
        CASES,
        _plan_in_order,
        list_locked_models,
        traits=(("buffer_not_accumulated", shares_a_buffer),),
    )
}
