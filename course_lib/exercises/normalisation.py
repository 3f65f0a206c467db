"""LayerNorm and RMSNorm in PyTorch operations: the inputs that find their bugs, and their wrong
formulas."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from course_lib.grading.cases.buffers import Tensor, compute_strides
from course_lib.grading.cases.case import Case
from course_lib.grading.cases.plan import Expected, Model, Outputs, Part, Plan
from course_lib.exercises.batteries import list_far_out, make_case
from course_lib.exercises.making import (
    FIXED_EPS,
    WRONG_ROOTS,
    WRONG_SCALES,
    WRONG_SHIFTS,
    apply_right,
    choose_strides,
    draw_matrix,
    draw_shift,
    draw_weight,
    find_divisor,
    inverse_root,
    list_dtype_models,
    list_rounded_outputs,
    make_expected,
    square_what_is_not_0,
)
from course_lib.norms import reference

_COMMON = (
    make_case("worked example", 3, 8, 0),
    make_case("three dimensions", 6, 10, 0),
    make_case("four dimensions", 8, 5, 0, "two more leading dimensions",
        "all but the last two dimensions are taken for one", leading=(2, 1, 4), mean=-1.0),
    make_case("one vector", 1, 12, 0, "x has one dimension",
        "x is taken to have two dimensions at least", vector=True, mean=3.0),
    make_case("square", 7, 7, 0, mistake="the statistics are those of the columns", std=1.0),
    make_case("one row", 1, 33, 0),
    make_case("one column", 5, 1, 0, mean=0.0),
    make_case("tiny eps", 3, 96, 0),
    make_case("large eps", 3, 100, 0, "std 0.03: eps = 0.1 rules the result"),
    make_case("fp16, std 100", 2, 2500, 0),
    make_case("fp16, mean 8", 2, 1025, 0),
    make_case("bf16", 3, 127, 0),
    make_case("fp32 weights", 4, 33, 0, "x in fp16, w in fp32: y has x's dtype",
        "y has the dtype of x times w"),
    make_case("fp32 x", 4, 33, 0, "x in fp32: y is, too", "y has the dtype of w",
        dtypes=(("w", "fp16"),)),
    make_case("bf16 x", 4, 33, 0, "y in bf16, w in fp32", "y has the dtype of w", dtype="bf16",
        dtypes=(("w", "fp32"),)),
    make_case("many rows", 150, 9, 0, "150 rows"),
    make_case("16400 columns", 2, 16400, 0, "more than 16384 columns",
        "a row ends after 16384 columns"),
    make_case("zeros", 4, 17, 0),
    make_case("transposed", 6, 10, 0, "x is a transposed matrix"),
    make_case("sliced", 4, 50, 0),
    make_case("permuted", 6, 10, 0, leading=(3, 2)),
    make_case("a NaN row", 4, 19, 0),
    make_case("an Inf row", 4, 19, 0),
)  # fmt: skip
LAYER_NORM = (
    *_COMMON,
    make_case("constant row", 2, 20, 0),
    make_case("b in bf16", 4, 33, 0, "x in fp32, w and b in half precision", "y has the dtype of b",
        dtypes=(("w", "fp16"), ("b", "bf16"))),
    make_case("b in fp32", 4, 33, 0, "x and w in half precision",
        "b is rounded to the dtype of x or w", dtype="bf16", dtypes=(("w", "fp16"), ("b", "fp32"))),
    make_case("mean 10000", 2, 768, 0),
    *list_far_out(3001, 0),
)  # fmt: skip
RMS_NORM = (*_COMMON, make_case("near zero", 3, 100, 0), make_case("zero row", 2, 20, 0, mean=0.0))


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
    return _make_plan(case, entry_point, x, {"w": w, "b": b}, expected)


def _plan_rms_norm(case: Case, entry_point: str, rng: np.random.Generator) -> Plan:
    x, w = draw_matrix(case, rng), draw_weight(case, rng)
    with np.errstate(invalid="ignore"):
        want = reference.rms_norm(x, w, case.eps).y
        terms = np.abs(w.astype(np.float64)) + np.abs(want)
    expected = make_expected(want, terms, case.dtype, infinite=case.fill == "inf row")
    # beside the Inf RMSNorm gives 0, or NaN if the row was first scaled by its largest element
    if case.fill == "inf row":
        expected.allowed[1, np.isfinite(want[1])] = np.nan
    return _make_plan(case, entry_point, x, {"w": w}, expected)


def _make_plan(
    case: Case, entry_point: str, x: np.ndarray, vectors: dict[str, np.ndarray], expected: Expected
) -> Plan:
    shape = (case.N,) if case.vector else (*(case.leading or (case.M,)), case.N)
    tensors = (
        Tensor("x", case.dtype, shape, choose_strides(case.layout, shape), x.reshape(shape)),
        *(
            Tensor(name, case.dtype_of(name), (case.N,), (1,), values)
            for name, values in vectors.items()
        ),
        Tensor("y", case.dtype, shape, compute_strides(shape)),
    )
    arguments = ["x", *vectors, case.eps]
    inputs = {"x": x.astype(np.float64)} | {
        name: values.astype(np.float64) for name, values in vectors.items()
    }
    reshaped = type(expected)(expected.values.reshape(shape), expected.allowed.reshape(shape))
    return Plan(
        case, entry_point, (), tensors, tuple(arguments), {}, {"y": reshaped}, inputs=inputs
    )


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
    yield from _list_eps_models(wrong)
    yield "divisor", lambda p: wrong(p, correction=p.case.N - 1)  # the sum is not divided at all
    yield "divisor", lambda p: wrong(p, count=p.tensor("x").shape[0])  # len(x)
    yield "divisor", lambda p: wrong(p, mean_count=1)
    for cause, scale in (*WRONG_SCALES, *WRONG_SHIFTS):
        yield cause, lambda p, scale=scale: wrong(p, scale=scale)
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
    yield from _list_axis_models(wrong)


def _list_rms_norm_models() -> Iterator[tuple[str, Model]]:
    wrong = _compute_wrong_rms_norm
    yield from _list_eps_models(wrong)
    yield "divisor", lambda p: wrong(p, count=1)
    yield "unbiased_variance", lambda p: wrong(p, count=p.case.N - 1)
    yield "unbiased_variance", lambda p: wrong(p, count=max(p.case.N - 1, 1))
    yield "zeros_left_out", lambda p: wrong(p, count=find_divisor(p, "not 0"))
    yield "divisor", lambda p: wrong(p, count=p.tensor("x").shape[0])  # len(x)
    for cause, scale in WRONG_SCALES:
        yield cause, lambda p, scale=scale: wrong(p, scale=scale)
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
    yield from _list_axis_models(wrong)


def _list_eps_models(wrong: Callable[..., Outputs]) -> Iterator[tuple[str, Model]]:
    yield "eps_missing", lambda p: wrong(p, eps=0.0)
    for cause, root in WRONG_ROOTS:
        yield cause, lambda p, root=root: wrong(p, root=root)
    for fixed in FIXED_EPS:
        yield "eps_hard_coded", lambda p, fixed=fixed: wrong(p, eps=fixed)
    for times in (lambda N: 1 / N, lambda N: N):
        yield "eps_altered", lambda p, times=times: wrong(p, eps=p.case.eps * times(p.case.N))


def _list_axis_models(wrong: Callable[..., Outputs]) -> Iterator[tuple[str, Model]]:
    for over in ("first", "second", "last two", "all", "shape[0]", "sample"):
        yield "wrong_axis", lambda p, over=over: wrong(p, over=over)


def _compute_wrong_layer_norm(
    p: Plan, *, correction=0, count=None, mean_count=None, eps=None, root=inverse_root,
    scale=apply_right, centre=None,
    measure=lambda x, mean: (x - mean) ** 2, over="row",
) -> Outputs:  # fmt: skip
    (x, axis), eps = _view_rows(p, over), p.case.eps if eps is None else eps
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


def _compute_wrong_rms_norm(
    p: Plan, *, count=None, eps=None, root=inverse_root, scale=apply_right, centre=False,
    centre_statistic=False,
    measure=np.square, over="row",
) -> Outputs:  # fmt: skip
    (x, axis), eps = _view_rows(p, over), p.case.eps if eps is None else eps
    centred = x - x.mean(axis=-1, keepdims=True)
    count = x.size // x.mean(axis=axis).size if count is None else count
    squares = measure(centred if centre_statistic else x)
    rstd = root(squares.sum(axis=axis, keepdims=True) / np.float64(count), eps)
    return {
        "y": scale(
            ((centred if centre else x) * rstd).reshape(p.tensor("y").shape), p.inputs["w"], 0.0
        )
    }


def _view_rows(p: Plan, over: str) -> tuple[np.ndarray, int | tuple[int, int]]:
    """Return x in the shape that a wrong solution gives it, and the axis over which it takes its
    statistics."""
    x = p.inputs["x"]
    shape = p.tensor("y").shape
    leading = shape[0]
    return {
        "row": (x, -1),
        "first": (x.reshape(shape), 0),
        "second": (x.reshape(shape), min(1, len(shape) - 1)),
        "last two": (x.reshape(shape), (-2, -1) if len(shape) > 1 else -1),
        "all": (x, (0, 1)),
        "shape[0]": (x.reshape(leading, -1), -1),  # x.shape[0] taken for the number of rows
        # every dimension but the first
        "sample": (x.reshape(leading if len(shape) > 1 else 1, -1), -1),
    }[over]


PARTS = {
    "layer_norm": Part(LAYER_NORM, _plan_layer_norm, _list_layer_norm_models),
    "rms_norm": Part(RMS_NORM, _plan_rms_norm, _list_rms_norm_models),
}
