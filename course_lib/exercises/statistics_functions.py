"""Mean and variance in NumPy, by one pass, two passes, Welford and Chan's merge: inputs that tell
them apart, wrong formulas."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import permutations

import numpy as np

from course_lib.exercises.batteries import list_far_out, make_case
from course_lib.exercises.expectations import half_ulp, make_expected
from course_lib.exercises.tensors import choose_strides, draw_matrix, round_values
from course_lib.exercises.wrong_formulas import vary
from course_lib.grading.cases.buffers import Tensor, round_to
from course_lib.grading.cases.case import Case
from course_lib.grading.cases.plan import Expected, Model, Outputs, Part, Plan, Symptom
from course_lib.norms import statistics

# ---- one pass, two passes, Welford

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
    counts, means, squares = choose_partials(case) if case.by_hand else draw_partials(case, rng)
    drawn = (counts[0], means[0], squares[0], counts[1], means[1], squares[1])
    rounded = {name: round_to(part, "fp32") for name, part in zip(_SIX, drawn, strict=True)}
    inputs = {name: values.astype(np.float64) for name, values in rounded.items()}
    n_a, mean_a, M2_a, n_b, mean_b, M2_b = (inputs[name] for name in _SIX)
    n, mean, M2 = merge_partials(*inputs.values()).values()
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
        *(Tensor(name, "fp32", (K,), (1,), values) for name, values in rounded.items()),
        *(Tensor(o, "fp32", (K,), (1,)) for o in expected),
    )
    return Plan(case, entry_point, (), tensors, _SIX, {}, expected, inputs=inputs)


def draw_partials(
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


def choose_partials(case: Case) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Choose as :func:`draw_partials`, in whole numbers that merge to whole numbers."""
    counts, means, squares = (
        np.stack([np.resize(side, case.N) for side in sides])
        for sides in (((2, 3), (6, 1)), ((6, 1), (2, 5)), ((8, 2), (10, 0)))
    )
    for side, name in enumerate("ab"):
        if case.fill in (f"{name} empty", "both empty"):
            counts[side] = means[side] = squares[side] = 0
    return counts, means, squares


def _list_merge_models() -> Iterator[tuple[str, Model]]:
    yield from vary(
        _merge_inputs,
        "merge_between",
        between=[
            lambda d, a, b, n: 0 * d,
            lambda d, a, b, n: d * a * b / n,
            lambda d, a, b, n: d**2 * a * b,
            lambda d, a, b, n: d**2 / n,
            lambda d, a, b, n: d**2,
            lambda d, a, b, n: -(d**2) * a * b / n,
            lambda d, a, b, n: d**2 * a * b / n**2,
            lambda d, a, b, n: d**2 * b / n,
        ],
    )
    yield from vary(_merge_inputs, "merge_direction", share=[lambda a, b, n: -b / n])
    # before the weights: a nearly right weight does not explain an error in M2 alone
    yield from vary(
        _merge_inputs,
        "merge_between",
        between=[
            lambda d, a, b, n: d**2 * a / n,
            lambda d, a, b, n: d**2 * (a + b) / n,
            lambda d, a, b, n: np.abs(d) * a * b / n,
            lambda d, a, b, n: d**2 * a * b / (a + b + 1),
            lambda d, a, b, n: d**2 * b * b / n,
            lambda d, a, b, n: d**2 * a * a / n,
        ],
    )
    for share in (
        lambda a, b, n: a / n,
        lambda a, b, n: 0.5,
        lambda a, b, n: b / (n + 1),
        lambda a, b, n: b / np.maximum(n - 1, 1),
        lambda a, b, n: b / (n + 1e-5),
        lambda a, b, n: b / (n + 1e-6),
    ):
        yield "merge_weights", partial(_merge_inputs, share=share)
        # the term that the distance adds to M2 is computed from the wrong share, too
        for between in (
            lambda d, a, b, n, share=share: d**2 * a * share(a, b, n),
            lambda d, a, b, n, share=share: d**2 * b * share(a, b, n),
        ):
            yield "merge_weights", partial(_merge_inputs, share=share, between=between)
    yield from vary(_merge_inputs, "merge_weights", share=[lambda a, b, n: b / np.maximum(n, 2)])
    for dtype in ("fp16", "bf16"):
        for share in (
            lambda a, b, n, dtype=dtype: b / round_values(n, dtype),
            lambda a, b, n, dtype=dtype: round_values(b, dtype) / n,
            lambda a, b, n, dtype=dtype: round_values(b / n, dtype),
        ):
            between = lambda d, a, b, n, share=share: d**2 * a * share(a, b, n)  # noqa: E731
            yield "low_precision", partial(_merge_inputs, share=share, between=between)
    yield from vary(
        _change_M2,
        "M2_not_a_sum",
        change=[
            lambda M2, n, a, M2_a, b, M2_b: M2 / n,
            lambda M2, n, a, M2_a, b, M2_b: M2 - M2_a - M2_b + (a * M2_a + b * M2_b) / n,
            lambda M2, n, a, M2_a, b, M2_b: (a * M2_a + b * M2_b) / n,
        ],
    )
    for order in permutations(("n", "mean", "M2")):
        if order != ("n", "mean", "M2"):
            yield (
                "wrong_return",
                lambda p, order=order: dict(zip(order, _merge_inputs(p).values(), strict=True)),
            )
    yield from vary(
        _merge_inputs,
        "merge_weights",
        share=[lambda a, b, n: b, lambda a, b, n: b / np.maximum(a, 1)],
    )


def _merge_inputs(p: Plan, **changes: Callable) -> Outputs:
    return merge_partials(*p.inputs.values(), **changes)


def _swallows_nan(p: Plan, outputs: Outputs) -> bool:
    """Return True if a number came back where the NaN of this case belongs."""
    return p.case.fill == "nan" and any(
        (np.isnan(p.expected[name].values) & np.isfinite(values)).any()
        for name, values in outputs.items()
    )


def _change_M2(p: Plan, change) -> Outputs:
    right = merge_partials(*p.inputs.values())
    n_a, _mean_a, M2_a, n_b, _mean_b, M2_b = p.inputs.values()
    return right | {"M2": change(right["M2"], np.maximum(right["n"], 1), n_a, M2_a, n_b, M2_b)}


def merge_partials(
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
    divisor = np.maximum(n, 1)
    return {
        "n": n,
        "mean": mean_a + difference * share(n_a, n_b, divisor),
        "M2": M2_a + M2_b + between(difference, n_a, n_b, divisor),
    }


LOST_PARTIALS: tuple[tuple[str, Symptom], ...] = (
    ("empty_partial", lambda p, outputs: p.case.fill.endswith("empty")),
    ("bad_row_swallowed", _swallows_nan),
)
MERGE_TWO = Part(MERGE, _plan_merge, _list_merge_models, rare=LOST_PARTIALS)
