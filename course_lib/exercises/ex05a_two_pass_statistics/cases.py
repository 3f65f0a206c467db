"""Mean and variance in two passes (05a): its cases and wrong formulas."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product

import numpy as np

from course_lib.exercises.expectations import bound_two_sweeps
from course_lib.exercises.statistics_kernels import (
    COMMON_CASES,
    compute_deviation,
    compute_sums,
    list_finish_models,
    plan_statistics,
    save_statistics,
    save_two_sweeps,
)
from course_lib.exercises.tensors import round_values
from course_lib.exercises.wrong_formulas import (
    PADDING,
    STEPS,
    SWEEPS,
    WRONG_STEPS,
    add_up_columns,
    add_up_in_every_lane,
    add_up_lanes,
    add_up_largest_lane,
    list_divisor_models,
    list_sweep_models,
    square_lanes,
    vary,
)
from course_lib.grading.cases.plan import Model, Outputs, Part, Plan

CASES = COMMON_CASES


def _list_two_pass_models() -> Iterator[tuple[str, Model]]:
    yield from list_finish_models()
    yield from vary(save_two_sweeps, "padding_in_variance", padding=[True], step=STEPS)
    yield from list_divisor_models(save_two_sweeps)
    for sweeps, padding, (cause, columns) in product(
        ("both", "mean", "variance"), (False, True), WRONG_STEPS
    ):
        yield (
            cause,
            partial(save_two_sweeps, sweeps=sweeps, add=add_up_columns(columns), padding=padding),
        )
    yield from vary(save_two_sweeps, "mask_missing", other=PADDING, padding=[False, True])
    yield "padding_in_variance", _leave_rounded_mean_in_padding
    yield from list_sweep_models(save_two_sweeps)
    yield from vary(_leave_first_out, "shift_left_in", of_mean=[True, False], of_var=[True, False])
    yield (
        "squared_after_the_sum",
        lambda p: save_two_sweeps(p, measure=partial(square_lanes, p.case.block)),
    )
    yield (
        "accumulator_reused",
        lambda p: _save_var(p, compute_sums(p)[1] / p.case.N + compute_sums(p)[0]),
    )
    yield from vary(_subtract_lane_means, "lanes_apart", by=["N", "lane"])
    yield from vary(save_two_sweeps, "max_for_sum", sweeps=SWEEPS, add=[add_up_largest_lane])
    yield from vary(
        save_two_sweeps, "counted_by_every_lane", sweeps=SWEEPS, add=[add_up_in_every_lane]
    )
    yield (
        "deviation_not_squared",
        lambda p: _save_var(p, np.abs(compute_deviation(p)).mean(axis=1) ** 2),
    )
    yield from vary(save_two_sweeps, "mean_not_subtracted", measure=[lambda x, mean: x**2])
    yield from vary(
        save_two_sweeps,
        "deviation_not_squared",
        measure=[lambda x, mean: np.abs(x - mean), lambda x, mean: 0 * x],
    )
    yield "variance_terms", lambda p: _save_var(p, _subtract_mean_from_squares(p))
    yield "variance_terms", lambda p: _save_var(p, -_subtract_mean_from_squares(p))


def _leave_first_out(p: Plan, of_mean: bool, of_var: bool) -> Outputs:
    """Return the statistics if the sum is that of the distances from the first element, and this
    element is not added to the mean that is saved, or that the second sweep subtracts."""
    x = p.inputs["x"]
    mean, first = x.mean(axis=1), x[:, 0]
    subtracted = mean - first * of_var
    return save_statistics(mean - first * of_mean, ((x - subtracted[:, None]) ** 2).mean(axis=1))


def _save_var(p: Plan, var: np.ndarray) -> Outputs:
    """Return the right mean beside this variance."""
    return save_statistics(p.inputs["x"].mean(axis=1), var)


def _subtract_mean_from_squares(p: Plan) -> np.ndarray:
    """Return what is left of the one-pass formula if the mean is not squared."""
    x = p.inputs["x"]
    return (x**2).mean(axis=1) - x.mean(axis=1)


def _subtract_lane_means(p: Plan, by: str) -> Outputs:
    """Return the statistics if each lane subtracts its own sum, divided by N or by its own count,
    instead of the row's mean."""
    x, N, block = p.inputs["x"], p.case.N, p.case.block
    lanes = add_up_lanes(x, block) / (
        N if by == "N" else np.maximum(add_up_lanes(np.ones((1, N)), block), 1)
    )
    deviation = x - lanes[:, np.arange(N) % block]
    return _save_var(p, (deviation**2).mean(axis=1))


def _leave_rounded_mean_in_padding(p: Plan) -> Outputs:
    """Return the statistics if padded lanes are loaded with other=mean, which is rounded to the
    dtype of x."""
    mean, M2 = compute_sums(p)
    rounded = round_values(mean.astype(np.float32), p.tensor("x").dtype)
    return save_statistics(mean, (M2 + p.case.padded_lanes * (rounded - mean) ** 2) / p.case.N)


PARTS = {
    "two_pass_kernel": Part(
        CASES, partial(plan_statistics, terms=bound_two_sweeps, sweeps=2), _list_two_pass_models
    )
}
