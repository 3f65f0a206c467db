"""One pass over a shifted row (03b): its cases and wrong formulas."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from course_lib.base.translation import gettext as _
from course_lib.exercises.batteries import make_case, name_cases
from course_lib.exercises.expectations import bound_two_sweeps
from course_lib.exercises.statistics_functions import (
    BELOW_ZERO_CASES,
    ROW_CASES,
    compute_exact,
    compute_wrong,
    draw_rows,
    expect_exact,
    list_one_pass_models,
    plan_statistics,
)
from course_lib.grading.cases.buffers import Tensor
from course_lib.grading.cases.case import Case
from course_lib.grading.cases.plan import Expected, Model, Outputs, Part, Plan

SHIFTED = name_cases(
    "shifted_one_pass",
    (
        *ROW_CASES,
        BELOW_ZERO_CASES,
        make_case("rows apart", 6, 200, 0, "each row has a mean of its own, thousands apart",
            "all rows are shifted by one number", fill="rows apart"),
        make_case("bf16, rows apart", 5, 100, 0, "each row has a mean of its own, thousands apart",
            "the shift is subtracted in bf16", dtype="bf16", fill="rows apart"),
    ),
)  # fmt: skip


def _plan_shifted(case: Case, entry_point: str, rng: np.random.Generator) -> Plan:
    """Plan a case of shifted_one_pass. The variance may have a few roundings of E[d^2], which is
    large where the first element is far out."""
    x = draw_rows(case, rng)
    x64, want = x.astype(np.float64), compute_exact(x)
    with np.errstate(invalid="ignore"):
        d = x64 - x64[:, :1]
        mean = expect_exact(case, want.mean, np.abs(x64[:, 0]) + np.abs(d).mean(axis=1))
        var = expect_exact(
            case, want.var, bound_two_sweeps(np.abs(x64).mean(axis=1), (d**2).mean(axis=1))
        )
    return plan_statistics(case, entry_point, x, {"mean": mean, "var": var})


def _list_shifted_models() -> Iterator[tuple[str, Model]]:
    for mean in (
        lambda mean, shift: mean - shift,
        lambda mean, shift: mean + shift,
        lambda mean, shift: 2 * shift - mean,
        lambda mean, shift: shift,
    ):
        yield "shift_left_in", partial(_leave_shift_in, mean=mean)
    for cause, model in list_one_pass_models():
        yield cause, lambda p, model=model: _shift(p, model)


def _leave_shift_in(p: Plan, mean: Callable) -> Outputs:
    right = compute_wrong(p)
    return right | {"mean": mean(right["mean"], p.inputs["x"][:, 0])}


def _shift(p: Plan, model: Model) -> Outputs:
    """Return what a wrong formula makes of the shifted rows, with the mean moved back."""
    x = p.inputs["x"]
    wrong = model(replace(p, inputs={"x": x - x[:, :1]}))
    return wrong | {"mean": wrong["mean"] + x[:, 0]} if wrong else wrong


_LOST, _LARGEST = "E[d^2] / (N var)", 1e6


@dataclass(frozen=True)
class RowCase(Case):
    """A row of N numbers that the learner chooses."""

    def describe_outcome(self, entry_point: str, outputs: Outputs) -> str:
        if _LOST not in outputs:  # the function returned nothing
            return ""
        row, called = outputs["row"], f"`{entry_point}({self.N})`"
        if not (np.abs(row) <= _LARGEST).all():
            return _("{call} returned a number that is not between -1e6 and 1e6.").format(
                call=called
            )
        d = row - row[0]
        if not row.var():
            return _("{call} returned equal numbers.").format(call=called)
        words = _(
            "in the row that {call} returned, E[d^2] is {times} times the variance; N/2 is {half}."
        )
        return words.format(
            call=called, times=f"{(d**2).mean() / row.var():.3g}", half=f"{self.N / 2:g}"
        )


ROWS = tuple(
    RowCase(f"{N} numbers", 1, N, 0, words, mistake, vector=True)
    for N, words, mistake in (
        (8, "`defeating_row`, the shortest row", "the ratio holds from some N on only"),
        (
            100,
            "`defeating_row`, 100 numbers",
            "the first element is a fixed number of spreads away",
        ),
        (
            1001,
            "`defeating_row`, an odd number of them",
            "half of the row is one number, and half another",
        ),
        (
            60000,
            "`defeating_row`, a long row",
            "the first element is far out, but not in view of N",
        ),
    )
)


def _plan_row(case: RowCase, entry_point: str, rng: np.random.Generator) -> Plan[RowCase]:
    # a case made to be worked out by hand may have one number, which has no variance
    case = replace(case, N=max(case.N, 2))
    free = Expected((np.arange(case.N) == 0).astype(np.float64), np.full(case.N, np.nan))
    expected = {"row": free, _LOST: Expected(np.array(1.0), np.array(0.5))}
    return Plan(
        case,
        entry_point,
        (),
        (Tensor("row", "fp32", (case.N,), (1,)),),
        (case.N,),
        {},
        expected,
        derive=_measure_loss,
    )


def _is_out_of_range(outputs: Outputs) -> bool:
    return _LOST in outputs and not (np.abs(outputs["row"]) <= _LARGEST).all()


def _measure_loss(outputs: Outputs) -> Outputs:
    """Return E[d^2] over N times the variance, which is 1 at most; 0 for a row of equal numbers,
    and for one outside of the range."""
    row = outputs["row"]
    if not (np.abs(row) <= _LARGEST).all() or not row.var():
        return {_LOST: np.array(0.0)}
    return {_LOST: np.array(((row - row[0]) ** 2).mean() / (len(row) * row.var()))}


PARTS = {
    "shifted_one_pass": Part(
        SHIFTED,
        _plan_shifted,
        _list_shifted_models,
        rare=(("cancellation", lambda p, outputs: p.case.fill == "rows apart"),),
    ),
    "defeating_row": Part(
        ROWS,
        _plan_row,
        rare=(
            ("row_out_of_range", lambda plan, outputs: _is_out_of_range(outputs)),
            ("row_does_not_defeat", lambda plan, outputs: _LOST in outputs),
        ),
    ),
}
