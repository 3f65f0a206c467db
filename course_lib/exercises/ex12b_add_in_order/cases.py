"""The same bits in every order (12b): its cases and wrong formulas."""

from __future__ import annotations

import numpy as np

from course_lib.exercises.dw_kernels import (
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
    make_buffer_case("the tutorial's picture", 4, 8, 8,
        "{partials}: rows 0 and 2 share a buffer, rows 1 and 3 the other",
        "rows go to a wrong buffer", partials=2, orders=6),
    make_buffer_case("one buffer", 6, 17, 32, "{partials}: every row waits for the one before it",
        "the rows of a buffer are added as they come", mean=3.0, partials=1, orders=6),
    make_buffer_case("room for two", 6, 12, 16,
        "{partials}, two programs run at a time and start in any order",
        "a row waits for a program that has not started", mean=1.0, partials=2, orders=6,
        resident=2),
    make_buffer_case("room for one", 5, 9, 16, "{partials}, one program runs at a time",
        "a program waits for a later one", mean=-1.0, partials=3, orders=4, resident=1),
    make_buffer_case("fewer rows than buffers", 8, 20, 32,
        "{partials}: every row is the first of its buffer",
        "a buffer is added to before it is first written", mean=1.0, partials=11, orders=2),
    make_buffer_case("M no multiple of GROUP", 7, 12, 16,
        "{partials}: the first buffer takes three rows",
        "a buffer takes neighbouring rows", mean=-2.0, partials=3, orders=4),
    make_buffer_case("one row", 1, 30, 32, "M = 1, {partials}", mean=3.0, partials=4, orders=1),
    make_buffer_case("one column", 5, 1, 16, "N = 1, {partials}", "a column past N is written",
        partials=2),
    make_buffer_case("long row", 4, 1000, 1024, "{partials}, 24 padded lanes",
        "columns after the first block are left out", mean=3.0, partials=2),
    make_buffer_case("mean 1000", 4, 96, 128, "{partials}, the mean is 1000 times the spread",
        "xhat is computed from a rounded mean", partials=2),
    make_buffer_case("many rows", 20, 16, 16, "{partials}, more rows than run at once",
        "only the first rows are added up", partials=3),
    make_buffer_case("fp16", 16, 33, 64, "{partials}: 16 rows in half precision", partials=1),
    make_buffer_case("bf16", 6, 33, 64, "{partials}, bfloat16 in", partials=2),
    make_buffer_case("fp32 dy", 6, 33, 64, "{partials}, each tensor in a dtype of its own",
        dtypes=(("x", "fp16"),), mean=3.0, partials=2, orders=1),
    make_buffer_case("fp32 x", 6, 33, 64, "{partials}, each tensor in a dtype of its own",
        dtypes=(("dy", "bf16"),), mean=3.0, partials=2, orders=1),
    make_buffer_case("66 rows", 66, 3, 4, "{partials}, more than 64 rows and more than 64 buffers",
        "rows or buffers after the 64th are left out", mean=1.0, partials=66, orders=1),
    make_buffer_case("zeros", 5, 17, 32,
        "{partials}, 0 in x and as sums of rows whose terms are not 0",
        "a sum that is 0 is taken for a buffer not yet written", partials=2, orders=1),
    make_buffer_case("sliced", 5, 50, 64, "{partials}, dy and x are slices of wider matrices",
        "one row stride is taken for all tensors", partials=2),
    make_buffer_case("expanded", 4, 50, 64, "{partials}, dy is one number with strides (0, 0)",
        partials=2),
    make_buffer_case("transposed", 5, 36, 64, "{partials}, dy is a transposed matrix", partials=2),
    make_buffer_case("far columns", 3, 4, 16,
        "{partials}, dy is transposed, its columns 1.5 * 2^30 elements apart", partials=2,
        orders=1),
    make_buffer_case("a NaN row", 4, 19, 32,
        "{partials}, dy holds a NaN in row 1: it must stay in buffer 1", partials=2),
    make_buffer_case("an Inf row", 4, 19, 32,
        "{partials}, dy holds an Inf in row 1: it must stay in buffer 1", partials=2, orders=1),
    make_buffer_case("far rows", 4, 17, 32, "{partials}, rows 1.5 * 2^30 elements apart", mean=1.0,
        partials=2),
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
