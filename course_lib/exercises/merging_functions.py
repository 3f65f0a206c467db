"""What Chan's merge of two partial statistics and of many share: cases, the plan and wrong
formulas."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import permutations

import numpy as np

from course_lib.exercises.expectations import half_ulp, make_expected
from course_lib.exercises.tensors import round_values
from course_lib.exercises.wrong_formulas import vary
from course_lib.grading.cases.buffers import Tensor, round_to
from course_lib.grading.cases.case import Case
from course_lib.grading.cases.plan import Expected, Model, Outputs, Part, Plan, Symptom

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
