"""Welford in the lanes, without a merge (05c): its cases and wrong formulas."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from course_lib.exercises.expectations import bound_welford
from course_lib.exercises.statistics_kernels import (
    WELFORD_CASES,
    list_welford_models,
    plan_statistics,
    run_lanes,
    save_statistics,
    save_two_sweeps,
)
from course_lib.exercises.wrong_formulas import Partials, list_divisor_models
from course_lib.grading.cases.plan import Model, Outputs, Part, Plan


def _list_sums_models() -> Iterator[tuple[str, Model]]:
    padded = partial(run_lanes, padding_counts=True)
    spoilt = partial(run_lanes, padding_counts=True, padding_moves=True)
    yield "merge_between", lambda p: _add_up_lanes(p, counts=lambda n, p: 0 * n)
    yield "merge_between", lambda p: _add_up_lanes(p, counts=lambda n, p: np.ones_like(n))
    for counts in (lambda n, p: n, lambda n, p: padded(p)[0]):
        yield (
            "lane_counts",
            lambda p, counts=counts: _add_up_lanes(
                p, weights=lambda n, p: padded(p)[0], counts=counts
            ),
        )
    yield "lane_counts", lambda p: _add_up_lanes(p, counts=lambda n, p: padded(p)[0])
    for off in (0, 1):
        yield "lane_counts", partial(_count_lanes_wrong, off=off, by_lane=True)
    yield "lane_counts", partial(_count_lanes_wrong, off=0, by_lane=False)
    for lanes in (lambda p: p.case.block, lambda p: min(p.case.block, p.case.N)):
        yield (
            "merge_weights",
            lambda p, lanes=lanes: _add_up_lanes(
                p, weights=lambda n, p: np.full_like(n, p.case.N / lanes(p))
            ),
        )
    # A row's mean with a wrong divisor is in each distance of M2, as in two passes.
    yield from list_divisor_models(save_two_sweeps)
    yield "mask_missing", lambda p: _add_up_lanes(p, lanes=spoilt)
    yield from list_welford_models()


def _count_lanes_wrong(p: Plan, off: int, by_lane: bool) -> Outputs:
    """Return the statistics if a lane counts (N - lane) // BLOCK + ``off``, or N // BLOCK in each
    lane."""
    lanes = np.arange(p.case.block) if by_lane else np.zeros(p.case.block, int)
    counts = (p.case.N - lanes) // p.case.block + off
    return _add_up_lanes(p, weights=lambda n, p: counts, counts=lambda n, p: counts)


def _add_up_lanes(
    p: Plan,
    weights: Callable = lambda n, p: n,
    counts: Callable = lambda n, p: n,
    lanes: Callable[[Plan], Partials] = run_lanes,
) -> Outputs:
    """Return the statistics by two sums over the lanes, with wrong ``weights`` of their means or
    ``counts`` of their distances."""
    n, (_, mean, M2) = run_lanes(p)[0], lanes(p)
    row_mean = (weights(n, p) * mean).sum(axis=1, keepdims=True) / p.case.N
    return save_statistics(
        row_mean[:, 0], (M2 + counts(n, p) * (mean - row_mean) ** 2).sum(axis=1) / p.case.N
    )


PARTS = {
    "welford_sums_kernel": Part(
        WELFORD_CASES, partial(plan_statistics, terms=bound_welford, sweeps=1), _list_sums_models
    )
}
