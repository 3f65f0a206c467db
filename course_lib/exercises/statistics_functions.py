"""Mean and variance in NumPy, by one pass, two passes, Welford and Chan's merge: inputs that tell
them apart, wrong formulas."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import permutations

import numpy as np

from course_lib.base.translation import gettext as _
from course_lib.grading.cases.buffers import Tensor, round_to
from course_lib.grading.cases.case import Case
from course_lib.grading.cases.plan import Expected, Model, Outputs, Part, Plan, Symptom
from course_lib.exercises.batteries import list_far_out, make_case, name_cases
from course_lib.exercises.making import (
    FEW,
    bound_two_sweeps,
    bound_welford,
    choose_strides,
    draw_matrix,
    half_ulp,
    make_expected,
)
from course_lib.grading.judging import tolerance
from course_lib.norms import statistics

# ---- one pass, two passes, Welford

_ROWS = (
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
_BELOW_ZERO = make_case("below zero", 16, 2, 0,
    "fp32 rounds E[x^2] - E[x]^2 to less than 0, the variance is not",
    "a negative variance is returned, or its sign is turned", mean=1000.0, std=0.01,
    fill="below zero")  # fmt: skip


ONE_PASS = name_cases("one_pass", (*_ROWS, _BELOW_ZERO))
TWO_PASS = name_cases("two_pass", (*_ROWS, _BELOW_ZERO))
WELFORD = name_cases("welford", (*_ROWS, _BELOW_ZERO))


def _plan_one_pass(case: Case, entry_point: str, rng: np.random.Generator) -> Plan:
    """Plan a case of one_pass. The variance may have the error of E[x^2] - E[x]^2: a few roundings
    of E[x^2]."""
    x = _draw_rows(case, rng)
    x64, want = x.astype(np.float64), _compute_exact(x)
    terms = (x64**2).mean(axis=1)
    var = _expect(case, want.var, terms)
    # a result of 0 is allowed: the formula comes no nearer; a negative one is too far off
    if case.fill == "below zero":
        var = Expected(want.var, want.var)
    return _plan_statistics(
        case,
        entry_point,
        x,
        {"mean": _expect(case, want.mean, np.abs(x64).mean(axis=1)), "var": var},
    )


def _plan_bounded(
    case: Case,
    entry_point: str,
    rng: np.random.Generator,
    terms: Callable[[np.ndarray, np.ndarray], np.ndarray],
    inf_for_nan: bool = False,
) -> Plan:
    """Plan a case of two_pass or welford. ``inf_for_nan``: the statement allows an Inf where the
    formula gives NaN."""
    x = _draw_rows(case, rng)
    size, want = np.abs(x.astype(np.float64)).mean(axis=1), _compute_exact(x)
    return _plan_statistics(
        case,
        entry_point,
        x,
        {
            "mean": _expect(case, want.mean, size, inf_for_nan),
            "var": _expect(case, want.var, terms(size, want.var), inf_for_nan),
        },
    )


def _expect(
    case: Case, values: np.ndarray, terms: np.ndarray, inf_for_nan: bool = False
) -> Expected:
    infinite = case.has_bad_row if inf_for_nan else case.fill == "inf row"
    return make_expected(values, terms, "fp32", infinite=infinite)


def _draw_rows(case: Case, rng: np.random.Generator) -> np.ndarray:
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


def _compute_exact(x: np.ndarray) -> statistics.Statistics:
    with np.errstate(invalid="ignore"):
        # The annotation of dtype in norms.statistics allows only its default.
        return statistics.two_pass(x, np.float64, "pairwise")


def _list_calls(case: Case, entry_point: str) -> dict[str, tuple[int, int | None]]:
    """Return the required and forbidden calls. two_pass may take its mean from one_pass; welford
    may start from the first column."""
    if entry_point == "one_pass":
        return {"two_pass": (0, 0)}
    return {"welford_update": (case.N - 1, None)} if entry_point == "welford" and case.N > 1 else {}


def _plan_statistics(
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


def _is_below_zero(case: Case) -> bool:
    return case.fill == "below zero"


def _is_variance_negative(p: Plan, outputs: Outputs) -> bool:
    return _is_below_zero(p.case) and bool((outputs["var"] < 0).any())


def _is_variance_turned(p: Plan, outputs: Outputs) -> bool:
    """Return True if each wrong variance looks like a negative result of the formula with its sign
    turned.

    It is then as far above 0 as the rounding of E[x^2] can bring the difference below 0.
    """
    if not _is_below_zero(p.case):
        return False
    var, want = outputs["var"], p.expected["var"]
    rounding = tolerance.UNIT * (p.inputs["x"] ** 2).mean(axis=1)
    wrong = ~(np.abs(var - want.values) <= want.allowed)
    return bool(((0.5 * rounding <= var) & (var <= 8 * rounding))[wrong].all())


_BELOW_ZERO_CAUSES: tuple[tuple[str, Symptom], ...] = (
    ("negative_variance", _is_variance_negative),
    ("variance_turned", _is_variance_turned),
)


def _list_two_pass_models() -> Iterator[tuple[str, Model]]:
    for least in (0, 1):
        yield (
            "unbiased_variance",
            lambda p, least=least: _compute_wrong(p, divisor=max(p.case.N - 1, least)),
        )
    yield "divisor", lambda p: _divide_by_rows(p, lambda x, mean: (x - mean) ** 2)
    yield "not_divided", lambda p: _compute_wrong(p, divisor=1)
    yield "not_divided", lambda p: _compute_wrong(p, divisor=1, mean_divisor=1)
    for rounded_mean in (True, False):
        yield (
            "std_for_var",
            lambda p, r=rounded_mean: _compute_wrong(p, then=np.sqrt, rounded_mean=r),
        )
    yield (
        "deviation_not_squared",
        lambda p: {**_compute_wrong(p), "var": np.abs(_compute_deviation(p)).mean(axis=1)},
    )
    yield (
        "deviation_not_squared",
        lambda p: {**_compute_wrong(p), "var": _compute_deviation(p).mean(axis=1)},
    )
    for divisor in (lambda N: N, lambda N: N**2):  # the sum is 0 except for roundings
        yield (
            "squared_after_the_sum",
            lambda p, d=divisor: {
                **_compute_wrong(p),
                "var": _compute_deviation(p).sum(axis=1) ** 2 / d(p.case.N),
            },
        )
    yield (
        "mean_not_subtracted",
        lambda p: {**_compute_wrong(p), "var": (p.inputs["x"] ** 2).mean(axis=1)},
    )
    yield "wrong_axis", lambda p: _compute_wrong(p, axis=0)
    yield "wrong_axis", lambda p: _compute_wrong(p, axis=(0, 1))
    yield (
        "wrong_return",
        lambda p: dict(zip(("var", "mean"), _compute_wrong(p).values(), strict=True)),
    )


def _list_one_pass_models() -> Iterator[tuple[str, Model]]:
    # the published WebGPU line
    yield (
        "variance_terms",
        lambda p: _compute_terms(p, lambda total, mean, N: total - mean**2 / N),
    )
    yield "variance_terms", lambda p: _compute_terms(p, lambda total, mean, N: total - mean**2)
    yield (
        "divisor",
        lambda p: _divide_by_rows(
            p, lambda x, mean: x**2, lambda var, mean: np.maximum(var - mean**2, 0)
        ),
    )
    yield "variance_terms", lambda p: _compute_terms(p, lambda total, mean, N: total / N - mean)
    yield (
        "variance_terms",
        lambda p: _compute_terms(p, lambda total, mean, N: total / N - np.abs(mean)),
    )
    yield "variance_terms", lambda p: _compute_terms(p, lambda total, mean, N: total / N)
    yield (
        "variance_terms",
        lambda p: _compute_terms(p, lambda total, mean, N: total / N - (mean * N) ** 2),
    )
    yield (
        "variance_terms",
        lambda p: _compute_terms(p, lambda total, mean, N: total / N - mean**2 * N),
    )
    yield "variance_terms", lambda p: _compute_terms(p, lambda total, mean, N: total / N + mean**2)
    yield "variance_terms", lambda p: _compute_terms(p, lambda total, mean, N: mean**2 - total / N)
    yield (
        "unbiased_variance",
        lambda p: _compute_terms(
            p, lambda total, mean, N: (total / N - mean**2) * N / np.float64(N - 1)
        ),
    )
    yield from _list_two_pass_models()


def _list_welford_models() -> Iterator[tuple[str, Model]]:
    for product in ("old", "new", "old, shared"):
        yield "welford_product", lambda p, product=product: _walk(p, product)
    yield "welford_count", lambda p: _walk(p, count=lambda seen: seen)
    yield "welford_count", lambda p: _walk(p, count=lambda seen: seen + 2)
    yield "welford_count", lambda p: _walk(p, count=lambda seen: p.case.N)
    yield "welford_count", lambda p: _walk(p, count=lambda seen: p.case.M)
    yield "welford_count", lambda p: _walk(p, count=lambda seen: p.case.M + 1)
    yield "welford_count", lambda p: _walk(p, count=lambda seen: max(seen, 1))
    yield "welford_count", lambda p: _walk(p, count=lambda seen: 1)
    for dtype in ("fp16", "bf16"):
        yield "low_precision", lambda p, d=dtype: _walk(p, count=lambda seen: _round(seen + 1, d))
    yield "elements_skipped", lambda p: _walk(p, columns=range(1, p.case.N))
    yield "elements_skipped", lambda p: _walk(p, columns=range(p.case.N - 1))
    for most in FEW:
        yield "elements_skipped", lambda p, most=most: _walk(p, columns=range(min(most, p.case.N)))
    yield (
        "elements_skipped",
        lambda p: _walk(p, columns=range(1, p.case.N), count=lambda seen: seen),
    )
    yield from _list_two_pass_models()


def _round(values, dtype: str) -> np.ndarray:
    return round_to(np.asarray(values, np.float64), dtype).astype(np.float64)


def _compute_wrong(
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
    x = p.inputs["x"].astype(np.float32) if _is_below_zero(p.case) else p.inputs["x"]
    mean = x.mean(axis=1)
    return {"mean": mean, "var": np.maximum(formula((x**2).sum(axis=1), mean, p.case.N), 0)}


def _walk(p: Plan, product: str = "both", count=lambda seen: seen + 1, columns=None) -> Outputs:
    """Run Welford with a mistake: both deviations from one mean, a wrong count, columns left out.
    Divide by N at the end."""
    x = p.inputs["x"]
    mean, M2 = np.zeros(p.case.M), np.zeros(p.case.M)
    for column in range(p.case.N) if columns is None else columns:
        mean, M2 = _take_step(count(column), mean, M2, x[:, column], product)
    return {"mean": mean, "var": M2 / p.case.N}


def _take_step(
    count, mean: np.ndarray, M2: np.ndarray, x: np.ndarray, product: str
) -> tuple[np.ndarray, np.ndarray]:
    old = x - mean
    mean = mean + old / np.float64(count)
    new = x - mean
    products = {
        "both": old * new,
        "old": old * old,
        "new": new * new,
        "old, shared": old * old / np.float64(count),
    }
    return mean, M2 + products[product]


# ---- one pass over a shifted row, and a row that defeats it

SHIFTED = name_cases(
    "shifted_one_pass",
    (
        *_ROWS,
        _BELOW_ZERO,
        make_case("rows apart", 6, 200, 0, "each row has a mean of its own, thousands apart",
            "all rows are shifted by one number", fill="rows apart"),
        make_case("bf16, rows apart", 5, 100, 0, "each row has a mean of its own, thousands apart",
            "the shift is subtracted in bf16", dtype="bf16", fill="rows apart"),
    ),
)  # fmt: skip


def _plan_shifted(case: Case, entry_point: str, rng: np.random.Generator) -> Plan:
    """Plan a case of shifted_one_pass. The variance may have a few roundings of E[d^2], which is
    large where the first element is far out."""
    x = _draw_rows(case, rng)
    x64, want = x.astype(np.float64), _compute_exact(x)
    with np.errstate(invalid="ignore"):
        d = x64 - x64[:, :1]
        mean = _expect(case, want.mean, np.abs(x64[:, 0]) + np.abs(d).mean(axis=1))
        var = _expect(
            case, want.var, bound_two_sweeps(np.abs(x64).mean(axis=1), (d**2).mean(axis=1))
        )
    return _plan_statistics(case, entry_point, x, {"mean": mean, "var": var})


def _list_shifted_models() -> Iterator[tuple[str, Model]]:
    yield (
        "shift_left_in",
        lambda p: _compute_wrong(p) | {"mean": _compute_wrong(p)["mean"] - p.inputs["x"][:, 0]},
    )
    yield (
        "shift_left_in",
        lambda p: _compute_wrong(p) | {"mean": _compute_wrong(p)["mean"] + p.inputs["x"][:, 0]},
    )
    yield (
        "shift_left_in",
        lambda p: _compute_wrong(p) | {"mean": 2 * p.inputs["x"][:, 0] - _compute_wrong(p)["mean"]},
    )
    yield "shift_left_in", lambda p: _compute_wrong(p) | {"mean": p.inputs["x"][:, 0]}
    for cause, model in _list_one_pass_models():
        yield cause, lambda p, model=model: _shift(p, model)


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


# ---- one step of Welford

UPDATE = name_cases(
    "welford_update",
    (
        Case("first number", 6, 1, 0, "count = 0: the first number of all",
            "the mean is divided by a count of 0", mean=3.0, vector=True),
        Case("second number", 6, 2, 0, "count = 1", "M2 is the square of one distance", mean=3.0,
            vector=True),
        Case("tenth number", 6, 10, 0, "count = 9", "the count before the new number divides",
            mean=-1.0, vector=True),
        Case("500th number", 4, 500, 0, "count = 499, mean/std = 100", "M2 is computed from E[x^2]",
            mean=100.0, vector=True),
        Case("far away", 5, 8, 0, "count = 7, the new number far from the others",
            "both distances are from one mean", std=100.0, vector=True),
        Case("same as the mean", 4, 5, 0,
            "count = 4, the new number is the mean: neither of the two changes",
            "M2 grows, though the number is the mean", mean=2.5, fill="at the mean", vector=True),
    ),
)  # fmt: skip


def _plan_update(case: Case, entry_point: str, rng: np.random.Generator) -> Plan:
    mean, M2, x = _choose_state(case) if case.by_hand else _draw_state(case, rng)
    inputs = {
        name: values.astype(np.float64) for name, values in (("mean", mean), ("M2", M2), ("x", x))
    }
    new_mean, new_M2 = _take_step(case.N, inputs["mean"], inputs["M2"], inputs["x"], "both")
    old = np.abs(inputs["x"] - inputs["mean"])
    expected = {
        "new mean": make_expected(new_mean, np.abs(inputs["mean"]) + old, "fp32"),
        "new M2": make_expected(
            new_M2,
            inputs["M2"] + old * (old + np.abs(inputs["mean"]) + np.abs(inputs["x"])),
            "fp32",
        ),
    }
    tensors = (
        *(
            Tensor(name, "fp32", (case.M,), (1,), values)
            for name, values in (("mean", mean), ("M2", M2), ("x", x))
        ),
        *(Tensor(name, "fp32", (case.M,), (1,)) for name in expected),
    )
    arguments = (case.N - 1, "mean", "M2", "x")
    return Plan(case, entry_point, (), tensors, arguments, {}, expected, inputs=inputs)


def _draw_state(case: Case, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw mean and M2 of N - 1 numbers, and the next number x."""
    seen = round_to(case.mean + rng.normal(size=(case.M, case.N - 1)), "fp32").astype(np.float64)
    mean = round_to(seen.mean(axis=1) if case.N > 1 else np.zeros(case.M), "fp32")
    M2 = round_to(
        (
            ((seen - seen.mean(axis=1, keepdims=True)) ** 2).sum(axis=1)
            if case.N > 1
            else np.zeros(case.M)
        ),
        "fp32",
    )
    x = (
        mean
        if case.fill == "at the mean"
        else round_to(case.mean + case.std * rng.normal(size=case.M), "fp32")
    )
    return mean, M2, x


def _choose_state(case: Case) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Choose as :func:`_draw_state`, in whole numbers; with 2 or 4 numbers the new mean is whole,
    too."""
    mean, M2 = np.resize([2, 5], case.M) * (case.N > 1), np.resize([6, 8], case.M) * (case.N > 2)
    x = mean if case.fill == "at the mean" else np.resize([6, 1], case.M)
    return round_to(mean, "fp32"), round_to(M2, "fp32"), round_to(x, "fp32")


def _list_update_models() -> Iterator[tuple[str, Model]]:
    for product in ("old", "new", "old, shared"):
        yield "welford_product", lambda p, product=product: _take_wrong_step(p, 0, product)
    for off in (-1, 1):
        yield "welford_count", lambda p, off=off: _take_wrong_step(p, off)
    yield (
        "wrong_return",
        lambda p: dict(zip(("new M2", "new mean"), _take_wrong_step(p, 0).values(), strict=True)),
    )


def _take_wrong_step(p: Plan, off: int, product: str = "both") -> Outputs:
    mean, M2 = _take_step(p.case.N + off, p.inputs["mean"], p.inputs["M2"], p.inputs["x"], product)
    return {"new mean": mean, "new M2": M2}


# ---- Chan's merge

_SIX = ("n_a", "mean_a", "M2_a", "n_b", "mean_b", "M2_b")
MERGE = (
    Case("two halves", 1, 9, 0, "as many numbers on either side",
        "M2s are added up without the distance of the means", vector=True),
    Case("one and one", 1, 9, 0, "single numbers: both M2 are 0",
        "the distance is left out where both M2 are 0", fill="one and one", vector=True),
    Case("many and one", 1, 9, 0, "a thousand numbers and one, far from them",
        "the means are averaged without their counts", mean=50.0, fill="many and one", vector=True),
    Case("one and many", 1, 9, 0, "one number and a thousand, far from it",
        "the share of b stands for that of a", mean=50.0, fill="one and many", vector=True),
    Case("unequal", 1, 40, 0, "counts from 1 to 5000", "the counts are taken to be equal", mean=2.0,
        fill="unequal", vector=True),
    Case("far apart", 1, 12, 0, "means thousands apart, little spread on either side",
        "the distance is not squared, or has a wrong factor", mean=5000.0, std=0.1, fill="unequal",
        vector=True),
    Case("mean 10000", 1, 12, 0, "means near 10000 and near each other",
        "the mean is the quotient of two large sums", mean=1e4, fill="common", vector=True),
    Case("a empty", 1, 7, 0, "n_a = 0", "n_a = 0 divides", mean=3.0, fill="a empty", vector=True),
    Case("b empty", 1, 7, 0, "n_b = 0", "n_b = 0 divides", mean=3.0, fill="b empty", vector=True),
    Case("some empty", 1, 16, 0, "some sides are empty, some merges on both: each merge is its own",
        "one empty side decides for all elements", mean=3.0, fill="a first, some empty",
        vector=True),
    Case("some empty, the first b alone", 1, 16, 0, "the first a is empty, and others are not",
        "the first element decides for all", mean=3.0, fill="b first, some empty", vector=True),
    Case("both empty", 1, 4, 0, "n_a = n_b = 0", "0 is divided by 0", fill="both empty",
        vector=True),
    Case("a million", 1, 5, 0, "counts near 2^20: their product does not fit fp32's 24 bits",
        "the product of the counts is computed in fp32 before it is divided", mean=1.0,
        fill="millions", vector=True),
    Case("a NaN", 1, 6, 0, "element 1 holds a NaN, which must stay there",
        "a NaN is replaced by a number, or reaches other elements", mean=1.0, fill="nan",
        vector=True),
)  # fmt: skip
_COUNTS = {
    "normal": (64, 64), "one and one": (1, 1), "many and one": (1000, 1), "one and many": (1, 1000),
    "common": (300, 500),
    "a empty": (0, 20), "b empty": (20, 0), "both empty": (0, 0),
    "millions": (2**20 + 1, 2**20 - 3), "nan": (8, 8),
}  # fmt: skip


def _plan_merge(case: Case, entry_point: str, rng: np.random.Generator) -> Plan:
    K = case.N
    counts, means, squares = _choose_partials(case) if case.by_hand else _draw_partials(case, rng)
    given = dict(
        zip(_SIX, (counts[0], means[0], squares[0], counts[1], means[1], squares[1]), strict=True)
    )
    given = {name: round_to(values, "fp32") for name, values in given.items()}
    inputs = {name: values.astype(np.float64) for name, values in given.items()}
    n_a, mean_a, M2_a, n_b, mean_b, M2_b = (inputs[name] for name in _SIX)
    n, mean, M2 = _merge_partials(*inputs.values()).values()
    share, difference = n_b / np.maximum(n, 1), np.abs(mean_b - mean_a)
    # A merge has few roundings, but the bound is for sums of thousands of numbers. With an empty
    # side there is nothing to add.
    few = np.where((n_a == 0) | (n_b == 0), 1 / 32, 1 / 8)
    expected = {
        "n": Expected(n, half_ulp(n, "fp32")),
        "mean": make_expected(
            mean,
            few * (np.abs(mean_a) * (1 - share) + np.abs(mean_b) * share + difference * share),
            "fp32",
        ),
        "M2": make_expected(
            M2,
            few
            * (
                M2_a
                + M2_b
                + 3 * n_a * share * difference * (difference + np.abs(mean_a) + np.abs(mean_b))
            ),
            "fp32",
        ),
    }
    tensors = (
        *(Tensor(name, "fp32", (K,), (1,), values) for name, values in given.items()),
        *(Tensor(o, "fp32", (K,), (1,)) for o in expected),
    )
    return Plan(case, entry_point, (), tensors, _SIX, {}, expected, inputs=inputs)


def _draw_partials(
    case: Case, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw counts, means and M2s of a and b, (2, N) each."""
    K = case.N
    counts = (
        rng.integers(1, 5000, size=(2, K))
        if case.fill == "unequal"
        else np.repeat(np.array(_COUNTS.get(case.fill, (1, 1)))[:, None], K, axis=1)
    )
    # other cases have both sides, or neither
    if case.fill in ("a first, some empty", "b first, some empty"):
        counts = np.stack(
            [np.resize([5, 20, 0, 0, 7, 1, 0, 1], K), np.resize([0, 30, 9, 0, 7, 4, 1, 0], K)]
        )
        counts = counts[::-1] if case.fill.startswith("b") else counts
    middle = (
        case.mean if case.fill == "common" else case.mean * rng.choice([-1.0, 1.0], size=(2, K))
    )
    means = np.where(counts > 0, middle + rng.normal(size=(2, K)), 0.0)
    squares = np.where(counts > 1, case.std**2 * counts * rng.uniform(0.5, 2.0, size=(2, K)), 0.0)
    if case.fill == "nan":
        means[1, 1] = np.nan
    return counts, means, squares


def _choose_partials(case: Case) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Choose as :func:`_draw_partials`, in whole numbers that merge to whole numbers."""
    counts, means, squares = (
        np.stack([np.resize(side, case.N) for side in sides])
        for sides in (((2, 3), (6, 1)), ((6, 1), (2, 5)), ((8, 2), (10, 0)))
    )
    for side, name in enumerate("ab"):
        if case.fill in (f"{name} empty", "both empty"):
            counts[side] = means[side] = squares[side] = 0
    return counts, means, squares


def _list_merge_models() -> Iterator[tuple[str, Model]]:
    yield (
        "merge_between",
        lambda p: _merge_partials(*p.inputs.values(), between=lambda d, a, b, n: 0 * d),
    )
    yield (
        "merge_between",
        lambda p: _merge_partials(*p.inputs.values(), between=lambda d, a, b, n: d * a * b / n),
    )
    yield (
        "merge_between",
        lambda p: _merge_partials(*p.inputs.values(), between=lambda d, a, b, n: d**2 * a * b),
    )
    yield (
        "merge_between",
        lambda p: _merge_partials(*p.inputs.values(), between=lambda d, a, b, n: d**2 / n),
    )
    yield (
        "merge_between",
        lambda p: _merge_partials(*p.inputs.values(), between=lambda d, a, b, n: d**2),
    )
    yield (
        "merge_between",
        lambda p: _merge_partials(
            *p.inputs.values(), between=lambda d, a, b, n: -(d**2) * a * b / n
        ),
    )
    yield (
        "merge_between",
        lambda p: _merge_partials(
            *p.inputs.values(), between=lambda d, a, b, n: d**2 * a * b / n**2
        ),
    )
    yield (
        "merge_between",
        lambda p: _merge_partials(*p.inputs.values(), between=lambda d, a, b, n: d**2 * b / n),
    )
    yield (
        "merge_direction",
        lambda p: _merge_partials(*p.inputs.values(), share=lambda a, b, n: -b / n),
    )
    # before the weights: a nearly right weight does not explain an error in M2 alone
    for between in (
        lambda d, a, b, n: d**2 * a / n, lambda d, a, b, n: d**2 * (a + b) / n, lambda d, a, b,
        n: np.abs(d) * a * b / n,
        lambda d, a, b, n: d**2 * a * b / (a + b + 1), lambda d, a, b, n: d**2 * b * b / n,
        lambda d, a, b, n: d**2 * a * a / n,
    ):  # fmt: skip
        yield (
            "merge_between",
            lambda p, between=between: _merge_partials(*p.inputs.values(), between=between),
        )
    for share in (
        lambda a, b, n: a / n, lambda a, b, n: 0.5, lambda a, b, n: b / (n + 1),
        lambda a, b, n: b / np.maximum(n - 1, 1), lambda a, b, n: b / (n + 1e-5), lambda a, b,
        n: b / (n + 1e-6),
    ):  # fmt: skip
        yield (
            "merge_weights",
            lambda p, share=share: _merge_partials(*p.inputs.values(), share=share),
        )
        # the term that the distance adds to M2 is computed from the wrong share, too
        for side in (0, 1):
            yield (
                "merge_weights",
                lambda p, s=share, i=side: _merge_partials(
                    *p.inputs.values(),
                    share=s,
                    between=lambda d, a, b, n: d**2 * (b if i else a) * s(a, b, n),
                ),
            )
    yield (
        "merge_weights",
        lambda p: _merge_partials(*p.inputs.values(), share=lambda a, b, n: b / np.maximum(n, 2)),
    )
    for dtype in ("fp16", "bf16"):
        for half in (
            lambda a, b, n, d: b / _round(n, d),
            lambda a, b, n, d: _round(b, d) / n,
            lambda a, b, n, d: _round(b / n, d),
        ):
            yield (
                "low_precision",
                lambda p, d=dtype, h=half: _merge_partials(
                    *p.inputs.values(),
                    share=lambda a, b, n: h(a, b, n, d),
                    between=lambda diff, a, b, n: diff**2 * a * h(a, b, n, d),
                ),
            )
    yield "M2_not_a_sum", lambda p: _change_M2(p, lambda M2, n, a, M2_a, b, M2_b: M2 / n)
    yield (
        "M2_not_a_sum",
        lambda p: _change_M2(
            p, lambda M2, n, a, M2_a, b, M2_b: M2 - M2_a - M2_b + (a * M2_a + b * M2_b) / n
        ),
    )
    yield (
        "M2_not_a_sum",
        lambda p: _change_M2(p, lambda M2, n, a, M2_a, b, M2_b: (a * M2_a + b * M2_b) / n),
    )
    for order in permutations(("n", "mean", "M2")):
        if order != ("n", "mean", "M2"):
            yield (
                "wrong_return",
                lambda p, o=order: dict(
                    zip(o, _merge_partials(*p.inputs.values()).values(), strict=True)
                ),
            )
    yield "merge_weights", lambda p: _merge_partials(*p.inputs.values(), share=lambda a, b, n: b)
    yield (
        "merge_weights",
        lambda p: _merge_partials(*p.inputs.values(), share=lambda a, b, n: b / np.maximum(a, 1)),
    )


def _swallows_nan(p: Plan, outputs: Outputs) -> bool:
    """Return True if a number came back where the NaN of this case belongs."""
    return p.case.fill == "nan" and any(
        (np.isnan(p.expected[name].values) & np.isfinite(values)).any()
        for name, values in outputs.items()
    )


def _change_M2(p: Plan, change) -> Outputs:
    right = _merge_partials(*p.inputs.values())
    n_a, _mean_a, M2_a, n_b, _mean_b, M2_b = p.inputs.values()
    return right | {"M2": change(right["M2"], np.maximum(right["n"], 1), n_a, M2_a, n_b, M2_b)}


def _merge_partials(
    n_a,
    mean_a,
    M2_a,
    n_b,
    mean_b,
    M2_b,
    *,
    share=lambda a, b, n: b / n,
    between=lambda d, a, b, n: d**2 * a * b / n,
) -> Outputs:
    n, difference = n_a + n_b, mean_b - mean_a
    some = np.maximum(n, 1)
    return {
        "n": n,
        "mean": mean_a + difference * share(n_a, n_b, some),
        "M2": M2_a + M2_b + between(difference, n_a, n_b, some),
    }


# ---- many partial statistics

MERGE_ALL = name_cases(
    "merge_all",
    (
        Case("1024 groups", 1, 1024, 0, "a tree of ten levels",
            "the groups are merged one after the other", mean=2.0, fill="unequal", vector=True),
        Case("one group", 1, 1, 0, "K = 1: nothing to merge",
            "a single group has no partner and is lost", mean=3.0, vector=True),
        Case("two groups", 1, 2, 0, "K = 2: one call", "a tree has one level more than it needs",
            mean=1.0, fill="unequal", vector=True),
        Case("three groups", 1, 3, 0, "K = 3: one group has no partner",
            "the group without a partner is left out", mean=1.0, fill="unequal", vector=True),
        Case("seven groups", 1, 7, 0, "K = 7: a group without a partner at two levels",
            "K is taken to be even", mean=1.0, fill="unequal", vector=True),
        Case("1000 groups", 1, 1000, 0, "K is no power of two", "K is taken to be a power of two",
            mean=-1.0, fill="unequal", vector=True),
        Case("1025 groups", 1, 1025, 0, "one group more than a power of two",
            "the last group is left out, or costs too many calls", mean=1.0, fill="unequal",
            vector=True),
        Case("single numbers", 1, 300, 0,
            "every M2 is 0: all of the variance lies between the groups", "M2s are added up alone",
            mean=2.0, fill="one and one", vector=True),
        Case("far apart", 1, 60, 0, "means thousands apart, little spread in each group",
            "means are averaged without their counts", mean=5000.0, std=0.1, fill="unequal",
            vector=True),
        Case("mean 10000", 1, 200, 0, "means near 10000 and near each other",
            "M2 comes from the difference of two large sums", mean=1e4, fill="common", vector=True),
        Case("some empty", 1, 40, 0, "some groups are empty",
            "an empty group counts, or divides by 0", mean=3.0, fill="a first, some empty",
            vector=True),
        Case("all empty", 1, 6, 0, "every n is 0", "0 is divided by 0", fill="both empty",
            vector=True),
        Case("a NaN", 1, 9, 0, "one mean is NaN", "a NaN is replaced by a number", mean=1.0,
            fill="nan", vector=True),
    ),
)  # fmt: skip


def _plan_merge_all(case: Case, entry_point: str, rng: np.random.Generator) -> Plan:
    groups = dict(
        zip(
            ("n", "mean", "M2"),
            (
                part[0]
                for part in (_choose_partials(case) if case.by_hand else _draw_partials(case, rng))
            ),
            strict=True,
        )
    )
    if case.fill == "nan":
        groups["mean"] = np.where(np.arange(case.N) == 1, np.nan, groups["mean"])
    given = {name: round_to(values, "fp32") for name, values in groups.items()}
    inputs = {name: values.astype(np.float64) for name, values in given.items()}
    n, mean, M2 = _merge_groups(**inputs).values()
    some = np.maximum(n, 1)
    size = (inputs["n"] * np.abs(inputs["mean"])).sum() / some
    expected = {
        "n": Expected(n, half_ulp(n, "fp32")),
        "mean": make_expected(mean, size, "fp32"),
        "M2": make_expected(M2, some * bound_welford(size, M2 / some), "fp32"),
    }
    tensors = (
        *(
            Tensor(f"{name}_given", "fp32", (case.N,), (1,), values)
            for name, values in given.items()
        ),
        *(Tensor(name, "fp32", (), ()) for name in expected),
    )
    most = (case.N - 1).bit_length()
    return Plan(
        case,
        entry_point,
        (),
        tensors,
        tuple(tensor.name for tensor in tensors[:3]),
        {},
        expected,
        inputs=inputs,
        calls={"merge": (0, most)},
    )


def _merge_groups(n: np.ndarray, mean: np.ndarray, M2: np.ndarray) -> Outputs:
    """Return the statistics of all groups together, as numbers in arrays without dimensions."""
    total = n.sum()
    together = np.asarray((n * mean).sum() / np.maximum(total, 1))
    return {
        "n": np.asarray(total),
        "mean": together,
        "M2": np.asarray((M2 + n * (mean - together) ** 2).sum()),
    }


def _list_merge_all_models() -> Iterator[tuple[str, Model]]:
    lost: tuple[Callable[[int], slice | list[int]], ...] = (
        lambda K: slice(1), lambda K: slice(2), lambda K: slice(K // 2 * 2), lambda K: slice(K - 1),
        lambda K: slice(1, None),
        lambda K: slice(1 << K.bit_length() - 1), lambda K: [0, K // 2][:K],
    )  # fmt: skip
    for keep in lost:
        yield (
            "groups_left_out",
            lambda p, keep=keep: _merge_groups(
                *(part[keep(p.case.N)] for part in p.inputs.values())
            ),
        )
    yield "groups_left_out", _drop_odd_groups
    yield (
        "merge_between",
        lambda p: _merge_groups(**p.inputs) | {"M2": np.asarray(p.inputs["M2"].sum())},
    )
    yield (
        "merge_weights",
        lambda p: _merge_groups(**p.inputs) | {"mean": np.asarray(p.inputs["mean"].mean())},
    )
    for order in permutations(("n", "mean", "M2")):
        if order != ("n", "mean", "M2"):
            yield (
                "wrong_return",
                lambda p, o=order: dict(zip(o, _merge_groups(**p.inputs).values(), strict=True)),
            )


def _drop_odd_groups(p: Plan) -> Outputs:
    """Return the result if the group without a partner is dropped at every level."""
    kept = np.arange(p.case.N)
    while len(kept) > 1:
        half = len(kept) // 2
        if len(kept) % 2:
            kept = kept[:-1]
        if half == 1:
            break
        p = replace(p, inputs=_merge_halves({name: part[kept] for name, part in p.inputs.items()}))
        kept = np.arange(half)
    return _merge_groups(*(part[kept] for part in p.inputs.values()))


def _merge_halves(groups: Outputs) -> Outputs:
    half = len(groups["n"]) // 2
    return _merge_partials(
        *(part[:half] for part in groups.values()), *(part[half:] for part in groups.values())
    )


_LOST_PARTIALS: tuple[tuple[str, Symptom], ...] = (
    ("empty_partial", lambda p, outputs: p.case.fill.endswith("empty")),
    ("bad_row_swallowed", _swallows_nan),
)
MERGE_TWO = Part(MERGE, _plan_merge, _list_merge_models, rare=_LOST_PARTIALS)

PARTS = {
    "one_pass": Part(ONE_PASS, _plan_one_pass, _list_one_pass_models, rare=_BELOW_ZERO_CAUSES),
    "two_pass": Part(
        TWO_PASS, partial(_plan_bounded, terms=bound_two_sweeps), _list_two_pass_models
    ),
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
    "welford_update": Part(UPDATE, _plan_update, _list_update_models),
    "welford": Part(
        WELFORD, partial(_plan_bounded, terms=bound_welford, inf_for_nan=True), _list_welford_models
    ),
    "merge": MERGE_TWO,
    "merge_all": Part(
        MERGE_ALL,
        _plan_merge_all,
        _list_merge_all_models,
        rare=_LOST_PARTIALS,
    ),
}
