"""Welford's algorithm (04a): its cases and wrong formulas."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from course_lib.exercises.batteries import name_cases
from course_lib.exercises.expectations import bound_welford, make_expected
from course_lib.exercises.statistics_functions import (
    BELOW_ZERO_CASES,
    ROW_CASES,
    list_two_pass_models,
    plan_bounded,
)
from course_lib.exercises.tensors import round_values
from course_lib.exercises.wrong_formulas import FEW
from course_lib.grading.cases.buffers import Tensor, round_to
from course_lib.grading.cases.case import Case
from course_lib.grading.cases.plan import Model, Outputs, Part, Plan

WELFORD = name_cases("welford", (*ROW_CASES, BELOW_ZERO_CASES))


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
        yield (
            "low_precision",
            lambda p, d=dtype: _walk(p, count=lambda seen: round_values(seen + 1, d)),
        )
    yield "elements_skipped", lambda p: _walk(p, columns=range(1, p.case.N))
    yield "elements_skipped", lambda p: _walk(p, columns=range(p.case.N - 1))
    for most in FEW:
        yield "elements_skipped", lambda p, most=most: _walk(p, columns=range(min(most, p.case.N)))
    yield (
        "elements_skipped",
        lambda p: _walk(p, columns=range(1, p.case.N), count=lambda seen: seen),
    )
    yield from list_two_pass_models()


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
    seen = round_values(case.mean + rng.normal(size=(case.M, case.N - 1)), "fp32")
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


PARTS = {
    "welford_update": Part(UPDATE, _plan_update, _list_update_models),
    "welford": Part(
        WELFORD, partial(plan_bounded, terms=bound_welford, inf_for_nan=True), _list_welford_models
    ),
}
