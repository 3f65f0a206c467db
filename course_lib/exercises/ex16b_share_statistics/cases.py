"""Long rows in one launch (16b): its cases and wrong formulas."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from course_lib.exercises.batteries import make_case
from course_lib.exercises.expectations import bound_welford, make_expected
from course_lib.exercises.merging_kernels import MergeCase, count_columns, list_models, merge_chunks
from course_lib.exercises.tensors import draw_matrix, place_matrix, round_values
from course_lib.exercises.wrong_formulas import change_inputs, inverse_root, vary
from course_lib.grading.cases.buffers import Tensor, compute_strides, round_to, size_guard
from course_lib.grading.cases.plan import Expected, Model, Outputs, Part, Plan


@dataclass(frozen=True)
class ToldCase(MergeCase):
    """Rows whose chunks, of ``block`` columns, have a program each. As many programs as a row has
    chunks run at a time.

    ``orders``: how many orders of the programs' memory operations are tried.
    """

    block_name: str = "BLOCK"
    orders: int = 2


_told = partial(make_case, case_class=ToldCase)
CASES = (
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
    _told("a NaN row", 4, 20, 8,
        "the first chunk of row 0 begins with NaN, which must stay in row 0"),
    _told("an Inf row", 4, 20, 8, "a chunk of row 1 holds an Inf: it must stay in row 1"),
    _told("far rows", 5, 17, 8, "rows 1.5 * 2^30 elements apart", mean=1.0),
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
        by_row = {
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
        for name, of_row in by_row.items()
    }
    return Plan(
        case, kernel, (words,), tensors,
        ("x", "mean", "rstd", "word", "ticket", tensors[2].strides[0], case.N, case.eps),
        {"CHUNKS": case.chunks, "BLOCK": case.block},
        expected,
        inputs={"means": means, "M2s": M2s, "counts": count_columns(case).astype(np.float64)},
        interleavings=case.orders, resident=case.chunks, reads={"x": 1},
        spread={"x": words, "mean": words}, alike=("mean", "rstd"),
    )  # fmt: skip


def _list_told_models() -> Iterator[tuple[str, Model]]:
    """Yield the wrong merges, each chunk with the statistics of its row, and wrong statistics of
    the chunks."""
    yield "chunk_left_out", _merge_own_chunk
    but_last = partial(merge_chunks, chunks=lambda case: slice(0, max(case.chunks - 1, 1)))
    yield from (
        (cause, partial(_tell_all, model))
        for cause, model in vary(but_last, "chunk_left_out", N=["N", "columns of these chunks"])
    )
    yield from (
        (cause, partial(_tell_all, model)) for cause, model in list_models() if cause != "same_row"
    )
    for cause, change in _WRONG_PARTS:
        yield (
            cause,
            lambda p, change=change: _tell_all(merge_chunks, change_inputs(p, **change(p))),
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
                name: round_values(p.inputs[name], dtype) for name in ("means", "M2s")
            },
        )
        for dtype in ("fp16", "bf16")
    ),
)


PARTS = {"share_statistics_kernel": Part(CASES, _plan_told, _list_told_models)}
