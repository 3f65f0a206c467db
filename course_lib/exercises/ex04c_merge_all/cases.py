"""A tree of merges (04c): its cases and wrong formulas."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import permutations

import numpy as np

from course_lib.exercises.batteries import name_cases
from course_lib.exercises.expectations import bound_welford, half_ulp, make_expected
from course_lib.exercises.merging_functions import (
    LOST_PARTIALS,
    MERGE_TWO,
    choose_partials,
    draw_partials,
    merge_partials,
)
from course_lib.grading.cases.buffers import Tensor, round_to
from course_lib.grading.cases.case import Case
from course_lib.grading.cases.plan import Expected, Model, Outputs, Part, Plan

CASES = name_cases(
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
                for part in (choose_partials(case) if case.by_hand else draw_partials(case, rng))
            ),
            strict=True,
        )
    )
    if case.fill == "nan":
        groups["mean"] = np.where(np.arange(case.N) == 1, np.nan, groups["mean"])
    rounded = {name: round_to(values, "fp32") for name, values in groups.items()}
    inputs = {name: values.astype(np.float64) for name, values in rounded.items()}
    n, mean, M2 = _merge_groups(**inputs).values()
    count = np.maximum(n, 1)
    size = (inputs["n"] * np.abs(inputs["mean"])).sum() / count
    expected = {
        "n": Expected(n, half_ulp(n, "fp32")),
        "mean": make_expected(mean, size, "fp32"),
        "M2": make_expected(M2, count * bound_welford(size, M2 / count), "fp32"),
    }
    tensors = (
        *(
            Tensor(f"{name}_given", "fp32", (case.N,), (1,), values)
            for name, values in rounded.items()
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
    remaining = np.arange(p.case.N)
    while len(remaining) > 1:
        half = len(remaining) // 2
        if len(remaining) % 2:
            remaining = remaining[:-1]
        if half == 1:
            break
        p = replace(
            p, inputs=_merge_halves({name: part[remaining] for name, part in p.inputs.items()})
        )
        remaining = np.arange(half)
    return _merge_groups(*(part[remaining] for part in p.inputs.values()))


def _merge_halves(groups: Outputs) -> Outputs:
    half = len(groups["n"]) // 2
    return merge_partials(
        *(part[:half] for part in groups.values()), *(part[half:] for part in groups.values())
    )


PARTS = {
    "merge": MERGE_TWO,
    "merge_all": Part(CASES, _plan_merge_all, _list_merge_all_models, rare=LOST_PARTIALS),
}
