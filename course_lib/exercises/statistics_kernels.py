"""What the kernels for mean and variance of streamed rows share: cases, the plan and wrong
formulas."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from course_lib.exercises.batteries import list_far_out, make_case
from course_lib.exercises.expectations import make_expected
from course_lib.exercises.tensors import draw_matrix, place_matrix, place_statistic, round_values
from course_lib.exercises.wrong_formulas import (
    PADDING,
    WRONG_COLUMNS,
    Partials,
    add_between,
    add_nothing,
    find_divisor,
    list_from_first,
    list_merge_models,
    list_stream_models,
    merge_halves,
    square_what_is_not_0,
    stream_blocks,
    sweep_twice,
    vary,
)
from course_lib.grading.cases.case import Case
from course_lib.grading.cases.plan import Model, Outputs, Plan

COMMON_CASES = (
    make_case("worked example", 3, 8, 4, "the 3 x 8 worked example, two full blocks"),
    make_case("padded, mean 3", 5, 17, 8, "7 padded lanes, mean 3",
        "a padded lane counts, or adds (0 - mean)^2"),
    make_case("one short block", 3, 7, 16, "N below BLOCK: 9 lanes never see an element, mean -2",
        "lanes that never see an element are merged"),
    make_case("one full block", 3, 16, 16),
    make_case("some lanes empty", 3, 5, 8,
        "N = 5 in 8 lanes: an empty lane always meets one that has seen an element",
        "the merge of an empty lane divides by 0", mean=-2.0),
    make_case("one column", 2, 1, 16,
        "N = 1: the variance is 0, and 15 lanes never see an element"),
    make_case("one row", 1, 129, 128, "M = 1, one column in the second block"),
    make_case("many rows", 1200, 3, 16),
    make_case("16400 columns", 1, 16400, 256),
    make_case("bf16, mostly padding", 3, 9, 64, "55 padded lanes, mean 3",
        "counts or means are kept in bf16", dtype="bf16", mean=3.0, std=0.25),
    make_case("many blocks", 2, 1000, 64),
    make_case("unequal lanes", 3, 9, 8, "lane 0 sees two elements, the others one",
        "lanes are merged as if their counts were equal", mean=1.0, std=2.0),
    make_case("small spread", 3, 100, 32, "std 0.001 around 0", "eps is added to the variance",
        std=0.001, eps=1e-05, mean=0.0),
    make_case("constant row", 2, 40, 16, "the variance is 0, the mean is not",
        "M2 grows by roundings of the mean", mean=100.5, eps=1e-05),
    make_case("mean 1000", 8, 768, 256),
    make_case("mean 10000", 8, 255, 64),
    *list_far_out(3001, 512),
    make_case("fp16", 3, 129, 64, "half precision, mean 3"),
    make_case("fp16, std 100", 2, 2500, 1024),
    make_case("fp16, mean 8", 2, 1025, 512, "sums need more than fp16's 11 bits"),
    make_case("bf16", 3, 127, 32, "bfloat16, mean 3"),
    make_case("sliced", 4, 50, 16, "x is a slice of a wider matrix: rows are farther apart than N"),
    make_case("a NaN row", 4, 19, 8),
    make_case("an Inf row", 4, 19, 8),
    make_case("far rows", 4, 17, 16),
    *list_far_out(3001, 4096, ", one block"),
)  # fmt: skip
WELFORD_CASES = (
    *COMMON_CASES,
    make_case("mostly empty", 2, 5, 256,
        "N = 5 in 256 lanes: empty lanes merge with empty lanes, for many levels",
        "the merge of two empty lanes divides by 0", mean=4.0),
    make_case("bf16, 300 steps", 1, 1200, 4,
        "a lane counts to 300: bf16 holds whole numbers up to 256", "a lane counts in bf16",
        dtype="bf16", mean=1.0),
    make_case("fp16, 2100 steps", 1, 8400, 4,
        "a lane counts to 2100, and its last element lies far out: fp16 holds whole numbers up to "
        "2048", "a lane counts in fp16", dtype="fp16", mean=1.0, fill="last far out"),
    make_case("drifting lanes", 3, 200, 64,
        "the mean of each lane differs from the mean of the row",
        "M2 of the lanes is added up without the distance of their means", std=3.0, mean=-1.0,
        fill="drifting"),
)  # fmt: skip


def plan_statistics(
    case: Case,
    kernel: str,
    rng: np.random.Generator,
    terms: Callable[[np.ndarray, np.ndarray], np.ndarray],
    sweeps: int,
) -> Plan:
    x = draw_matrix(case, rng)
    # a wave whose period is the block, so that all elements of a lane are alike
    if case.fill == "drifting":
        x = (x + 8 * np.sin(2 * np.pi * np.arange(case.N) / case.block)).astype(x.dtype)
    tensors = (
        place_matrix("x", case, x, spare=3),
        place_statistic("mean", case),
        place_statistic("var", case),
    )
    arguments = (*(t.name for t in tensors), tensors[0].strides[0], case.N)
    x64 = x.astype(np.float64)
    with np.errstate(invalid="ignore"):
        mean = x64.mean(axis=1)
        var = ((x64 - mean[:, None]) ** 2).mean(axis=1)
        size = np.abs(x64).mean(axis=1)
        # right algorithms differ here: the mean of one is Inf, that of another NaN
        infinite = case.fill == "inf row"
        expected = {
            "mean": make_expected(mean, size, "fp32", infinite=infinite),
            "var": make_expected(var, terms(size, var), "fp32", infinite=infinite),
        }
    return Plan(
        case, kernel, (case.M,), tensors, arguments, {"BLOCK": case.block}, expected,
        inputs={"x": x64}, reads={"x": sweeps},
        spread={"x": case.M, "mean": case.M},
    )  # fmt: skip


# ---- wrong formulas of both


def save_statistics(mean: np.ndarray, var: np.ndarray) -> Outputs:
    return {"mean": mean, "var": var}


def save_two_sweeps(p: Plan, **changes: Any) -> Outputs:
    """Return the statistics of two sweeps with these mistakes; see :func:`sweep_twice`."""
    mean, var = sweep_twice(p, **changes)
    return save_statistics(mean[:, 0], var[:, 0])


def _list_finishes() -> Iterator[tuple[str, Callable[[Plan, np.ndarray, np.ndarray], Outputs]]]:
    """Yield causes with functions of (plan, right mean, right M2) that save something wrong."""

    def save(cause: str, *wrong_vars: Callable) -> Iterator:
        for var in wrong_vars:
            yield cause, lambda p, mean, M2, var=var: save_statistics(mean, var(M2, p))

    yield from save(
        "unbiased_variance",
        lambda M2, p: M2 / np.float64(p.case.N - 1),
        lambda M2, p: M2 / np.float64(max(p.case.N - 1, 1)),
    )
    yield "zeros_left_out", lambda p, mean, M2: _take_what_is_not_0(p)
    yield (
        "zeros_left_out",
        lambda p, mean, M2: save_statistics(
            mean, square_what_is_not_0(p.inputs["x"], mean[:, None]).sum(axis=1) / p.case.N
        ),
    )
    yield from save("not_divided", lambda M2, p: M2)
    yield "not_divided", lambda p, mean, M2: save_statistics(mean * p.case.N, M2 / p.case.N)
    yield from save(
        "divisor",
        lambda M2, p: M2 / find_divisor(p, "BLOCK"),
        lambda M2, p: M2 / find_divisor(p, "lanes"),
        lambda M2, p: M2 / (p.case.N + 1),
    )
    yield from save("std_for_var", lambda M2, p: np.sqrt(M2 / p.case.N))
    for eps in (0.0, 1e-5, 1e-6, 1e-8, 1e-12):
        yield from save("rstd_for_var", lambda M2, p, eps=eps: 1 / np.sqrt(M2 / p.case.N + eps))
    yield "outputs_swapped", lambda p, mean, M2: save_statistics(M2 / p.case.N, mean)


def list_finish_models() -> Iterator[tuple[str, Model]]:
    for cause, finish in _list_finishes():
        yield cause, lambda p, finish=finish: finish(p, *compute_sums(p))


def _take_what_is_not_0(p: Plan) -> Outputs:
    """Return the statistics of the elements that are not 0."""
    x = p.inputs["x"]
    count = np.maximum((x != 0).sum(axis=1), 1)
    mean = x.sum(axis=1) / count
    return save_statistics(mean, square_what_is_not_0(x, mean[:, None]).sum(axis=1) / count)


def compute_deviation(p: Plan) -> np.ndarray:
    return p.inputs["x"] - p.inputs["x"].mean(axis=1, keepdims=True)


def compute_sums(p: Plan) -> tuple[np.ndarray, np.ndarray]:
    """Return the right mean and M2."""
    return p.inputs["x"].mean(axis=1), (compute_deviation(p) ** 2).sum(axis=1)


# ---- wrong formulas of Welford


def list_welford_models() -> Iterator[tuple[str, Model]]:
    yield from list_finish_models()
    yield from list_merged_models()


def list_merged_models() -> Iterator[tuple[str, Model]]:
    """Yield the wrong formulas of statistics that are merged, of lanes or of blocks."""
    models = list(_list_lane_models())
    yield from models
    yield from list_from_first(models)
    yield from list_stream_models(_stream_blocks)


def _list_lane_models() -> Iterator[tuple[str, Model]]:
    yield from list_merge_models(_merge_lanes)
    for counts, moves, squares, by_count in product((False, True), repeat=4):
        if (counts or moves) and squares <= moves:
            lanes = partial(
                run_lanes, padding_counts=counts, padding_moves=moves, padding_squares=squares
            )
            yield (
                "mask_missing" if moves else "lane_counts",
                partial(_merge_lanes, lanes=lanes, by_count=by_count),
            )
    yield from vary(_merge_wrong_lanes, "padding_in_variance", padding_in_M2=[True])
    yield from vary(
        _merge_lanes,
        "merge_weights",
        lanes=[_count_equally, _count_one_each],
        between=[add_between, add_nothing],
        by_count=[False, True],
    )
    yield "merge_weights", lambda p: _average_lane_means(p, p.case.block)
    yield "merge_weights", lambda p: _average_lane_means(p, min(p.case.block, p.case.N))
    yield from vary(_merge_wrong_lanes, "welford_product", which=["old", "new", "old, shared"])
    yield from vary(_merge_wrong_lanes, "welford_count", count=_WRONG_COUNTS)
    for by_count in (False, True):
        yield "block_not_accumulated", partial(_merge_lanes, lanes=_begin_anew, by_count=by_count)
        for cause, columns in WRONG_COLUMNS:
            yield (
                cause,
                partial(_merge_lanes, lanes=partial(run_lanes, columns=columns), by_count=by_count),
            )
    yield from vary(
        _count_in_half,
        "low_precision",
        dtype=["fp16", "bf16"],
        of_lane=[False, True],
        by_count=[False, True],
    )
    yield "low_precision", lambda p: _count_in_half(p, p.tensor("x").dtype, True, False)
    yield from vary(_merge_wrong_lanes, "zeros_left_out", skip_zeros=[True])
    yield from vary(_merge_lanes, "empty_lane", lanes=[_spoil_empty_lanes])
    yield from vary(_merge_lanes, "empty_partial", least=[0])
    yield from vary(
        _merge_wrong_lanes,
        "mask_missing",
        padding_moves=[True],
        other=PADDING,
        padding_counts=[True, False],
    )


def _stream_blocks(p: Plan, **changes: Any) -> Outputs:
    mean, var = stream_blocks(p, **changes)
    return save_statistics(mean[:, 0], var[:, 0])


def _merge_wrong_lanes(p: Plan, **changes: Any) -> Outputs:
    """Return a right merge of lanes that have run with these changes."""
    return _merge_lanes(p, lanes=partial(run_lanes, **changes))


# the divisor of a new element's deviation; arguments: the number of elements that the lane has
# seen, and the plan
_WRONG_COUNTS = (
    lambda k, p: k - 1, lambda k, p: k + 1, lambda k, p: p.case.N, lambda k, p: p.case.block,
    lambda k, p: 1,
    lambda k, p: -(-p.case.N // p.case.block),
)  # fmt: skip


def run_lanes(
    p: Plan,
    which: str = "both",
    count: Callable = lambda k, p: k,
    padding_counts: bool = False,
    padding_moves: bool = False,
    padding_squares: bool = True,
    padding_in_M2: bool = False,
    other: float = 0.0,
    columns: Callable[[Case], slice | np.ndarray] | None = None,
    round_count: Callable[[np.ndarray], np.ndarray] | None = None,
    skip_zeros: bool = False,
) -> Partials:
    """Return count, mean and M2 of every lane, (M, BLOCK) each, by Welford with a mistake.

    The mistake is in the product, the count, the padding (which may change the mean alone, or M2
    alone), or the columns.
    """
    x, block = p.inputs["x"], p.case.block
    x = x if columns is None else x[:, columns(p.case)]
    M, N = x.shape
    # The shape is (steps, M, BLOCK). A case may have thousands of steps, so the loop over them does
    # only what depends on the previous step.
    blocks = (
        np.concatenate([x, np.full((M, -N % block), other)], axis=1)
        .reshape(M, -1, block)
        .swapaxes(0, 1)
    )
    inside = (np.arange(N + -N % block) < N).reshape(-1, 1, block) & (
        (blocks != 0) | (not skip_zeros)
    )
    counts = _count_steps(inside | padding_counts, round_count)
    divisors = np.broadcast_to(np.maximum(count(counts[1:], p), 1.0), blocks.shape)
    moves = inside | padding_moves
    means = np.zeros((len(blocks) + 1, M, block))
    for k, (here, move, divisor) in enumerate(zip(blocks, moves, divisors, strict=True)):
        means[k + 1] = means[k] + np.where(move, here - means[k], 0.0) / divisor
    old = np.where(moves | padding_in_M2, blocks - means[:-1], 0.0)
    new = blocks - means[1:]
    squares = {
        "both": old * new,
        "old": old * old,
        "new": new * new,
        "old, shared": old * old / divisors,
    }[which]
    takes_part = inside | padding_in_M2 | (padding_moves & padding_squares)
    M2 = np.where(takes_part, squares, 0.0).sum(axis=0)
    return counts[-1], means[-1], M2


def _count_steps(
    taken: np.ndarray, round_count: Callable[[np.ndarray], np.ndarray] | None
) -> np.ndarray:
    """Return the count of every lane before the first step and after each one, rounded in every
    step if ``round_count`` is given."""
    counts = np.zeros((len(taken) + 1, *taken.shape[1:]))
    if round_count is None:
        np.cumsum(taken, axis=0, out=counts[1:])
        return counts
    for k, here in enumerate(taken):
        counts[k + 1] = round_count(counts[k] + here)
    return counts


def _average_lane_means(p: Plan, lanes: int) -> Outputs:
    """Return the right variance, and a mean in which all lanes have the same weight."""
    means = run_lanes(p)[1]
    return save_statistics(means.sum(axis=1) / lanes, compute_sums(p)[1] / p.case.N)


def _count_equally(p: Plan) -> Partials:
    n, mean, M2 = run_lanes(p)
    return np.full_like(n, -(-p.case.N // p.case.block)), mean, M2


def _count_one_each(p: Plan) -> Partials:
    n, mean, M2 = run_lanes(p)
    return np.ones_like(n), mean, M2


def _begin_anew(p: Plan) -> Partials:
    """Return the partials of lanes that are reset before every block."""
    x, block = p.inputs["x"], p.case.block
    last = x[:, (x.shape[1] - 1) // block * block :]
    empty = np.zeros((x.shape[0], block - last.shape[1]))
    return (
        np.concatenate([np.ones_like(last), empty], axis=1),
        np.concatenate([last, empty], axis=1),
        np.zeros((x.shape[0], block)),
    )


def _merge_lanes(
    p: Plan, *, lanes: Callable[[Plan], Partials] = run_lanes, share: Callable = lambda a, b,
    n: b / n, between: Callable = add_between,
    by_count: bool = False, least: int = 1,
    round_count: Callable[[np.ndarray], np.ndarray] = lambda n: n,
) -> Outputs:  # fmt: skip
    """Merge the lanes by :func:`merge_halves`, whose arguments it takes."""
    n, mean, M2 = merge_halves(lanes(p), share, between, least, round_count)
    return save_statistics(mean[:, 0], M2[:, 0] / (n[:, 0] if by_count else p.case.N))


def _count_in_half(p: Plan, dtype: str, of_lane: bool, by_count: bool) -> Outputs:
    """Return the statistics with counts rounded to a dtype: in each step of a lane, or in every
    merge."""

    def round_count(n: np.ndarray) -> np.ndarray:
        return round_values(n, dtype)

    if of_lane:
        return _merge_lanes(p, lanes=partial(run_lanes, round_count=round_count), by_count=by_count)
    return _merge_lanes(p, round_count=round_count, by_count=by_count)


def _spoil_empty_lanes(p: Plan) -> Partials:
    """Return the partials with NaN as the mean of a lane without elements: it has divided by its
    count, 0."""
    n, mean, M2 = run_lanes(p)
    return n, np.where(n > 0, mean, np.nan), M2
