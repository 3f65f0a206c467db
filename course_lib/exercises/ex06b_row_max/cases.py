"""The largest element and its column (06b): its cases and wrong formulas."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from course_lib.exercises.batteries import make_case
from course_lib.exercises.expectations import half_ulp
from course_lib.exercises.tensors import draw_matrix, place_matrix, place_statistic
from course_lib.exercises.wrong_formulas import (
    PADDING,
    WRONG_COLUMNS,
    list_dtype_models,
    repeat_first_row,
    take_last_block,
    vary,
    vary_by_cause,
)
from course_lib.grading.cases.buffers import Tensor, round_to, size_guard
from course_lib.grading.cases.case import Case
from course_lib.grading.cases.plan import Expected, Model, Outputs, Part, Plan

# The fill "ties" has whole numbers from -2 to 2, so that each is there several times; "signed
# zeros" has -2, -1, and zeros of both signs; in "below Inf" row 1 is -Inf.
CASES = (
    make_case("worked example", 3, 8, 4, "the 3 x 8 worked example, two full blocks"),
    make_case("one full block", 4, 16, 16),
    make_case("padded, mean 3", 5, 17, 8,
        "7 padded lanes, mean -3: most rows have no number above 0", "a padded lane holds 0",
        mean=-3.0),
    make_case("below zero", 4, 50, 16, "every number is below 0", "the search begins at 0",
        mean=-20.0),
    make_case("one short block", 3, 7, 16, mean=-9.0),
    make_case("one column", 4, 1, 16, "N = 1", "the first column is left out", mean=-1.0),
    make_case("one row", 1, 129, 128, "M = 1, one column in the second block"),
    make_case("many blocks", 2, 1000, 64),
    make_case("many rows", 1200, 3, 16),
    make_case("16400 columns", 1, 16400, 256),
    make_case("ties", 6, 40, 8, "whole numbers from -2 to 2: the largest is there several times",
        "the lane with the smallest number wins, or the last", fill="ties"),
    make_case("ties in bf16", 3, 100, 16, "whole numbers in bfloat16",
        "the last of equal numbers is taken", fill="ties", dtype="bf16"),
    make_case("zeros of both signs", 6, 40, 8, "0 and -0 are the largest numbers, and equal",
        "0 counts as larger than -0", fill="signed zeros"),
    make_case("constant row", 3, 20, 8, "all numbers of a row are equal",
        "the last of equal numbers is taken"),
    make_case("below Inf", 4, 21, 8, "every number of row 1 is -Inf",
        "a column is found only where a number is above -Inf", fill="below Inf"),
    make_case("first far out", 3, 40, 16, "the largest number stands first",
        "the last block overwrites the others", fill="first far out"),
    make_case("last far out", 3, 41, 8, "the largest number stands last, alone in its block",
        "the last block is left out", fill="last far out"),
    make_case("last of 4103", 2, 4103, 512,
        "the largest number stands in column 4102, which fp16 does not hold",
        "a column goes through fp16", fill="last far out", dtype="fp16"),
    make_case("last of 603", 2, 603, 64,
        "the largest number stands in column 602, which bf16 does not hold",
        "a column goes through bf16", fill="last far out", dtype="bf16"),
    make_case("mean 1000", 3, 500, 128, "the numbers differ in digits that half precision has not",
        "x is compared in half precision"),
    make_case("fp16", 3, 129, 64, "half precision in, fp32 out"),
    make_case("bf16", 3, 127, 128, "bfloat16 in, one block"),
    make_case("sliced", 4, 50, 16, "x is a slice of a wider matrix, whose gaps hold NaN",
        mean=-2.0),
    make_case("an Inf row", 4, 19, 8, "row 1 holds an Inf, which is its largest"),
    make_case("far rows", 4, 17, 16),
)  # fmt: skip


def _plan_row_max(case: Case, kernel: str, rng: np.random.Generator) -> Plan:
    x = draw_matrix(case, rng)
    if case.fill == "ties":
        x = round_to(rng.integers(-2, 3, size=x.shape), case.dtype)
    if case.fill == "signed zeros":
        x = round_to(
            rng.integers(-2, 1, size=x.shape) * rng.choice([1.0, 0.0], size=x.shape), case.dtype
        )
    if case.fill == "below Inf":
        x[1:2] = -np.inf
    right = _find_largest(x.astype(np.float64))
    column = Tensor("column", "int64", (case.M,), (1,), guard=size_guard(case.rows))
    expected = {
        "largest": Expected(right["largest"], half_ulp(right["largest"], "fp32")),
        "column": Expected(right["column"], np.full(case.M, 0.25), whole=True),
    }
    tensors = (place_matrix("x", case, x, spare=3), place_statistic("largest", case), column)
    return Plan(
        case, kernel, (case.M,), tensors, ("x", "largest", "column", tensors[0].strides[0], case.N),
        {"BLOCK": case.block}, expected,
        inputs={"x": x.astype(np.float64)}, reads={"x": 1, "largest": 0, "column": 0},
        spread={"x": case.M, "largest": case.M},
    )  # fmt: skip


def _find_largest(x: np.ndarray, columns: np.ndarray | None = None) -> Outputs:
    """Return the largest number of each row and its column; ``columns`` names the columns of x,
    which may be some of a row, in any order."""
    index = x.argmax(axis=1)
    return {
        "largest": x.max(axis=1),
        "column": (index if columns is None else columns[index]).astype(np.float64),
    }


def _list_max_models() -> Iterator[tuple[str, Model]]:
    yield "block_not_accumulated", partial(_search_columns, columns=take_last_block)
    yield from vary_by_cause(_search_columns, columns=WRONG_COLUMNS)
    of_lanes = (min, max, _take_first_lane, _take_last_lane)
    yield from vary(_choose_tie, "ties_misjudged", in_lane=(min, max), of_lanes=of_lanes)
    yield from vary(
        _choose_tie, "ties_misjudged", in_lane=(min, max), of_lanes=(min, max), blocks=[True]
    )
    places = [
        lambda c, block: c % block,
        lambda c, block: c // block * block,
        lambda c, block: c // block,
        lambda c, block: c + 1,
    ]
    yield from vary(
        _place_column, "column_in_block", place=places, of_lanes=(min, _take_first_lane)
    )
    yield (
        "another_dtype",
        lambda p: (
            (right := _find_largest(p.inputs["x"]))
            | {"column": round_to(right["column"], p.tensor("x").dtype)}
        ),
    )
    for value in (*PADDING, 0.0):
        yield (
            "mask_missing",
            lambda p, value=value: _search_from(p, value, p.case.N, p.case.padded_lanes > 0),
        )
    yield from vary(
        _search_from, "best_begins_at_0", value=[0.0], column=[0, -1], wins=[False, True]
    )
    yield "best_begins_at_0", lambda p: _search_from(p, 0.0, p.case.N)
    yield from list_dtype_models(lambda p: _find_largest(p.inputs["x"]), ("x",))
    yield "same_row", lambda p: _find_largest(repeat_first_row(p, "x").inputs["x"])


def _search_columns(p: Plan, columns: Callable[[Case], slice | np.ndarray]) -> Outputs:
    """Return the first largest number of these columns, in this order; without any column, what a
    search from -Inf on begins with."""
    chosen = np.arange(p.case.N)[columns(p.case)]
    if not chosen.size:
        return {"largest": np.full(p.case.M, -np.inf), "column": np.zeros(p.case.M)}
    return _find_largest(p.inputs["x"][:, chosen], chosen)


_Choice = Callable[..., int]  # of (lane, column) pairs, or of columns


def _choose_tie(p: Plan, in_lane: _Choice, of_lanes: _Choice, blocks: bool = False) -> Outputs:
    """Return the outputs if ``in_lane`` chooses among the equal numbers of a lane, and ``of_lanes``
    then among the lanes' columns; ``blocks``: the same with a block of columns for a lane."""
    right, block, columns = _find_largest(p.inputs["x"]), p.case.block, []
    for row, largest in zip(p.inputs["x"], right["largest"], strict=True):
        columns_by_lane: dict[int, list[int]] = {}
        for c in np.flatnonzero(row == largest).tolist():
            columns_by_lane.setdefault(c // block if blocks else c % block, []).append(c)
        chosen = {lane: in_lane(tied) for lane, tied in columns_by_lane.items()}
        columns.append(
            of_lanes(chosen)
            if of_lanes in (_take_first_lane, _take_last_lane)
            else of_lanes(chosen.values())
        )
    return right | {"column": np.array(columns, np.float64)}


def _take_first_lane(chosen: dict[int, int]) -> int:
    return chosen[min(chosen)]


def _take_last_lane(chosen: dict[int, int]) -> int:
    return chosen[max(chosen)]


def _place_column(p: Plan, place: Callable, of_lanes: _Choice) -> Outputs:
    outputs = _choose_tie(p, min, of_lanes)
    return outputs | {"column": place(outputs["column"], p.case.block)}


def _search_from(
    p: Plan, value: float, column: int, is_met: bool = True, wins: bool = False
) -> Outputs:
    """Return the outputs if the search meets ``value`` as well, in this column; ``is_met``: it does
    in this case; ``wins``: also against its equals."""
    right = _find_largest(p.inputs["x"])
    lost = is_met & ~(right["largest"] > value) & (wins | (right["largest"] != value))
    return {
        "largest": np.where(lost, value, right["largest"]),
        "column": np.where(lost, column, right["column"]),
    }


PARTS = {"row_max_kernel": Part(CASES, _plan_row_max, _list_max_models)}
