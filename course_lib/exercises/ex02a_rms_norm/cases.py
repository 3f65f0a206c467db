"""RMSNorm in PyTorch operations (02a): its cases and wrong formulas."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from course_lib.exercises.batteries import make_case
from course_lib.exercises.expectations import make_expected
from course_lib.exercises.norm_functions import COMMON_CASES, list_axis_models, make_plan, view_rows
from course_lib.exercises.tensors import draw_matrix, draw_weight
from course_lib.exercises.wrong_formulas import (
    WRONG_SCALES,
    apply_right,
    find_divisor,
    inverse_root,
    list_dtype_models,
    list_eps_models,
    list_rounded_outputs,
    list_scaled_eps_models,
    vary_by_cause,
)
from course_lib.grading.cases.case import Case
from course_lib.grading.cases.plan import Model, Outputs, Part, Plan
from course_lib.norms import reference

CASES = (
    *COMMON_CASES,
    make_case("near zero", 3, 100, 0),
    make_case("zero row", 2, 20, 0, mean=0.0),
)


def _plan_rms_norm(case: Case, entry_point: str, rng: np.random.Generator) -> Plan:
    x, w = draw_matrix(case, rng), draw_weight(case, rng)
    with np.errstate(invalid="ignore"):
        want = reference.rms_norm(x, w, case.eps).y
        terms = np.abs(w.astype(np.float64)) + np.abs(want)
    expected = make_expected(want, terms, case.dtype, infinite=case.fill == "inf row")
    # beside the Inf RMSNorm gives 0, or NaN if the row was first scaled by its largest element
    if case.fill == "inf row":
        bad = case.bad_row
        expected.allowed[bad, np.isfinite(want[bad])] = np.nan
    return make_plan(case, entry_point, x, {"w": w}, expected)


def _list_rms_norm_models() -> Iterator[tuple[str, Model]]:
    wrong = _compute_wrong_rms_norm
    yield from list_eps_models(wrong)
    yield from list_scaled_eps_models(wrong, in_blocks=False)
    yield "divisor", lambda p: wrong(p, count=1)
    yield "unbiased_variance", lambda p: wrong(p, count=p.case.N - 1)
    yield "unbiased_variance", lambda p: wrong(p, count=max(p.case.N - 1, 1))
    yield "zeros_left_out", lambda p: wrong(p, count=find_divisor(p, "not 0"))
    yield "divisor", lambda p: wrong(p, count=p.tensor("x").shape[0])  # len(x)
    yield from vary_by_cause(wrong, scale=WRONG_SCALES)
    yield "mean_subtracted", lambda p: wrong(p, centre=True, centre_statistic=True)
    yield "mean_subtracted", lambda p: wrong(p, centre=True)
    # x divided by its standard deviation
    yield "mean_subtracted", lambda p: wrong(p, centre_statistic=True)
    yield "deviation_not_squared", lambda p: wrong(p, measure=np.abs)
    yield "deviation_not_squared", lambda p: wrong(p, measure=lambda x: x)
    yield (
        "squared_after_the_sum",
        lambda p: wrong(p, measure=lambda x: x.mean(axis=-1, keepdims=True) ** 2 + 0 * x),
    )
    for divisor in (lambda x: x.shape[-1], lambda x: 1):
        yield (
            "max_for_sum",
            lambda p, d=divisor: wrong(
                p, measure=lambda x: (x**2).max(axis=-1, keepdims=True) / d(x) + 0 * x
            ),
        )
    yield "rstd_not_applied", lambda p: wrong(p, root=lambda v, eps: 1.0)
    yield "w_before_the_norm", lambda p: wrong(p, measure=lambda x: (x * p.inputs["w"]) ** 2)
    yield "divisor", lambda p: wrong(p, root=lambda v, eps: 1 / (np.sqrt(v / p.case.N + eps)))
    yield "divisor", lambda p: wrong(p, root=lambda v, eps: 1 / (np.sqrt(v / p.case.N) + eps))
    yield from list_dtype_models(wrong, ("x", "w"))
    yield from list_rounded_outputs(wrong, "y", ("w",))
    yield from list_axis_models(wrong)


def _compute_wrong_rms_norm(
    p: Plan, *, count=None, eps=None, root=inverse_root, scale=apply_right, centre=False,
    centre_statistic=False,
    measure=np.square, over="row",
) -> Outputs:  # fmt: skip
    (x, axis), eps = view_rows(p, over), p.case.eps if eps is None else eps
    centred = x - x.mean(axis=-1, keepdims=True)
    count = x.size // x.mean(axis=axis).size if count is None else count
    squares = measure(centred if centre_statistic else x)
    rstd = root(squares.sum(axis=axis, keepdims=True) / np.float64(count), eps)
    return {
        "y": scale(
            ((centred if centre else x) * rstd).reshape(p.tensor("y").shape), p.inputs["w"], 0.0
        )
    }


PARTS = {"rms_norm": Part(CASES, _plan_rms_norm, _list_rms_norm_models)}
