"""The sum of each row (06a): its cases and wrong formulas."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from course_lib.exercises.batteries import make_case
from course_lib.exercises.expectations import make_expected
from course_lib.exercises.tensors import draw_matrix, place_matrix, place_statistic
from course_lib.exercises.wrong_formulas import (
    PADDING,
    WRONG_COLUMNS,
    repeat_first_row,
    take_largest_lane,
    take_last_block,
)
from course_lib.grading.cases.case import Case
from course_lib.grading.cases.counts import Count, Quantity
from course_lib.grading.cases.plan import Model, Outputs, Part, Plan

CASES = (
    make_case("worked example", 3, 8, 4, "the 3 x 8 worked example, two full blocks"),
    make_case("one full block", 4, 16, 16),
    make_case("padded, mean 3", 5, 17, 8, "7 padded lanes, mean 3",
        "a padded lane holds something other than 0"),
    make_case("one short block", 3, 7, 16),
    make_case("one column", 4, 1, 16, "N = 1: the sum is the number itself",
        "the first column is left out", mean=1.0),
    make_case("one row", 1, 129, 128, "M = 1, one column in the second block"),
    make_case("many blocks", 2, 1000, 64),
    make_case("many rows", 1200, 3, 16),
    make_case("around zero", 2, 5000, 512,
        "large terms, small sum: the error is measured against the terms",
        "terms are rounded before they are added up", std=100.0),
    make_case("16400 columns", 1, 16400, 256),
    make_case("fp16", 3, 129, 64, "half precision in, fp32 out"),
    make_case("fp16, sum 250000", 2, 2500, 1024, "the sum passes fp16's largest number, 65504",
        "the sum is kept in fp16, and overflows", dtype="fp16", mean=100.0),
    make_case("fp16, mean 8", 2, 1025, 512, "sums need more than fp16's 11 bits"),
    make_case("bf16", 3, 127, 128, "bfloat16 in, one block"),
    make_case("bf16, 4096 numbers near 1", 2, 4096, 256, "in bf16, 256 + 1 is 256",
        "each block's sum is rounded to bf16", dtype="bf16", mean=1.0, std=0.25),
    make_case("sliced", 4, 50, 16, "x is a slice of a wider matrix, whose gaps hold NaN"),
    make_case("a NaN row", 4, 19, 8),
    make_case("an Inf row", 4, 19, 8, "row 1 holds an Inf: its sum is Inf, the others are not"),
    make_case("far rows", 4, 17, 16),
)  # fmt: skip


def _plan_row_sum(case: Case, kernel: str, rng: np.random.Generator) -> Plan:
    x = draw_matrix(case, rng)
    x64 = x.astype(np.float64)
    tensors = (place_matrix("x", case, x, spare=3), place_statistic("y", case))
    arguments = ("x", "y", tensors[0].strides[0], case.N)
    want = x64.sum(axis=1)
    with np.errstate(invalid="ignore"):
        expected = {
            "y": make_expected(
                want, np.abs(x64).sum(axis=1), "fp32", infinite=case.fill == "inf row"
            )
        }
    return Plan(
        case,
        kernel,
        (case.M,),
        tensors,
        arguments,
        {"BLOCK": case.block},
        expected,
        inputs={"x": x64},
        spread={"x": case.M, "y": case.M},
        meetings=2,  # a scan and a sum are right, too; in every block is not
    )


def _list_models() -> Iterator[tuple[str, Model]]:
    yield "mean_for_sum", lambda p: _sum_rows(p.inputs["x"], 1 / p.case.N)
    yield "mean_for_sum", lambda p: _sum_rows(p.inputs["x"], 1 / p.case.block)
    for cause, columns in (*WRONG_COLUMNS, ("block_not_accumulated", take_last_block)):
        yield cause, lambda p, columns=columns: _sum_rows(p.inputs["x"][:, columns(p.case)])
    yield "block_counted_again", _sum_running_sums
    for value in PADDING:
        yield "mask_missing", lambda p, v=value: _sum_with_padding(p, v)
    yield "counted_by_every_lane", lambda p: _sum_rows(p.inputs["x"], p.case.block)
    yield "not_a_plain_sum", lambda p: _sum_rows(np.abs(p.inputs["x"]))
    yield "not_a_plain_sum", lambda p: _sum_rows(p.inputs["x"] ** 2)
    yield "not_a_plain_sum", lambda p: _sum_rows(-p.inputs["x"])
    yield "lanes_apart", lambda p: _sum_rows(p.inputs["x"][:, :: p.case.block])
    yield "max_for_sum", lambda p: {"y": take_largest_lane(p.inputs["x"], p.case.block)}
    yield "same_row", lambda p: _sum_rows(repeat_first_row(p, "x").inputs["x"])


def _sum_rows(x: np.ndarray, scale: float = 1.0) -> Outputs:
    return {"y": x.sum(axis=1) * scale}


def _sum_with_padding(p: Plan, value: float) -> Outputs:
    spare = np.full((p.case.M, p.case.padded_lanes), value)
    return {"y": p.inputs["x"].sum(axis=1) + spare.sum(axis=1)}


def _sum_running_sums(p: Plan) -> Outputs:
    """Return the sums if the lanes' sums are added to the result after every block and are not
    reset."""
    steps = -(-p.case.N // p.case.block)
    often = steps - np.arange(p.case.N) // p.case.block
    return _sum_rows(p.inputs["x"] * often)


PARTS = {
    "row_sum_kernel": Part(
        CASES,
        _plan_row_sum,
        _list_models,
        counts=(Count(Quantity.MEETINGS, course=1, least=1),),
        counted_case="many blocks",
    )
}
