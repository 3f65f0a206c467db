"""What the kernels share that merge the statistics of a row's chunks: wrong formulas."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from course_lib.exercises.tensors import round_values
from course_lib.exercises.wrong_formulas import (
    FEW,
    FIXED_EPS,
    WRONG_ROOTS,
    change_inputs,
    inverse_root,
    list_merge_models,
    list_scaled_eps_models,
    merge_halves,
    merge_one_by_one,
    vary,
)
from course_lib.grading.cases.case import Case
from course_lib.grading.cases.plan import Model, Outputs, Plan


@dataclass(frozen=True)
class MergeCase(Case):
    """Rows of N columns in chunks of ``block``, which the kernel knows by their statistics alone.

    ``fill`` may also be "steps" (every chunk has a mean of its own, far from the others) or "flat"
    (every M2 is 0). In the layout "sliced" there are NaN between the rows of means and of M2s.
    ``spare``: the kernel has this many times the lanes that the chunks need.
    """

    block_name: str = "length"
    spare: int = 1

    @property
    def chunks(self) -> int:
        return -(-self.N // self.block)

    @property
    def lanes(self) -> int:
        return self.spare << (self.chunks - 1).bit_length()

    @property
    def empty_lanes(self) -> int:
        """The number of lanes without a chunk; ``padded_lanes`` are the columns that the last chunk
        lacks."""
        return self.lanes - self.chunks


def count_columns(case: MergeCase) -> np.ndarray:
    """Return the columns of each chunk, (chunks,)."""
    return np.minimum(case.N - np.arange(case.chunks) * case.block, case.block)


# ---- wrong formulas


def merge_chunks(
    p: Plan[MergeCase], *, lanes: str = "right", weigh: Callable | None = None, N: str = "N",
    mean: Callable | None = None,
    within: Callable = lambda M2, c, N: M2, between: Callable = lambda d, c, N: d**2 * c,
    divisor: str = "N",
    root: Callable = inverse_root, eps: float | None = None,
    chunks: Callable[[MergeCase], slice] = lambda case: slice(None),
    means_by: Callable = np.sum, M2_by: Callable = np.sum,
) -> Outputs:  # fmt: skip
    """Return the merge with something wrong in it.

    ``lanes``: how many columns a lane counts, by name (:func:`_count_in_lanes`). ``weigh``: the
    weights of the means, from the counts. ``N`` names what the weighed sum is divided by,
    ``divisor`` what M2 is (:func:`_find_divisor`). ``mean``: what the distances are measured from,
    of (p, means, counts). ``chunks``: those that take part. ``means_by`` and ``M2_by`` stand for
    the sums over the lanes.
    """
    case, chosen = p.case, chunks(p.case)
    spare = np.zeros((case.M, case.empty_lanes))
    means, M2s = (
        np.concatenate([p.inputs[name][:, chosen], spare], axis=1) for name in ("means", "M2s")
    )
    counts = _count_in_lanes(case, lanes)
    counts = np.concatenate([counts[: case.chunks][chosen], counts[case.chunks :]])
    weights = counts if weigh is None else weigh(counts)
    row_mean = means_by(means * weights, axis=1) / _find_divisor(case, N, counts)
    centre = row_mean if mean is None else mean(p, means, counts)
    distance = means - centre[:, None]
    if lanes in ("right", "full"):
        distance = np.where(counts > 0, distance, 0.0)
    squares = M2_by(within(M2s, counts, case.N) + between(distance, counts, case.N), axis=1)
    var = squares / _find_divisor(case, divisor, counts)
    return {"mean": row_mean, "rstd": root(var, case.eps if eps is None else eps)}


def _count_in_lanes(case: MergeCase, which: str) -> np.ndarray:
    """Return how many columns each lane counts. An empty lane, which lies past the last chunk,
    holds zeros."""
    # columns from the lane's first one to the end of the row
    left = case.N - np.arange(case.lanes) * case.block
    return {
        "right": np.clip(left, 0, case.block),
        "full": np.where(np.arange(case.lanes) < case.chunks, case.block, 0),
        # the remainder is 0 where the last chunk is full
        "last by remainder": np.where(
            np.arange(case.lanes) == case.chunks - 1,
            case.N % case.block,
            np.clip(left, 0, case.block),
        ),
        "full, empty too": np.full(case.lanes, case.block),
        "negative": np.minimum(left, case.block),  # the count of an empty lane is negative or 0
    }[which].astype(np.float64)


def _find_divisor(case: MergeCase, which: str, counts: np.ndarray) -> np.float64:
    """Return the number by which a sum is divided."""
    return np.float64(
        {
            "N": case.N, "N-1": case.N - 1, "N-1 or 1": max(case.N - 1, 1), "1": 1,
            "columns of all chunks": case.chunks * case.block,
            "columns of these chunks": counts.sum(), "chunks": case.chunks, "lanes": case.lanes,
            "block": case.block,
            "columns of all lanes": case.lanes * case.block,
        }[which]
    )  # fmt: skip


def _take_one(counts: np.ndarray) -> np.ndarray:
    return (counts > 0).astype(np.float64)


_BETWEEN = (
    lambda d, c, N: 0 * d, lambda d, c, N: -(d**2) * c, lambda d, c, N: d**2, lambda d, c,
    N: np.abs(d) * c, lambda d, c, N: d * c,
    lambda d, c, N: d**2 * c * c, lambda d, c, N: d**2 * c * c / N, lambda d, c, N: d**2 * c / N,
    lambda d, c, N: d**2 * N,
    lambda d, c, N: d**2 / np.maximum(c, 1), lambda d, c, N: 2 * d**2 * c, lambda d, c,
    N: d**2 * (N - c), lambda d, c, N: d**2 * c * (N - c) / N,
    lambda d, c, N: (d * c) ** 2 / N,
)  # fmt: skip
_CENTRES = (
    lambda p, means, counts: 0 * means[:, 0],
    lambda p, means, counts: means[:, 0],
    lambda p, means, counts: means @ _take_one(counts) / _take_one(counts).sum(),
    lambda p, means, counts: means.sum(axis=1) / len(counts),
)


def _find_mean(p: Plan[MergeCase], means: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the right mean, whatever mean is saved."""
    return p.inputs["means"] @ p.inputs["counts"] / p.case.N


_WITHIN = (
    lambda M2, c, N: M2 * c, lambda M2, c, N: M2 * c / N, lambda M2, c, N: M2 / np.maximum(c, 1),
    lambda M2, c, N: M2 / N,
    lambda M2, c, N: M2**2, lambda M2, c, N: M2 * np.maximum(c - 1, 0),
)  # fmt: skip
_WRONG_COUNTS = (
    ("full", "short_chunk"),
    ("last by remainder", "short_chunk"),
    ("full, empty too", "empty_chunk"),
    ("negative", "empty_chunk"),
)
_SOME_CHUNKS = (
    lambda c: slice(0, c.N // c.block), lambda c: slice(0, -1), lambda c: slice(1, None),
    lambda c: slice(0, 1),
    # as if the last one had N % length columns
    lambda c: slice(0, c.chunks - (c.N % c.block == 0)),
    *(lambda c, most=most: slice(0, most) for most in FEW),
)  # fmt: skip


def list_models() -> Iterator[tuple[str, Model]]:
    models = list(_list_merges())
    yield from models
    # the first mean is subtracted from the others, and added again
    yield from (
        (cause, partial(_count_from_first, model))
        for cause, model in models
        if cause in ("short_chunk", "empty_chunk", "chunk_left_out", "merge_weights")
    )


def _count_from_first(model: Model, p: Plan[MergeCase]) -> Outputs:
    first = p.inputs["means"][:, 0]
    out = model(change_inputs(p, means=p.inputs["means"] - first[:, None]))
    return out | {"mean": out["mean"] + first}


def _list_merges() -> Iterator[tuple[str, Model]]:
    yield from vary(merge_chunks, "merge_between", between=_BETWEEN)
    yield from vary(merge_chunks, "merge_between", mean=_CENTRES)
    yield from vary(_merge_in_turn, "merge_between", after_the_move=[True])
    yield from list_merge_models(_merge_in_turn)
    yield from list_merge_models(_merge_pairs)
    yield from vary(merge_chunks, "M2s_left_out", within=[lambda M2, c, N: 0 * M2])
    yield from vary(merge_chunks, "M2_not_a_sum", within=_WITHIN)
    for number in ("chunks", "lanes"):
        average = partial(merge_chunks, weigh=_take_one, N=number)
        between = [lambda d, c, N: d**2 * c, lambda d, c, N: d**2, lambda d, c, N: 0 * d]
        # the distances have the weight of a chunk among chunks, too
        between += [
            lambda d, c, N: d**2 * N / np.count_nonzero(c),
            lambda d, c, N: d**2 * N / len(c),
        ]
        yield from vary(average, "merge_weights", between=between)
        yield from vary(average, "merge_weights", mean=[_find_mean])
    yield from vary(_round_counts, "low_precision", dtype=["fp16", "bf16"])
    for divisor in ("N", "columns of all chunks"):
        yield (
            "short_chunk",
            lambda p, d=divisor: merge_chunks(p, weigh=lambda c: _fill_up(p, c), N=d),
        )
    yield from vary(merge_chunks, "short_chunk", N=["columns of all chunks"])
    yield "short_chunk", lambda p: merge_chunks(p, between=lambda d, c, N: d**2 * _fill_up(p, c))
    for lanes, cause in _WRONG_COUNTS:
        yield from _list_count_models(lanes, cause)
    yield from vary(
        merge_chunks, "chunk_left_out", chunks=_SOME_CHUNKS, N=["N", "columns of these chunks"]
    )
    for number in ("chunks", "lanes", "block", "columns of all lanes"):
        yield from vary(merge_chunks, "divisor", N=["N"], divisor=[number])
        yield from vary(merge_chunks, "divisor", N=[number], divisor=["N", number])
    yield from vary(merge_chunks, "unbiased_variance", divisor=["N-1", "N-1 or 1"])
    yield from vary(merge_chunks, "not_divided", divisor=["1"])
    yield from vary(merge_chunks, "not_divided", N=["1"], mean=[_find_mean, None])
    yield from _list_root_models()
    right = ("mean", "rstd")
    yield (
        "outputs_swapped",
        lambda p: dict(zip(right, reversed(merge_chunks(p).values()), strict=True)),
    )
    yield (
        "same_row",
        lambda p: {
            name: np.broadcast_to(values[:1], values.shape)
            for name, values in merge_chunks(p).items()
        },
    )
    for means_by, M2_by in ((np.max, np.sum), (np.sum, np.max), (np.max, np.max)):
        yield "max_for_sum", partial(merge_chunks, means_by=means_by, M2_by=M2_by)


def _merge_in_turn(p: Plan[MergeCase], **of_merge: Any) -> Outputs:
    counts, means, M2s = (p.inputs[name] for name in ("counts", "means", "M2s"))
    mean, M2 = merge_one_by_one(zip(counts, means.T, M2s.T, strict=True), **of_merge)
    return {"mean": mean, "rstd": inverse_root(M2 / p.case.N, p.case.eps)}


def _merge_pairs(p: Plan[MergeCase], **of_merge: Any) -> Outputs:
    spare = np.zeros((p.case.M, p.case.empty_lanes))
    counts = np.broadcast_to(p.inputs["counts"], p.inputs["means"].shape)
    counts, means, M2s = (
        np.concatenate([part, spare], axis=1)
        for part in (counts, p.inputs["means"], p.inputs["M2s"])
    )
    _counts, mean, M2 = merge_halves((counts, means, M2s), **of_merge)
    return {"mean": mean[:, 0], "rstd": inverse_root(M2[:, 0] / p.case.N, p.case.eps)}


def _round_counts(p: Plan[MergeCase], dtype: str) -> Outputs:
    return merge_chunks(
        p,
        weigh=lambda c: round_values(c, dtype),
        between=lambda d, c, N: d**2 * round_values(c, dtype),
    )


def _fill_up(p: Plan[MergeCase], counts: np.ndarray) -> np.ndarray:
    """Return the counts with a full chunk for a short one."""
    return (counts > 0) * float(p.case.block)


def _list_count_models(lanes: str, cause: str) -> Iterator[tuple[str, Model]]:
    """Yield merges with wrong counts in both sums, or in one of them beside a right one."""
    wrong = partial(merge_chunks, lanes=lanes)
    for divisor in ("N", "columns of all chunks"):
        yield from vary(wrong, cause, N=[divisor], divisor=[divisor], mean=[None, _find_mean])
        yield from vary(wrong, cause, N=[divisor])
    yield cause, lambda p: {"mean": wrong(p)["mean"], "rstd": merge_chunks(p)["rstd"]}
    yield cause, partial(wrong, root=lambda v, eps: inverse_root(np.maximum(v, 0.0), eps))
    yield (
        cause,
        lambda p: {"mean": merge_chunks(p)["mean"], "rstd": wrong(p, mean=_find_mean)["rstd"]},
    )


def _list_root_models() -> Iterator[tuple[str, Model]]:
    yield from vary(merge_chunks, "eps_missing", eps=[0.0])
    for cause, root in WRONG_ROOTS:
        # The words of "reciprocal_missing" are about y, which this kernel does not write.
        yield (
            "wrong_statistic_saved" if cause == "reciprocal_missing" else cause,
            partial(merge_chunks, root=root),
        )
    yield from vary(
        merge_chunks, "wrong_statistic_saved", root=[lambda v, eps: v, lambda v, eps: np.sqrt(v)]
    )
    yield from vary(merge_chunks, "eps_hard_coded", eps=FIXED_EPS)
    yield from list_scaled_eps_models(merge_chunks, in_blocks=False)
