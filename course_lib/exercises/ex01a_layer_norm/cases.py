"""LayerNorm in PyTorch operations (01a): its cases and wrong formulas."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from course_lib.exercises.batteries import list_far_out, make_case
from course_lib.exercises.expectations import make_expected
from course_lib.exercises.norm_functions import COMMON_CASES, list_axis_models, make_plan, view_rows
from course_lib.exercises.tensors import draw_matrix, draw_shift, draw_weight
from course_lib.exercises.wrong_formulas import (
    WRONG_ROOTS,
    WRONG_SCALES,
    WRONG_SHIFTS,
    apply_right,
    find_divisor,
    inverse_root,
    list_dtype_models,
    list_eps_models,
    list_rounded_outputs,
    list_scaled_eps_models,
    square_what_is_not_0,
    vary_by_cause,
)
from course_lib.grading.cases.case import Case
from course_lib.grading.cases.plan import Model, Outputs, Part, Plan
from course_lib.norms import reference

CASES = (
    *COMMON_CASES,
    make_case("constant row", 2, 20, 0),
    make_case("b in bf16", 4, 33, 0, "x in fp32, w and b in half precision", "y has the dtype of b",
        dtypes=(("w", "fp16"), ("b", "bf16"))),
    make_case("b in fp32", 4, 33, 0, "x and w in half precision",
        "b is rounded to the dtype of x or w", dtype="bf16", dtypes=(("w", "fp16"), ("b", "fp32"))),
    make_case("mean 10000", 2, 768, 0),
    *list_far_out(3001, 0),
)  # fmt: skip


def _plan_layer_norm(case: Case, entry_point: str, rng: np.random.Generator) -> Plan:
    x, w = draw_matrix(case, rng), draw_weight(case, rng)
    b = draw_shift(case, rng)
    with np.errstate(invalid="ignore"):
        want = reference.layer_norm(x, w, b, case.eps)
        scale = 1 + np.abs(want.mean) * want.rstd
        terms = (
            scale[:, None] * np.abs(w.astype(np.float64))
            + np.abs(b.astype(np.float64))
            + np.abs(want.y)
        )
    expected = make_expected(want.y, terms, case.dtype, infinite=case.has_bad_row)
    return make_plan(case, entry_point, x, {"w": w, "b": b}, expected)


def _list_layer_norm_models() -> Iterator[tuple[str, Model]]:
    wrong = _compute_wrong_layer_norm
    yield "unbiased_variance", lambda p: wrong(p, correction=1)
    yield "unbiased_variance", lambda p: wrong(p, correction=min(p.case.N - 1, 1))
    yield "zeros_left_out", lambda p: wrong(p, measure=square_what_is_not_0)
    yield "zeros_left_out", lambda p: wrong(p, mean_count=find_divisor(p, "not 0"))
    for measure in (lambda x, mean: (x - mean) ** 2, square_what_is_not_0):
        yield (
            "zeros_left_out",
            lambda p, m=measure: wrong(p, count=find_divisor(p, "not 0"), measure=m),
        )
    # x.std() does this by default
    yield "unbiased_variance", lambda p: wrong(p, correction=1, root=WRONG_ROOTS[0][1])
    yield from list_eps_models(wrong)
    yield from list_scaled_eps_models(wrong, in_blocks=False)
    yield "divisor", lambda p: wrong(p, correction=p.case.N - 1)  # the sum is not divided at all
    yield "divisor", lambda p: wrong(p, count=p.tensor("x").shape[0])  # len(x)
    yield "divisor", lambda p: wrong(p, mean_count=1)
    yield from vary_by_cause(wrong, scale=(*WRONG_SCALES, *WRONG_SHIFTS))
    yield "mean_not_subtracted", lambda p: wrong(p, centre=0.0)
    yield "mean_not_subtracted", lambda p: wrong(p, measure=lambda x, mean: x**2)
    yield "mean_not_subtracted", lambda p: wrong(p, centre=0.0, measure=lambda x, mean: x**2)
    yield "deviation_not_squared", lambda p: wrong(p, measure=lambda x, mean: np.abs(x - mean))
    yield "deviation_not_squared", lambda p: wrong(p, measure=lambda x, mean: 0 * x)
    for root in (lambda v, eps: 1 / (v + eps), lambda v, eps: 1 / v):
        yield (
            "deviation_not_squared",
            lambda p, root=root: wrong(p, measure=lambda x, mean: np.abs(x - mean), root=root),
        )
    yield "rstd_not_applied", lambda p: wrong(p, root=lambda v, eps: 1.0)
    yield "wrong_axis", lambda p: wrong(p, centre=p.inputs["x"].mean())
    for axis in (0, 1):
        yield "wrong_axis", lambda p, axis=axis: _compute_with_mean_over(p, axis)
    yield "w_misapplied", lambda p: wrong(p, scale=lambda hat, w, b: hat * w[0] + b[0])
    yield from list_dtype_models(wrong, ("x", "w", "b"))
    yield from list_rounded_outputs(wrong, "y", ("w", "b"))
    yield from list_axis_models(wrong)


def _compute_wrong_layer_norm(
    p: Plan, *, correction=0, count=None, mean_count=None, eps=None, root=inverse_root,
    scale=apply_right, centre=None,
    measure=lambda x, mean: (x - mean) ** 2, over="row",
) -> Outputs:  # fmt: skip
    (x, axis), eps = view_rows(p, over), p.case.eps if eps is None else eps
    count = x.size // x.mean(axis=axis).size if count is None else count
    mean = x.sum(axis=axis, keepdims=True) / np.float64(count if mean_count is None else mean_count)
    var = measure(x, mean).sum(axis=axis, keepdims=True) / np.float64(count - correction)
    xhat = ((x - (mean if centre is None else centre)) * root(var, eps)).reshape(
        p.tensor("y").shape
    )
    return {"y": scale(xhat, p.inputs["w"], p.inputs["b"])}


def _compute_with_mean_over(p: Plan, axis: int) -> Outputs:
    """Return y with a mean over this dimension, if x has it, and the variance of the deviations
    from it over the columns."""
    shape = p.tensor("y").shape
    of_axis = p.inputs["x"].reshape(shape).mean(axis=min(axis, len(shape) - 1), keepdims=True)
    mean = np.broadcast_to(of_axis, shape).reshape(p.inputs["x"].shape)
    return _compute_wrong_layer_norm(p, centre=mean, measure=lambda x, _: (x - mean) ** 2)


PARTS = {"layer_norm": Part(CASES, _plan_layer_norm, _list_layer_norm_models)}
