"""One pass and two passes (03a): its cases and wrong formulas."""

from __future__ import annotations

from functools import partial

import numpy as np

from course_lib.exercises.batteries import name_cases
from course_lib.exercises.expectations import bound_two_sweeps
from course_lib.exercises.statistics_functions import (
    BELOW_ZERO_CASES,
    ROW_CASES,
    compute_exact,
    draw_rows,
    expect_exact,
    is_below_zero,
    list_one_pass_models,
    list_two_pass_models,
    plan_bounded,
    plan_statistics,
)
from course_lib.grading.cases.case import Case
from course_lib.grading.cases.plan import Expected, Outputs, Part, Plan, Symptom
from course_lib.grading.judging import tolerance

ONE_PASS = name_cases("one_pass", (*ROW_CASES, BELOW_ZERO_CASES))
TWO_PASS = name_cases("two_pass", (*ROW_CASES, BELOW_ZERO_CASES))


def _plan_one_pass(case: Case, entry_point: str, rng: np.random.Generator) -> Plan:
    """Plan a case of one_pass. The variance may have the error of E[x^2] - E[x]^2: a few roundings
    of E[x^2]."""
    x = draw_rows(case, rng)
    x64, want = x.astype(np.float64), compute_exact(x)
    terms = (x64**2).mean(axis=1)
    var = expect_exact(case, want.var, terms)
    # a result of 0 is allowed: the formula comes no nearer; a negative one is too far off
    if case.fill == "below zero":
        var = Expected(want.var, want.var)
    return plan_statistics(
        case,
        entry_point,
        x,
        {"mean": expect_exact(case, want.mean, np.abs(x64).mean(axis=1)), "var": var},
    )


def _is_variance_negative(p: Plan, outputs: Outputs) -> bool:
    return is_below_zero(p.case) and bool((outputs["var"] < 0).any())


def _is_variance_turned(p: Plan, outputs: Outputs) -> bool:
    """Return True if each wrong variance looks like a negative result of the formula with its sign
    turned.

    It is then as far above 0 as the rounding of E[x^2] can bring the difference below 0.
    """
    if not is_below_zero(p.case):
        return False
    var, want = outputs["var"], p.expected["var"]
    rounding = tolerance.UNIT * (p.inputs["x"] ** 2).mean(axis=1)
    wrong = ~(np.abs(var - want.values) <= want.allowed)
    return bool(((0.5 * rounding <= var) & (var <= 8 * rounding))[wrong].all())


_BELOW_ZERO_CAUSES: tuple[tuple[str, Symptom], ...] = (
    ("negative_variance", _is_variance_negative),
    ("variance_turned", _is_variance_turned),
)


PARTS = {
    "one_pass": Part(ONE_PASS, _plan_one_pass, list_one_pass_models, rare=_BELOW_ZERO_CAUSES),
    "two_pass": Part(TWO_PASS, partial(plan_bounded, terms=bound_two_sweeps), list_two_pass_models),
}
