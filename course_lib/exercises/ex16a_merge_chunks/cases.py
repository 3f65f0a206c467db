"""Many chunks, one row (16a): its cases and wrong formulas."""

from __future__ import annotations

from functools import partial

import numpy as np

from course_lib.exercises import by_hand
from course_lib.exercises.batteries import make_case
from course_lib.exercises.expectations import make_expected
from course_lib.exercises.merging_kernels import MergeCase, count_columns, list_models
from course_lib.exercises.tensors import WORKED_EXAMPLE, place_statistic, spoil_row
from course_lib.grading.cases.buffers import Tensor, round_to, size_guard
from course_lib.grading.cases.plan import Outputs, Part, Plan
from course_lib.grading.judging import tolerance

_case = partial(make_case, case_class=MergeCase)
CASES = (
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
    _case("a NaN row", 4, 20, 8, "row 0 begins with chunks of NaN, which must stay in row 0"),
    _case("an Inf row", 4, 20, 8, "a chunk of row 1 holds an Inf: it must stay in row 1"),
)  # fmt: skip


def _draw_statistics(case: MergeCase, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw means and M2s of the chunks, (M, chunks), fp32, distributed as those of normal rows
    are."""
    shape, counts = (case.M, case.chunks), count_columns(case)
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
        spoil_row(case, means)
        M2s[~np.isfinite(means)] = np.nan
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
        "counts": count_columns(case).astype(np.float64),
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


def _is_spoilt(p: Plan[MergeCase], outputs: Outputs) -> bool:
    """Return True if the case has lanes without a chunk, and a NaN stands where a number belongs
    that no NaN of another row brings in."""
    clean = p.case.empty_lanes > 0 and not p.case.has_bad_row
    return clean and any(
        (np.isnan(values) & np.isfinite(p.expected[name].values)).any()
        for name, values in outputs.items()
    )


PARTS = {
    "merge_kernel": Part(
        CASES,
        _plan_merge,
        list_models,
        # If only cases with short chunks fail, no cause follows. Other exercises conclude padded
        # lanes, which these chunks do not have.
        traits=(
            ("empty_chunk", lambda c: c.empty_lanes > 0),
            ("wrong_values", lambda c: c.padded_lanes > 0),
        ),
        rare=(("empty_chunk", _is_spoilt),),
    )
}
