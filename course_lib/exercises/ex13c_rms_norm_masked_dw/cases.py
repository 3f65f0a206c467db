"""dw without the padding rows (13c): its cases and wrong formulas."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from course_lib.base.translation import gettext as _
from course_lib.exercises.batteries import make_case
from course_lib.exercises.dw_kernels import (
    CHUNK_ROWS,
    DW_MISTAKES,
    combine_mistakes,
    compute_wrong,
    expect_sums,
    has_short_steps,
    list_chunks,
    list_misplaced_models,
    list_right_chunks,
)
from course_lib.exercises.gradients import draw_backward_inputs, place_by_rows, save_statistics
from course_lib.exercises.tensors import place_statistic, widen_inputs
from course_lib.exercises.wrong_formulas import change_inputs
from course_lib.grading.cases.buffers import Tensor, size_guard
from course_lib.grading.cases.case import SharedCase
from course_lib.grading.cases.plan import Model, Outputs, Part, Plan
from course_lib.norms import reference


@dataclass(frozen=True)
class _Walk(SharedCase):
    """A case of 13c: ``resident`` programs walk over the chunks. In the fill "padding" every row is
    padding."""

    def describe(self) -> str:
        return (
            super()
            .describe()
            .replace(
                f"rows_a_chunk = {self.chunk}",
                f"rows_a_chunk = {self.chunk}{_(', ')}P = {self.resident}",
                1,
            )
        )


_walk = partial(make_case, case_class=_Walk)

CASES = (
    _walk("worked example", 3, 8, 8, "the 3 x 8 worked example, one chunk", rows=2, chunk=4,
        partials=1, resident=1, orders=1),
    _walk("two chunks each", 8, 16, 16, "two programs, four chunks",
        "only the first or the last chunk of a program is stored", mean=1.0, rows=2, chunk=2,
        partials=4, resident=2, orders=4),
    _walk("uneven", 22, 12, 16, "three programs, eight chunks, the last one short",
        "the last chunk is taken to be full", mean=-2.0, rows=2, chunk=3, partials=8, resident=3,
        orders=3),
    _walk("one program", 9, 17, 32, "one program has all five chunks", "a sum is not begun anew",
        mean=3.0, rows=2, chunk=2, partials=5, resident=1, orders=1),
    _walk("a short step", 10, 12, 16, "rows_a_chunk = 5 is no multiple of ROWS = 4",
        "a step goes on into the next chunk", mean=-2.0, rows=4, chunk=5, partials=2, resident=2),
    _walk("more programs than chunks", 7, 20, 32, "five programs, two chunks",
        "a program without a chunk stores a row", mean=1.0, rows=2, chunk=4, partials=2, resident=5,
        orders=3),
    _walk("all padding", 6, 12, 16, "every row is padding: all sums are 0",
        "a chunk of padding alone is not stored", fill="padding", rows=2, chunk=2, partials=3,
        resident=2, orders=1),
    _walk("chunks of one row", 12, 9, 16, "ROWS = 1 and rows_a_chunk = 1",
        "keep is read by the number of the step", mean=2.0, rows=1, chunk=1, partials=12,
        resident=5),
    _walk("one row", 1, 33, 64, mean=3.0, rows=4, chunk=4, partials=1, resident=2, orders=1),
    _walk("one column", 9, 1, 16, mistake="a column past N is written", rows=2, chunk=4, partials=3,
        resident=2, orders=1),
    _walk("long row", 6, 1000, 1024, "24 padded lanes",
        "columns after the first block are left out", mean=3.0, rows=1, chunk=3, partials=2,
        resident=2, orders=1),
    _walk("many rows", 300, 8, 16, "300 rows in 2 chunks, 75 steps each",
        "only the first rows are added up", rows=2, chunk=150, partials=2, resident=2, orders=0),
    _walk("many chunks", 150, 3, 16, "150 chunks and seven programs",
        "chunks after the 64th or the 128th are left out", rows=1, chunk=1, partials=150,
        resident=7, orders=0),
    _walk("66 programs", 70, 3, 4, "70 chunks, more programs than 64",
        "only the first programs work", mean=1.0, rows=1, chunk=1, partials=70, resident=66,
        orders=0),
    _walk("zeros", 15, 17, 32, "0 in x and as sums of rows whose terms are not 0",
        "an element or a sum that is 0 is taken for padding", rows=2, chunk=4, partials=4,
        resident=2, orders=1),
    _walk("fp32 dy", 9, 17, 32, dtypes=(("x", "fp16"),), mean=3.0, rows=2, chunk=3, partials=3,
        resident=2, orders=1),
    _walk("fp32 x", 9, 17, 32, dtypes=(("dy", "bf16"),), mean=3.0, rows=2, chunk=3, partials=3,
        resident=2, orders=1),
    _walk("large eps", 9, 100, 128, mistake="rstd is computed anew, without eps", rows=2, chunk=4,
        partials=3, resident=2, orders=1),
    _walk("fp16", 200, 17, 32, "200 rows in half precision", rows=16, chunk=100, partials=2,
        resident=2, orders=1),
    _walk("bf16", 80, 17, 32, "80 rows in bfloat16", rows=8, chunk=20, partials=4, resident=2,
        orders=1),
    _walk("sliced", 9, 50, 64, "dy and x are slices of wider matrices",
        "one row stride is taken for all tensors", rows=2, chunk=4, partials=3, resident=2,
        orders=1),
    _walk("expanded", 9, 50, 64, rows=2, chunk=4, partials=3, resident=2, orders=1),
    _walk("transposed", 9, 36, 64, rows=2, chunk=4, partials=3, resident=2, orders=1),
    _walk("far columns", 3, 4, 16, rows=2, chunk=2, partials=2, resident=2, orders=1),
    _walk("a NaN row", 9, 19, 32, "row 0 of dy, which counts, begins with NaN",
        "a NaN is taken for padding", rows=2, chunk=2, partials=5, resident=2, orders=1),
    _walk("an Inf row", 9, 19, 32, "dy holds an Inf in row 1, which counts", rows=2, chunk=2,
        partials=5, resident=2, orders=1),
    _walk("far rows", 5, 17, 32,
        "rows 1.5 * 2^30 elements apart: within a step, too, they pass 2^32", mean=1.0, rows=4,
        chunk=4, partials=2, resident=2, orders=1),
)  # fmt: skip


def _plan_masked(case: _Walk, kernel: str, rng: np.random.Generator) -> Plan[SharedCase]:
    """Plan dw of RMSNorm over the rows that count. Of four padding rows one holds numbers, and
    three a NaN or Inf in x, dy or rstd."""
    dy, x, _w = draw_backward_inputs(case, rng)
    rstd = save_statistics(x, case.eps, reference.rms_norm)["rstd"]
    keep = (rng.permutation(case.M) % 5 < 3) & (case.fill != "padding")
    keep[:2] |= case.has_bad_row
    mine = _keep_rows(keep, list_chunks(case))
    expected = expect_sums(
        case,
        {"dy": dy.astype(np.float64), "x": x.astype(np.float64), "rstd": rstd.astype(np.float64)},
        mine,
        reference.rms_norm_vjp,
    )
    for kind, row in enumerate(np.flatnonzero(~keep)):
        if kind % 4 and (kind % 4, case.layout) != (2, "expanded"):
            (x, dy, rstd)[kind % 4 - 1][row] = (np.nan, np.nan, np.inf)[kind % 4 - 1]
    tensors = (
        place_by_rows("dy", case, dy), place_by_rows("x", case, x),
        place_statistic("rstd", case, rstd),
        Tensor("keep", "int32", (case.M,), (1,), keep.astype(np.int32),
            guard=size_guard(case.rows)),
        Tensor("dw_partial", "fp32", (case.partials, case.N), (case.N, 1),
            guard=size_guard((case.partials + 1) * case.N + case.block)),
    )  # fmt: skip
    inputs = widen_inputs(tensors)
    arguments = (
        *(tensor.name for tensor in tensors),
        *tensors[0].strides,
        tensors[1].strides[0],
        case.M,
        case.N,
        case.chunk,
    )
    return Plan(
        case, kernel, (case.resident,), tensors, arguments,
        {"ROWS": case.rows, "BLOCK": case.block}, {"dw_partial": expected["dw"]},
        inputs=inputs, interleavings=case.orders, reads={"dy": 1, "x": 1, "dw_partial": 0},
        spread=dict.fromkeys(("x", "dw_partial"), min(case.resident, case.partials)),
    )  # fmt: skip


def _keep_rows(keep: np.ndarray, mine: list[np.ndarray]) -> list[np.ndarray]:
    return [rows[keep[rows] != 0] for rows in mine]


def _list_masked_models() -> Iterator[tuple[str, Model[SharedCase]]]:
    for take in (
        list_right_chunks,
        lambda p: _keep_rows(1 - p.inputs["keep"], list_chunks(p.case)),
    ):
        yield "padding_rows", lambda p, take=take: _compute_dw(p, take(p))
    for within in (
        lambda p: np.arange(p.case.M) % p.case.chunk,
        lambda p: np.arange(p.case.M) - np.arange(p.case.M) % p.case.chunk % p.case.rows,
    ):
        yield (
            "padding_rows",
            lambda p, at=within: _compute_dw(
                p, _keep_rows(p.inputs["keep"][at(p)], list_chunks(p.case))
            ),
        )
    for names in (("dy",), ("x",), ("rstd",), ("dy", "x"), ("dy", "rstd"), ("x", "rstd")):
        yield (
            "padding_times_0",
            lambda p, names=names: _compute_dw(_zero_padding(p, names), list_chunks(p.case)),
        )
    yield (
        "padding_times_0",
        lambda p: _compute_dw(_zero_padding(p, ("dy",), times=True), list_chunks(p.case)),
    )
    yield (
        "sum_carried_over",
        lambda p: {"dw_partial": _add_up_walk(p, _compute_dw(p, _list_kept(p))["dw_partial"])},
    )
    rows = tuple(
        (cause, lambda p, take=take: _keep_rows(p.inputs["keep"], take(p)))
        for cause, take in CHUNK_ROWS
    )
    formulas = (
        *(mistake for mistake in DW_MISTAKES if "db" not in mistake[1]),
        ("mean_subtracted", {"dw": "centred"}),
    )
    for cause, model in combine_mistakes(formulas, rows, _list_kept, "partial"):
        yield (
            cause,
            lambda p, model=model: {
                name: values for name, values in model(p).items() if name in p.expected
            },
        )
    yield from list_misplaced_models(lambda p: _compute_dw(p, _list_kept(p)), ("rstd",))


def _list_kept(p: Plan[SharedCase]) -> list[np.ndarray]:
    return _keep_rows(p.inputs["keep"], list_chunks(p.case))


def _compute_dw(p: Plan[SharedCase], mine: list[np.ndarray]) -> Outputs:
    return {"dw_partial": compute_wrong(p, mine, "partial")["dw_partial"]}


def _zero_padding(
    p: Plan[SharedCase], names: tuple[str, ...], times: bool = False
) -> Plan[SharedCase]:
    """Return the plan with 0 in the padding rows of these inputs alone; ``times``: they are
    multiplied by 0."""
    zeroed = {}
    for name in names:
        values = p.inputs[name]
        keep = p.inputs["keep"].reshape((-1,) + (1,) * (p.inputs[name].ndim - 1))
        zeroed[name] = values * keep if times else np.where(keep != 0, values, 0.0)
    return change_inputs(p, **zeroed)


def _add_up_walk(p: Plan[SharedCase], sums: np.ndarray) -> np.ndarray:
    """Return for each chunk the sum of all chunks that its program has taken so far."""
    return np.stack(
        [sums[c % p.case.resident : c + 1 : p.case.resident].sum(axis=0) for c in range(len(sums))]
    )


PARTS = {
    "rms_norm_masked_dw_kernel": Part(
        CASES,
        _plan_masked,
        _list_masked_models,
        traits=(("row_mask", has_short_steps),),
        partials=("dw_partial",),
    )
}
