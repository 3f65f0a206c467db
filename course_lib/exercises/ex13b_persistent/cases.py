"""The persistent backward kernel (13b): its cases and wrong formulas."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from course_lib.exercises.batteries import make_case
from course_lib.exercises.dw_kernels import (
    DW_MISTAKES,
    PARTIAL_SUMS,
    ChooseRows,
    clip_rows,
    combine_mistakes,
    compute_wrong,
    extend_plan,
    list_partial_choices,
    list_spare_row_models,
    list_strides,
    plan_backward,
)
from course_lib.exercises.dx_kernels import (
    LAYER_NORM_MISTAKES,
    compute_wrong_dx,
    is_wrong_where_sums_vanish,
    list_dx_dtype_models,
)
from course_lib.exercises.gradients import compute_hat, list_misread_models
from course_lib.exercises.wrong_formulas import change_inputs
from course_lib.grading.cases.case import SharedCase
from course_lib.grading.cases.plan import Model, Outputs, Part, Plan
from course_lib.grading.judging.elements import judge_elements

_programs = partial(make_case, case_class=SharedCase, partials_name="P")

CASES = (
    _programs("worked example", 3, 8, 8, "the 3 x 8 worked example, {partials}", partials=1),
    _programs("two tiles each", 8, 16, 16, "{partials} programs, four tiles",
        "only the first or the last tile counts", mean=1.0, rows=2, partials=2, orders=4),
    _programs("uneven", 11, 12, 16,
        "{partials} programs, six tiles of two rows, the last one short",
        "rows past M are added up, or programs take runs of tiles", mean=-2.0, rows=2, partials=3,
        orders=3),
    _programs("more programs than tiles", 3, 20, 32,
        "{partials} programs, two tiles: three rows are 0",
        "a program without a tile writes nothing", mean=1.0, rows=2, partials=5, orders=3),
    _programs("one row", 1, 30, 32, "M = 1, {partials}", mean=3.0, rows=4, partials=2),
    _programs("one column", 7, 1, 16, "N = 1: dx is 0", "a column past N is written", rows=2,
        partials=2),
    _programs("one row a tile", 9, 17, 32, "{partials}, ROWS = 1, 15 padded lanes, mean 3",
        "a padded lane adds -mean * rstd to c1", mean=3.0, partials=4),
    _programs("long row", 4, 1000, 1024, "{partials}, 24 padded lanes, mean 3",
        "columns after the first block are left out", mean=3.0, rows=1, partials=2),
    _programs("many rows", 150, 8, 16, "{partials}, 75 tiles", "only the first rows are added up",
        rows=2, partials=1, orders=0),
    _programs("zeros", 5, 17, 32,
        "{partials}, 0 in x, in w and as sums of rows whose terms are not 0",
        "a sum that is 0 is taken for a buffer not yet written", rows=2, partials=2, orders=1),
    _programs("many programs", 150, 3, 16, "{partials}, a row a program",
        "only the first programs write their sums", partials=150, orders=0, rows=1),
    _programs("fp32 dx", 5, 33, 64, rows=2, partials=2, orders=1),
    _programs("fp32 dy", 5, 33, 64, rows=2, partials=2, orders=1),
    _programs("far columns", 3, 4, 16, rows=2, partials=2, orders=1),
    _programs("large eps", 6, 100, 128, mistake="rstd is computed anew, without eps", rows=2,
        partials=2, mean=0.5),
    _programs("mean 1000", 4, 96, 128, mistake="xhat is computed from a rounded mean", rows=2,
        partials=2),
    _programs("fp16", 200, 17, 32, "200 rows in half precision", rows=16, partials=2),
    _programs("bf16", 40, 17, 32, "40 rows in bfloat16", rows=4, partials=3),
    _programs("fp32 weights", 5, 33, 64, rows=2, partials=2),
    _programs("sliced", 5, 50, 64, "dy, x and dx are slices: three row strides",
        "one row stride is taken for all tensors", rows=2, partials=2),
    _programs("expanded", 5, 50, 64, rows=2, partials=2),
    _programs("transposed", 5, 36, 64, rows=2, partials=2),
    _programs("a NaN row", 4, 19, 32, "row 0 of dy begins with NaN", rows=2, partials=2),
    _programs("an Inf row", 4, 19, 32, "dy holds an Inf in row 1", rows=2, partials=2, orders=1),
    _programs("far rows", 5, 17, 32,
        "rows 1.5 * 2^30 elements apart: within a tile, too, they pass 2^32", rows=4, mean=1.0,
        partials=2),
)  # fmt: skip


def _plan_persistent(case: SharedCase, kernel: str, rng: np.random.Generator) -> Plan[SharedCase]:
    plan = plan_backward(case, kernel, rng, _list_programs(case), "partial", with_dx=True)
    plan = extend_plan(
        plan, [*list_strides(plan), case.M, case.N], {"ROWS": case.rows, "BLOCK": case.block}
    )
    return replace(
        plan, grid=(case.partials,),
        reads={"x": 1, "dy": 1, "dx": 0, "dw_partial": 0, "db_partial": 0},
        # A last step may find no tile, or go on row by row: about six loads per row or tile.
        empty_loads=6 * case.partials * case.rows,
        spread=dict.fromkeys(("x", "dx"), min(case.partials, -(-case.M // case.rows))),
    )  # fmt: skip


def _list_programs(case: SharedCase) -> list[np.ndarray]:
    """Return the rows of each program: tiles p, p + P, p + 2 P, ..."""
    rows = np.arange(case.M)
    return [rows[rows // case.rows % case.partials == p] for p in range(case.partials)]


_WITH_W = (
    ("w_in_dw", {"w_dw": "w / w"}),
    ("w_in_dw", {"w_dw": 1}),
    ("w_in_dw", {"w_db": 1}),
    ("w_in_dw", {"w_dw": 1, "w_db": 1}),
)


def _take_last_tile(p: Plan[SharedCase], rows: np.ndarray) -> np.ndarray:
    return rows[rows // p.case.rows == rows.max() // p.case.rows] if rows.size else rows


def _take_first_tile(p: Plan[SharedCase], rows: np.ndarray) -> np.ndarray:
    return rows[rows // p.case.rows == rows.min() // p.case.rows] if rows.size else rows


def _take_but_first_tile(p: Plan[SharedCase], rows: np.ndarray) -> np.ndarray:
    return rows[rows // p.case.rows > rows.min() // p.case.rows] if rows.size else rows


def _list_runs_of_tiles(p: Plan[SharedCase]) -> list[np.ndarray]:
    """Return the rows of each program if it takes neighbouring tiles instead of every P-th."""
    case = p.case
    tiles = -(-case.M // case.rows)
    each = -(-tiles // case.partials) * case.rows
    return [clip_rows(p, program * each, each) for program in range(case.partials)]


def _list_right_programs(p: Plan[SharedCase]) -> list[np.ndarray]:
    return _list_programs(p.case)


_PROGRAM_ROWS: tuple[tuple[str, ChooseRows], ...] = (
    ("rows_not_summed", lambda p: [_take_last_tile(p, rows) for rows in _list_programs(p.case)]),
    ("rows_not_summed", lambda p: [_take_first_tile(p, rows) for rows in _list_programs(p.case)]),
    ("rows_left_out", lambda p: [_take_but_first_tile(p, rows) for rows in _list_programs(p.case)]),
    (
        "rows_left_out",
        lambda p: [
            rows[rows < p.case.M // p.case.rows * p.case.rows] for rows in _list_programs(p.case)
        ],
    ),
    ("wrong_rows", _list_runs_of_tiles),
    ("same_rows", lambda p: [_list_programs(p.case)[0]] * p.case.partials),
    *list_partial_choices(_list_right_programs),
)


def _list_persistent_models() -> Iterator[tuple[str, Model[SharedCase]]]:
    yield from combine_mistakes(
        (*DW_MISTAKES, *_WITH_W), _PROGRAM_ROWS, _list_right_programs, "partial"
    )
    yield from list_spare_row_models(_list_right_programs)
    yield "dx_for_dy", lambda p: _take_dx_for_dy(p, "db_partial")
    yield "dx_for_dy", lambda p: _take_dx_for_dy(p, "dw_partial")
    yield "dx_and_xhat_swapped", _swap_dx_and_xhat
    yield from list_dx_dtype_models(("dy", "x", "w"))
    yield from list_misread_models(
        lambda p: {"dx": compute_wrong_dx(p), **compute_wrong(p, _list_programs(p.case), "partial")}
    )
    yield from list_misread_models(lambda p: {"dx": compute_wrong_dx(p)})
    for cause, changes in LAYER_NORM_MISTAKES:
        yield cause, lambda p, changes=changes: {"dx": compute_wrong_dx(p, **changes)}


def _swap_dx_and_xhat(p: Plan[SharedCase]) -> Outputs:
    mine, dx = _list_programs(p.case), compute_wrong_dx(p)
    dw = np.stack([(p.inputs["dy"] * dx)[rows].sum(axis=0) for rows in mine])
    return {"dx": compute_hat(p.inputs, "xhat"), "dw_partial": dw}


def _take_dx_for_dy(p: Plan[SharedCase], name: str) -> Outputs:
    changed = change_inputs(p, dy=p.expected["dx"].values)
    return {name: compute_wrong(changed, _list_right_programs(p), "partial")[name]}


def _is_spoiled_by_spare_rows(p: Plan[SharedCase], outputs: Outputs) -> bool:
    """Return True if the only error is that the partial sums of the program with the short last
    tile are not finite, in whole rows.

    The sums then contain the values that rows past M loaded. If such rows happen to load finite
    numbers, this symptom is absent.
    """
    case = p.case
    if not outputs:  # the case did not finish
        return False
    spoiled = np.zeros((len(PARTIAL_SUMS), case.partials), bool)
    for which, name in enumerate(PARTIAL_SUMS):
        lost = ~np.isfinite(outputs[name]) & np.isfinite(p.expected[name].values)
        if (lost != judge_elements(outputs[name], p.expected[name]).wrong).any():
            return False
        if (lost.any(axis=1) != lost.all(axis=1)).any():
            return False
        spoiled[which] = lost.any(axis=1)
    of_last_tile = (-(-case.M // case.rows) - 1) % case.partials
    short = case.M % case.rows != 0 and set(np.flatnonzero(spoiled.any(axis=0))) == {of_last_tile}
    return short and not judge_elements(outputs["dx"], p.expected["dx"]).wrong.any()


PARTS = {
    "persistent_backward_kernel": Part(
        CASES,
        _plan_persistent,
        _list_persistent_models,
        rare=(("row_mask", _is_spoiled_by_spare_rows), ("sum_of_zero", is_wrong_where_sums_vanish)),
        partials=PARTIAL_SUMS,
    )
}
