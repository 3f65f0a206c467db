"""What the statistics of rows in NumPy share: cases, plans and wrong formulas."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from course_lib.exercises.batteries import list_far_out, make_case
from course_lib.exercises.expectations import make_expected
from course_lib.exercises.tensors import choose_strides, draw_matrix
from course_lib.exercises.wrong_formulas import vary
from course_lib.grading.cases.buffers import Tensor, round_to
from course_lib.grading.cases.case import Case
from course_lib.grading.cases.plan import Expected, Model, Outputs, Plan
from course_lib.norms import statistics

ROW_CASES = (
    make_case("worked example", 3, 8, 0),
    make_case("mean 3", 5, 17, 0, mistake="the variance is the mean of the squares"),
    make_case("square", 7, 7, 0),
    make_case("one row", 1, 33, 0, mean=-2.0),
    make_case("one column", 5, 1, 0, "N = 1: the variance is 0"),
    make_case("long rows", 2, 1000, 0, "1000 columns", "only the first columns are added up",
        mean=0.5),
    make_case("many rows", 150, 9, 0, "150 rows"),
    make_case("8200 columns", 2, 8200, 0),
    make_case("zeros", 4, 17, 0, "every third element is 0"),
    make_case("transposed", 6, 10, 0, "x is a transposed matrix"),
    make_case("small spread", 3, 100, 0, "values around 0 with std 0.001",
        "eps is added to the variance", std=0.001, eps=1e-05, mean=0.0),
    make_case("mean 30", 4, 300, 0, "mean/std = 30",
        "the difference of two means is taken in half precision", mean=30.0),
    make_case("mean 1000", 8, 500, 0, "mean/std = 1000"),
    make_case("mean -10000", 32, 700, 0, "mean/std = 10000",
        "two_pass or welford is one pass in disguise", mean=-1e4),
    make_case("constant rows", 6, 40, 0, "the variance is 0",
        "a variance of 0 comes out as a rounding of the mean", mean=123.456, fill="constant"),
    make_case("fp16, std 100", 2, 500, 0),
    make_case("fp16, mean 8", 2, 700, 0, "sums need more than fp16's 11 bits", std=4.0),
    make_case("bf16, mean 3", 3, 127, 0, "sums need more than bf16's 8 bits",
        "sums are kept in bf16", dtype="bf16", mean=3.0),
    make_case("sliced", 4, 50, 0),
    make_case("a NaN row", 4, 19, 0),
    make_case("an Inf row", 4, 19, 0),
    *list_far_out(3001, 0),
    make_case("every size", 24, 300, 0, "sizes from 0.001 to 10000, each row with mean/std = 3000",
        "two_pass or welford is one pass where the mean is small", fill="every size"),
)  # fmt: skip
BELOW_ZERO_CASES = make_case("below zero", 16, 2, 0,
    "fp32 rounds E[x^2] - E[x]^2 to less than 0, the variance is not",
    "a negative variance is returned, or its sign is turned", mean=1000.0, std=0.01,
    fill="below zero")  # fmt: skip


def plan_bounded(
    case: Case,
    entry_point: str,
    rng: np.random.Generator,
    terms: Callable[[np.ndarray, np.ndarray], np.ndarray],
    inf_for_nan: bool = False,
) -> Plan:
    """Plan a case of two_pass or welford. ``inf_for_nan``: the statement allows an Inf where the
    formula gives NaN."""
    x = draw_rows(case, rng)
    size, want = np.abs(x.astype(np.float64)).mean(axis=1), compute_exact(x)
    return plan_statistics(
        case,
        entry_point,
        x,
        {
            "mean": expect_exact(case, want.mean, size, inf_for_nan),
            "var": expect_exact(case, want.var, terms(size, want.var), inf_for_nan),
        },
    )


def expect_exact(
    case: Case, values: np.ndarray, terms: np.ndarray, inf_for_nan: bool = False
) -> Expected:
    infinite = case.has_bad_row if inf_for_nan else case.fill == "inf row"
    return make_expected(values, terms, "fp32", infinite=infinite)


def draw_rows(case: Case, rng: np.random.Generator) -> np.ndarray:
    if case.fill == "rows apart":
        return round_to(
            draw_matrix(case, rng) + 4000.0 * (np.arange(case.M)[:, None] - 1), case.dtype
        )
    if case.fill == "every size":
        sizes = np.geomspace(1e-3, 1e4, case.M)[:, None]
        return round_to(sizes * (1 + rng.normal(size=(case.M, case.N)) / 3000), case.dtype)
    return (
        _find_pairs_below_zero(case, rng) if case.fill == "below zero" else draw_matrix(case, rng)
    )


def _find_pairs_below_zero(case: Case, rng: np.random.Generator) -> np.ndarray:
    """Find rows of two numbers whose one-pass variance fp32 rounds below 0, also if the sum uses a
    square without rounding it."""
    a, b = round_to(case.mean + case.std * rng.normal(size=(2, 400)), "fp32")
    mean = (a + b) / 2
    a64, b64, aa, bb = a.astype(np.float64), b.astype(np.float64), a * a, b * b
    sums = np.stack([aa + bb, (a64**2 + bb).astype(np.float32), (aa + b64**2).astype(np.float32)])
    below = ((sums / 2 - mean * mean) < 0).all(axis=0) & (a != b)
    return np.stack([a[below], b[below]], axis=1)[: case.M]


def compute_exact(x: np.ndarray) -> statistics.Statistics:
    with np.errstate(invalid="ignore"):
        # The annotation of dtype in norms.statistics allows only its default.
        return statistics.two_pass(x, np.float64, "pairwise")


def _list_calls(case: Case, entry_point: str) -> dict[str, tuple[int, int | None]]:
    """Return the required and forbidden calls. two_pass may take its mean from one_pass; welford
    may start from the first column."""
    if entry_point == "one_pass":
        return {"two_pass": (0, 0)}
    return {"welford_update": (case.N - 1, None)} if entry_point == "welford" and case.N > 1 else {}


def plan_statistics(
    case: Case, entry_point: str, x: np.ndarray, expected: dict[str, Expected]
) -> Plan:
    tensors = (
        Tensor("x", case.dtype, x.shape, choose_strides(case.layout, x.shape), x),
        *(Tensor(name, "fp32", (case.M,), (1,)) for name in expected),
    )
    return Plan(
        case, entry_point, (), tensors, ("x",), {}, expected, inputs={"x": x.astype(np.float64)},
        calls=_list_calls(case, entry_point),
    )  # fmt: skip


def is_below_zero(case: Case) -> bool:
    return case.fill == "below zero"


def list_two_pass_models() -> Iterator[tuple[str, Model]]:
    for least in (0, 1):
        yield (
            "unbiased_variance",
            lambda p, least=least: compute_wrong(p, divisor=max(p.case.N - 1, least)),
        )
    yield "divisor", lambda p: _divide_by_rows(p, lambda x, mean: (x - mean) ** 2)
    yield from vary(compute_wrong, "not_divided", divisor=[1], mean_divisor=[None, 1])
    yield from vary(compute_wrong, "std_for_var", then=[np.sqrt], rounded_mean=[True, False])
    deviations = (
        ("deviation_not_squared", lambda p: np.abs(_compute_deviation(p)).mean(axis=1)),
        ("deviation_not_squared", lambda p: _compute_deviation(p).mean(axis=1)),
        # the sum is 0 except for roundings
        ("squared_after_the_sum", lambda p: _compute_deviation(p).sum(axis=1) ** 2 / p.case.N),
        ("squared_after_the_sum", lambda p: _compute_deviation(p).sum(axis=1) ** 2 / p.case.N**2),
        ("mean_not_subtracted", lambda p: (p.inputs["x"] ** 2).mean(axis=1)),
    )
    for cause, var in deviations:
        yield cause, lambda p, var=var: compute_wrong(p) | {"var": var(p)}
    yield from vary(compute_wrong, "wrong_axis", axis=[0, (0, 1)])
    yield (
        "wrong_return",
        lambda p: dict(zip(("var", "mean"), compute_wrong(p).values(), strict=True)),
    )


def list_one_pass_models() -> Iterator[tuple[str, Model]]:
    yield from vary(
        _compute_terms,
        "variance_terms",
        formula=[
            lambda total, mean, N: total - mean**2 / N,  # the published WebGPU line
            lambda total, mean, N: total - mean**2,
        ],
    )
    yield (
        "divisor",
        lambda p: _divide_by_rows(
            p, lambda x, mean: x**2, lambda var, mean: np.maximum(var - mean**2, 0)
        ),
    )
    yield from vary(
        _compute_terms,
        "variance_terms",
        formula=[
            lambda total, mean, N: total / N - mean,
            lambda total, mean, N: total / N - np.abs(mean),
            lambda total, mean, N: total / N,
            lambda total, mean, N: total / N - (mean * N) ** 2,
            lambda total, mean, N: total / N - mean**2 * N,
            lambda total, mean, N: total / N + mean**2,
            lambda total, mean, N: mean**2 - total / N,
        ],
    )
    unbiased = [lambda total, mean, N: (total / N - mean**2) * N / np.float64(N - 1)]
    yield from vary(_compute_terms, "unbiased_variance", formula=unbiased)
    yield from list_two_pass_models()


def compute_wrong(
    p: Plan,
    *,
    divisor=None,
    mean_divisor=None,
    then=lambda var: var,
    rounded_mean=False,
    axis: int | tuple[int, int] = 1,
) -> Outputs:
    x = p.inputs["x"]
    count = p.case.M if axis == 0 else p.case.N if axis == 1 else x.size
    mean = x.mean(axis=axis, keepdims=True)
    if rounded_mean:  # the root of a small variance shows the rounding of the mean
        mean = x.astype(np.float32).mean(axis=axis, keepdims=True).astype(np.float64)
    squares = ((x - mean) ** 2).sum(axis=axis, keepdims=True)
    var = then(squares / np.float64(count if divisor is None else divisor))
    mean = mean if mean_divisor is None else mean * count / mean_divisor
    # Statistics of different lengths need no prediction: the check of the shapes finds them before
    # the values are judged.
    size = p.case.M if mean.size in (1, p.case.M) else mean.size
    return (
        {"mean": np.broadcast_to(mean.ravel(), size), "var": np.broadcast_to(var.ravel(), size)}
        if size == p.case.M
        else {}
    )


def _divide_by_rows(p: Plan, measure, then=lambda var, mean: var) -> Outputs:
    """Return statistics divided by the number of rows, x.shape[0], instead of the columns, in the
    mean and in the variance."""
    x, M = p.inputs["x"], p.case.M
    mean = x.sum(axis=1, keepdims=True) / M
    return {"mean": mean[:, 0], "var": then(measure(x, mean).sum(axis=1) / M, mean[:, 0])}


def _compute_deviation(p: Plan) -> np.ndarray:
    return p.inputs["x"] - p.inputs["x"].astype(np.float32).mean(axis=1, keepdims=True)


def _compute_terms(p: Plan, formula) -> Outputs:
    x = p.inputs["x"].astype(np.float32) if is_below_zero(p.case) else p.inputs["x"]
    mean = x.mean(axis=1)
    return {"mean": mean, "var": np.maximum(formula((x**2).sum(axis=1), mean, p.case.N), 0)}
