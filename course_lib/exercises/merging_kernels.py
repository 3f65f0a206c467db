"""Mean and rstd of rows from the statistics of their chunks, which are given, or which the programs
of a row tell one another: inputs that find the bugs of such kernels, and wrong formulas."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from course_lib.exercises import by_hand
from course_lib.exercises.batteries import make_case
from course_lib.exercises.making import (
    FEW,
    FIXED_EPS,
    WORKED_EXAMPLE,
    WRONG_ROOTS,
    bound_welford,
    draw_matrix,
    inverse_root,
    make_expected,
    place_matrix,
    place_statistic,
    vary,
)
from course_lib.grading.cases.buffers import Tensor, compute_strides, round_to, size_guard
from course_lib.grading.cases.case import Case
from course_lib.grading.cases.plan import Expected, Model, Outputs, Part, Plan
from course_lib.grading.judging import tolerance


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


_case = partial(make_case, of=MergeCase)
MERGE = (
    _case("worked example", 3, 8, 4, "the 3 x 8 worked example, two full chunks"),
    _case("short last chunk", 5, 19, 8, "chunks of 8, 8 and 3 columns, mean 3",
        "the last chunk counts as a full one", mean=3.0),
    _case("one column left", 1, 129, 128, "M = 1, a full chunk and one of a single column",
        "a chunk's count is taken for more than 1", mean=1.0),
    _case("one short chunk", 3, 7, 16, "N below length: there is nothing to merge",
        "length is taken for the count of a single chunk", mean=-2.0),
    _case("one full chunk", 3, 16, 16, "N equals length", "a merge of one chunk changes it",
        mean=1.0),
    _case("one chunk, 16 lanes", 3, 11, 16, "15 lanes without a chunk",
        "lanes without a chunk count", mean=2.0, spare=16),
    _case("full chunks", 3, 64, 16, "four full chunks in four lanes",
        "the distance of the means is left out of M2", mean=1.5, std=2.0),
    _case("three full chunks", 4, 48, 16, "one lane without a chunk",
        "a lane without a chunk counts as a full one", mean=-2.0, std=0.5),
    _case("many lanes", 3, 40, 16, "chunks of 16, 16 and 8 columns in 64 lanes",
        "two lanes without a chunk divide 0 by 0", mean=2.0, spare=16),
    _case("many chunks", 2, 1100, 16, "69 chunks, the last one of 12 columns",
        "only the first chunks are merged", mean=3.0),
    _case("one column and no chunk", 3, 17, 8, "chunks of 8, 8 and 1 columns in four lanes",
        "the count of the last chunk goes wrong beside an empty lane", mean=2.0),
    _case("3001 columns left", 2, 11193, 4096,
        "a last chunk of 3001 columns: fp16 does not hold 3001", "counts are kept in fp16",
        fill="steps"),
    _case("many rows", 150, 21, 8),
    _case("flat chunks", 3, 22, 4, "every M2 is 0: all of the variance lies between the chunks",
        "M2s are added up alone", mean=1.0, fill="flat"),
    _case("one column", 2, 1, 8, "N = 1: the variance is 0", "the variance is divided by N - 1",
        spare=4),
    _case("steps", 3, 150, 32, "every chunk has a mean of its own, far from the others'",
        "means are averaged in the wrong weights", std=0.1, fill="steps"),
    _case("places between rows", 4, 37, 8, "behind each row lie places that nobody has written",
        "the chunks are taken for the row stride", mean=2.0, layout="sliced"),
    _case("a million columns", 2, 1_000_003, 16384, "62 chunks: a count times a count passes 2^31",
        "the product of two counts is computed in 32 bits", mean=1.0),
    _case("constant row", 2, 40, 16, "the variance is 0, the mean is not"),
    _case("tiny eps", 3, 100, 32),
    _case("large eps", 3, 96, 32, mean=0.5),
    _case("mean 1000", 3, 760, 64),
    _case("mean 10000", 3, 250, 16),
    _case("a NaN row", 4, 20, 8, "a chunk of row 1 holds a NaN: it must stay in row 1"),
    _case("an Inf row", 4, 20, 8, "a chunk of row 1 holds an Inf: it must stay in row 1"),
)  # fmt: skip


@dataclass(frozen=True)
class ToldCase(MergeCase):
    """Rows whose chunks, of ``block`` columns, have a program each. As many programs as a row has
    chunks run at a time.

    ``orders``: how many orders of the programs' memory operations are tried.
    """

    block_name: str = "BLOCK"
    orders: int = 2


_told = partial(make_case, of=ToldCase)
TOLD = (
    _told("worked example", 3, 8, 4, "the 3 x 8 worked example, two full chunks", orders=4),
    _told("two rows", 2, 24, 8, "three full chunks a row, and room for three programs",
        "a program waits for one that has not started", mean=1.0, orders=5),
    _told("short last chunk", 4, 19, 8, "chunks of 8, 8 and 3 columns, mean 3",
        "the last chunk counts as a full one", mean=3.0, orders=4),
    _told("one column left", 3, 33, 16, "chunks of 16, 16 and 1 columns, mean -2",
        "the variance of a single column is divided by 0", mean=-2.0),
    _told("one short chunk", 3, 7, 16, "N below BLOCK: one chunk",
        "BLOCK is taken for the count of a single chunk", mean=-2.0, orders=1),
    _told("one column", 2, 1, 8, "N = 1: the variance is 0", "the variance is divided by N - 1",
        mean=2.0, orders=1),
    _told("many chunks", 1, 150, 16, "10 chunks, the last one of 6 columns",
        "only the first chunks are merged", mean=3.0),
    _told("17 chunks", 1, 265, 16, "17 chunks, the last one of 9 columns",
        "only some number of chunks is merged", mean=1.0, orders=1),
    _told("many rows", 12, 13, 8, "12 rows of two chunks", "only the first rows are done",
        orders=1),
    _told("steps", 3, 75, 16, "every chunk has a mean of its own, far from the others'",
        "means are averaged in the wrong weights", std=0.1, fill="steps"),
    _told("constant row", 2, 40, 16, "every M2 is 0",
        "a word whose M2 is 0 is taken for one not yet told"),
    _told("zero row", 2, 40, 16, "mean and M2 of every chunk are 0",
        "a word of 0 is taken for one not yet told"),
    _told("negative", 3, 40, 16, "every mean is below 0",
        "the sign of the mean spoils the other half of the word", mean=-5.0, std=0.5),
    _told("3001 columns left", 2, 11193, 4096,
        "a last chunk of 3001 columns: fp16 does not hold 3001", "counts are kept in fp16",
        fill="steps", orders=1),
    _told("small spread", 3, 100, 32),
    _told("tiny eps", 3, 100, 32),
    _told("mean 1000", 3, 380, 64),
    _told("mean 10000", 3, 125, 16),
    _told("fp16, std 100", 2, 1300, 512, "squares pass fp16's largest number, 65504"),
    _told("bf16", 3, 70, 32, "x in bfloat16, mean 3"),
    _told("sliced", 4, 50, 16, "rows of x lie farther apart than N"),
    _told("a NaN row", 4, 20, 8, "a chunk of row 1 holds a NaN: it must stay in row 1"),
    _told("an Inf row", 4, 20, 8, "a chunk of row 1 holds an Inf: it must stay in row 1"),
    _told("far rows", 5, 17, 8, "rows 1.5 * 2^30 elements apart", mean=1.0),
)  # fmt: skip


def _count_columns(case: MergeCase) -> np.ndarray:
    """Return the columns of each chunk, (chunks,)."""
    return np.minimum(case.N - np.arange(case.chunks) * case.block, case.block)


def _draw_statistics(case: MergeCase, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw means and M2s of the chunks, (M, chunks), fp32, distributed as those of normal rows
    are."""
    shape, counts = (case.M, case.chunks), _count_columns(case)
    if case.fill == "worked":
        parts = WORKED_EXAMPLE.reshape(case.M, case.chunks, case.block)
        means = parts.mean(axis=2)
        M2s = ((parts - means[:, :, None]) ** 2).sum(axis=2)
    elif case.fill == "constant":
        means, M2s = np.full(shape, case.mean), np.zeros(shape)
    elif case.by_hand:
        means = by_hand.choose_rows(*shape)
        M2s = np.where((counts > 1) & (case.fill != "flat"), 4.0 * counts, 0.0) + np.zeros(shape)
    else:
        level = 5 * rng.normal(size=shape) if case.fill == "steps" else 0.0
        means = case.mean + level + case.std * rng.normal(size=shape) / np.sqrt(counts)
        squares = rng.chisquare(np.maximum(counts - 1, 1), size=shape)
        M2s = np.where((counts > 1) & (case.fill != "flat"), case.std**2 * squares, 0.0)
    if case.has_bad_row:
        means[1, case.chunks // 2], M2s[1, case.chunks // 2] = (
            np.nan if case.fill == "nan row" else np.inf,
            np.nan,
        )
    return round_to(means, "fp32"), round_to(M2s, "fp32")


def _plan_merge(case: MergeCase, kernel: str, rng: np.random.Generator) -> Plan:
    """Plan a merge. The allowed relative error of rstd is its own rounding plus half of the
    relative error of the variance.

    The error of the variance has three parts: its own roundings, those of the distances between
    rounded means, and the square of the mean's error, which every distance contains.
    """
    means, M2s = _draw_statistics(case, rng)
    stride = case.chunks + (5 if case.layout == "sliced" else 0)
    guard = size_guard(case.M * stride + case.lanes)
    tensors = (
        *(
            Tensor(name, "fp32", (case.M, case.chunks), (stride, 1), values, guard=guard)
            for name, values in (("means", means), ("M2s", M2s))
        ),
        place_statistic("mean", case),
        place_statistic("rstd", case),
    )
    arguments = (
        *(tensor.name for tensor in tensors),
        stride, case.block, case.N, case.eps,
    )  # fmt: skip
    inputs = {
        "means": means.astype(np.float64),
        "M2s": M2s.astype(np.float64),
        "counts": _count_columns(case).astype(np.float64),
    }
    with np.errstate(invalid="ignore"):
        mean = inputs["means"] @ inputs["counts"] / case.N
        between = (inputs["means"] - mean[:, None]) ** 2 @ inputs["counts"] / case.N
        var = inputs["M2s"].sum(axis=1) / case.N + between
        size = np.abs(inputs["means"]) @ inputs["counts"] / case.N
        rstd = 1 / np.sqrt(var + case.eps)
        of_var = var + size * np.sqrt(between) + tolerance.K * tolerance.UNIT * size**2
        infinite = case.fill == "inf row"
        expected = {
            "mean": make_expected(mean, size, "fp32", infinite=infinite),
            "rstd": make_expected(
                rstd, rstd * (1 + of_var / (2 * (var + case.eps))), "fp32", infinite=infinite
            ),
        }
    return Plan(
        case, kernel, (case.M,), tensors, arguments, {"BLOCK": case.lanes}, expected, inputs=inputs,
        spread={"means": case.M, "mean": case.M},
    )  # fmt: skip


def _plan_told(case: ToldCase, kernel: str, rng: np.random.Generator) -> Plan[ToldCase]:
    x = draw_matrix(case, rng)
    if case.fill == "steps":
        x = round_to(x + 5 * (-1.0) ** (np.arange(case.N) // case.block), case.dtype_of("x"))
    words = case.M * case.chunks
    room = size_guard(words + case.lanes)
    shape = (case.M, case.chunks)
    tensors = (
        # Words of 64 bits stand first in memory: there they are aligned.
        Tensor(
            "word", "int64", (words,), (1,), np.zeros(words, np.int64), scratch=True, guard=room
        ),
        Tensor("ticket", "int32", (1,), (1,), np.zeros(1, np.int32), scratch=True, guard=room),
        place_matrix("x", case, x, spare=3),
        *(
            Tensor(name, "fp32", shape, compute_strides(shape), guard=room)
            for name in ("mean", "rstd")
        ),
    )
    x64 = x.astype(np.float64)
    parts = [x64[:, at : at + case.block] for at in range(0, case.N, case.block)]
    with np.errstate(invalid="ignore"):
        means = np.stack([part.mean(axis=1) for part in parts], axis=1)
        M2s = np.stack(
            [((part - part.mean(axis=1, keepdims=True)) ** 2).sum(axis=1) for part in parts], axis=1
        )
        mean, var = x64.mean(axis=1), ((x64 - x64.mean(axis=1, keepdims=True)) ** 2).mean(axis=1)
        rstd = 1 / np.sqrt(var + case.eps)
        size = np.abs(x64).mean(axis=1)
        infinite = case.fill == "inf row"
        found = {
            "mean": make_expected(mean, size, "fp32", infinite=infinite),
            "rstd": make_expected(
                rstd,
                rstd * (1 + bound_welford(size, var) / (2 * (var + case.eps))),
                "fp32",
                infinite=infinite,
            ),
        }
    expected = {
        name: Expected(
            np.repeat(of_row.values[:, None], case.chunks, axis=1),
            np.repeat(of_row.allowed[:, None], case.chunks, axis=1),
        )
        for name, of_row in found.items()
    }
    return Plan(
        case, kernel, (words,), tensors,
        ("x", "mean", "rstd", "word", "ticket", tensors[2].strides[0], case.N, case.eps),
        {"CHUNKS": case.chunks, "BLOCK": case.block},
        expected,
        inputs={"means": means, "M2s": M2s, "counts": _count_columns(case).astype(np.float64)},
        interleavings=case.orders, resident=case.chunks, reads={"x": 1},
        spread={"x": words, "mean": words}, alike=("mean", "rstd"),
    )  # fmt: skip


# ---- wrong formulas


def _merge(
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
    case, some = p.case, chunks(p.case)
    spare = np.zeros((case.M, case.empty_lanes))
    means, M2s = (
        np.concatenate([p.inputs[name][:, some], spare], axis=1) for name in ("means", "M2s")
    )
    counts = _count_in_lanes(case, lanes)
    counts = np.concatenate([counts[: case.chunks][some], counts[case.chunks :]])
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


def _round(counts: np.ndarray, dtype: str) -> np.ndarray:
    return round_to(counts, dtype).astype(np.float64)


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


def _list_models() -> Iterator[tuple[str, Model]]:
    yield from vary(_merge, "merge_between", between=_BETWEEN)
    yield from vary(_merge, "merge_between", mean=_CENTRES)
    yield from vary(_merge, "M2s_left_out", within=[lambda M2, c, N: 0 * M2])
    yield from vary(_merge, "M2_not_a_sum", within=_WITHIN)
    for number in ("chunks", "lanes"):
        average = partial(_merge, weigh=_take_one, N=number)
        between = [lambda d, c, N: d**2 * c, lambda d, c, N: d**2, lambda d, c, N: 0 * d]
        yield from vary(average, "merge_weights", between=between)
        yield from vary(average, "merge_weights", mean=[_find_mean])
    yield from vary(_round_counts, "low_precision", dtype=["fp16", "bf16"])
    for divisor in ("N", "columns of all chunks"):
        yield "short_chunk", lambda p, d=divisor: _merge(p, weigh=lambda c: _fill_up(p, c), N=d)
    yield from vary(_merge, "short_chunk", N=["columns of all chunks"])
    yield "short_chunk", lambda p: _merge(p, between=lambda d, c, N: d**2 * _fill_up(p, c))
    for lanes, cause in _WRONG_COUNTS:
        yield from _list_count_models(lanes, cause)
    yield from vary(
        _merge, "chunk_left_out", chunks=_SOME_CHUNKS, N=["N", "columns of these chunks"]
    )
    for number in ("chunks", "lanes", "block", "columns of all lanes"):
        yield from vary(_merge, "divisor", N=["N"], divisor=[number])
        yield from vary(_merge, "divisor", N=[number], divisor=["N", number])
    yield from vary(_merge, "unbiased_variance", divisor=["N-1", "N-1 or 1"])
    yield from vary(_merge, "not_divided", divisor=["1"])
    yield from vary(_merge, "not_divided", N=["1"], mean=[_find_mean, None])
    yield from _list_root_models()
    right = ("mean", "rstd")
    yield "outputs_swapped", lambda p: dict(zip(right, reversed(_merge(p).values()), strict=True))
    yield (
        "same_row",
        lambda p: {
            name: np.broadcast_to(values[:1], values.shape) for name, values in _merge(p).items()
        },
    )
    for means_by, M2_by in ((np.max, np.sum), (np.sum, np.max), (np.max, np.max)):
        yield "max_for_sum", partial(_merge, means_by=means_by, M2_by=M2_by)


def _round_counts(p: Plan[MergeCase], dtype: str) -> Outputs:
    return _merge(
        p, weigh=lambda c: _round(c, dtype), between=lambda d, c, N: d**2 * _round(c, dtype)
    )


def _fill_up(p: Plan[MergeCase], counts: np.ndarray) -> np.ndarray:
    """Return the counts with a full chunk for a short one."""
    return (counts > 0) * float(p.case.block)


def _list_count_models(lanes: str, cause: str) -> Iterator[tuple[str, Model]]:
    """Yield merges with wrong counts in both sums, or in one of them beside a right one."""
    wrong = partial(_merge, lanes=lanes)
    for divisor in ("N", "columns of all chunks"):
        yield from vary(wrong, cause, N=[divisor], divisor=[divisor], mean=[None, _find_mean])
        yield from vary(wrong, cause, N=[divisor])
    yield cause, lambda p: {"mean": wrong(p)["mean"], "rstd": _merge(p)["rstd"]}
    yield cause, partial(wrong, root=lambda v, eps: inverse_root(np.maximum(v, 0.0), eps))
    yield cause, lambda p: {"mean": _merge(p)["mean"], "rstd": wrong(p, mean=_find_mean)["rstd"]}


def _list_root_models() -> Iterator[tuple[str, Model]]:
    yield from vary(_merge, "eps_missing", eps=[0.0])
    for cause, root in WRONG_ROOTS:
        # The words of "reciprocal_missing" are about y, which this kernel does not write.
        yield (
            "wrong_statistic_saved" if cause == "reciprocal_missing" else cause,
            partial(_merge, root=root),
        )
    yield from vary(
        _merge, "wrong_statistic_saved", root=[lambda v, eps: v, lambda v, eps: np.sqrt(v)]
    )
    yield from vary(_merge, "eps_hard_coded", eps=FIXED_EPS)


def _list_told_models() -> Iterator[tuple[str, Model]]:
    """Yield the wrong merges, each chunk with the statistics of its row, and wrong statistics of
    the chunks."""
    yield "chunk_left_out", _merge_own_chunk
    but_last = partial(_merge, chunks=lambda case: slice(0, max(case.chunks - 1, 1)))
    yield from (
        (cause, partial(_tell_all, model))
        for cause, model in vary(but_last, "chunk_left_out", N=["N", "columns of these chunks"])
    )
    yield from (
        (cause, partial(_tell_all, model)) for cause, model in _list_models() if cause != "same_row"
    )
    for cause, change in _WRONG_PARTS:
        yield (
            cause,
            lambda p, change=change: _tell_all(_merge, replace(p, inputs=p.inputs | change(p))),
        )


def _tell_all(model: Model, p: Plan[ToldCase]) -> Outputs:
    return {
        name: np.repeat(values[:, None], p.case.chunks, axis=1) for name, values in model(p).items()
    }


def _merge_own_chunk(p: Plan[ToldCase]) -> Outputs:
    """Return the statistics of each chunk in place of the row's."""
    return {
        "mean": p.inputs["means"],
        "rstd": inverse_root(p.inputs["M2s"] / p.inputs["counts"], p.case.eps),
    }


def _pad_M2(p: Plan[ToldCase]) -> dict[str, np.ndarray]:
    """Return the M2s with the padded lanes of the last chunk in them, each at 0."""
    M2s = p.inputs["M2s"].copy()
    M2s[:, -1] += p.case.padded_lanes * p.inputs["means"][:, -1] ** 2
    return {"M2s": M2s}


_WRONG_PARTS: tuple[tuple[str, Callable[[Plan[ToldCase]], dict[str, np.ndarray]]], ...] = (
    ("padding_in_variance", _pad_M2),
    ("M2_not_a_sum", lambda p: {"M2s": p.inputs["M2s"] / p.inputs["counts"]}),
    *(
        (
            "low_precision",
            lambda p, dtype=dtype: {
                name: _round(p.inputs[name], dtype) for name in ("means", "M2s")
            },
        )
        for dtype in ("fp16", "bf16")
    ),
)


def _is_spoilt(p: Plan[MergeCase], outputs: Outputs) -> bool:
    """Return True if the case has lanes without a chunk, and a NaN stands where a number
    belongs."""
    return p.case.empty_lanes > 0 and any(
        (np.isnan(values) & np.isfinite(p.expected[name].values)).any()
        for name, values in outputs.items()
    )


PARTS = {
    "share_statistics_kernel": Part(TOLD, _plan_told, _list_told_models),
    "merge_kernel": Part(
        MERGE,
        _plan_merge,
        _list_models,
        # If only cases with short chunks fail, no cause follows. Other families conclude padded
        # lanes, which these chunks do not have.
        traits=(
            ("empty_chunk", lambda c: c.empty_lanes > 0),
            ("wrong_values", lambda c: c.padded_lanes > 0),
        ),
        rare=(("empty_chunk", _is_spoilt),),
    ),
}
