"""Repair the lock (12a): its cases and wrong formulas."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from course_lib.exercises.dw_kernels import (
    ADD_TO_BUFFERS,
    extend_plan,
    list_sum_models,
    make_buffer_case,
    plan_sum,
    sum_rows,
)
from course_lib.grading.cases.case import SharedCase
from course_lib.grading.cases.plan import Model, Part, Plan

BUFFER_CASES = (
    make_buffer_case("as many rows as buffers", 4, 20, 16, "{partials}", "dw and db are swapped",
        partials=4),
    make_buffer_case("more rows than buffers", 100, 40, 32, "{partials}",
        "M is taken for the number of buffers", partials=7),
    make_buffer_case("fewer rows than buffers, to be summed", 3, 20, 16,
        "{partials}: five buffers hold what was there before",
        "buffers that nobody wrote to are added up", partials=8),
    make_buffer_case("one row, to be summed", 1, 9, 16, "{partials}, M = 1",
        "buffers that nobody wrote to are added up", partials=64),
    make_buffer_case("many buffers", 270, 9, 16, "{partials}",
        "only the first buffers are added up",
        partials=260),
    make_buffer_case("no row", 0, 20, 16,
        "M = 0: nobody has written to any buffer, and both sums are 0",
        "a buffer is added up for certain", partials=3),
    make_buffer_case("fp16 gradients", 90, 33, 16,
        "{partials}, dw and db in fp16: one rounding, at the end",
        "sums are rounded to fp16 on the way", dtype="fp16", partials=40),
    make_buffer_case("bf16 gradients", 90, 33, 16, "{partials}, dw and db in bf16",
        "sums are rounded to bf16 on the way", dtype="bf16", partials=40),
    make_buffer_case("bf16 dw", 90, 33, 16, "{partials}, db in fp32",
        "db is rounded to the dtype of dw",
        dtypes=(("dw", "bf16"),), partials=40),
    make_buffer_case("fp16 db", 90, 33, 16, "{partials}, dw in fp32",
        "dw is rounded to the dtype of db",
        dtypes=(("db", "fp16"),), partials=40),
)  # fmt: skip


def _plan_buffers(case: SharedCase, kernel: str, rng: np.random.Generator) -> Plan[SharedCase]:
    """Plan the sum of GROUP buffers; those from number M on hold NaN."""
    plan = plan_sum(case, kernel, rng, ("dw_buffer", "db_buffer"), min(case.M, case.partials))
    return extend_plan(plan, [case.M, case.N], {"GROUP": case.partials, "BLOCK": case.block})


def _list_buffer_models() -> Iterator[tuple[str, Model[SharedCase]]]:
    yield "uninitialised", lambda p: sum_rows(p, slice(None))
    for count in (
        lambda M, group: M % group,
        lambda M, group: M // group,
        lambda M, group: -(-M // group),
    ):
        yield (
            "buffers_left_out",
            lambda p, c=count: sum_rows(p, slice(0, c(p.case.M, p.case.partials))),
        )
    yield from list_sum_models(
        lambda p: min(p.case.M, p.case.partials), left_out="buffers_left_out"
    )


def _has_unwritten_buffers(case: SharedCase) -> bool:
    return case.partials > case.M


PARTS = {
    "add_to_buffers_kernel": ADD_TO_BUFFERS,
    "sum_buffers_kernel": Part(
        BUFFER_CASES,
        _plan_buffers,
        _list_buffer_models,
        rare=(("uninitialised", lambda p, outputs: _has_unwritten_buffers(p.case)),),
    ),
}
