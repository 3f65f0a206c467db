"""dw and db in two stages (13a): its cases and wrong formulas."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from course_lib.exercises.batteries import make_case
from course_lib.exercises.dw_kernels import (
    CHUNK_ROWS,
    DW_MISTAKES,
    PARTIAL_SUMS,
    combine_mistakes,
    compute_wrong,
    extend_plan,
    has_short_steps,
    list_chunks,
    list_misplaced_models,
    list_right_chunks,
    list_spare_row_models,
    list_strides,
    list_sum_models,
    plan_backward,
    plan_sum,
    sum_rows,
)
from course_lib.exercises.wrong_formulas import add_up_lanes
from course_lib.grading.cases.buffers import size_guard
from course_lib.grading.cases.case import FAR_STRIDE, SharedCase
from course_lib.grading.cases.plan import Model, Outputs, Part, Plan


@dataclass(frozen=True)
class _Sums(SharedCase):
    """A case of the second stage. In the layout "far" the matrices of partial sums have FAR_STRIDE
    columns, and only one program runs, which has the first N of them."""

    @property
    def columns(self) -> int:
        """The columns of the matrices of partial sums."""
        return FAR_STRIDE if self.is_far else self.N

    def describe(self) -> str:
        return super().describe().replace(f"N = {self.N}", f"N = {self.columns}", 1)


@dataclass(frozen=True)
class _Chunks(_Sums):
    """A case of the first stage. If ``wide``, the layout is "far", the matrices of partial sums
    have 2^30 columns, and only the programs of the first N of them run."""

    wide: bool = False

    @property
    def columns(self) -> int:
        # With FAR_STRIDE columns the address space would not hold this case beside another far one.
        return 2**30 if self.wide else self.N


_chunks = partial(make_case, case_class=_Chunks, block_name="BLOCK_N", rows_name="BLOCK_M")
_partials = partial(
    make_case, case_class=_Sums, partials_name="P", block_name="BLOCK_N", rows_name="BLOCK_P"
)

CHUNKS = (
    _chunks("worked example", 3, 8, 8, "the 3 x 8 worked example, one chunk", rows=2, chunk=4,
        partials=1),
    _chunks("two chunks", 8, 16, 16, "two full chunks of two full steps",
        "every chunk adds up the same rows", mean=1.0, rows=2, chunk=4, partials=2, orders=4),
    _chunks("a short step", 10, 12, 16, "rows_a_chunk = 5 is no multiple of BLOCK_M = 4",
        "a step goes on into the next chunk", mean=-2.0, rows=4, chunk=5, partials=2),
    _chunks("a short last chunk", 7, 17, 16, "M = 7: the last chunk has one row",
        "the last chunk is taken to be full", mean=3.0, rows=2, chunk=3, partials=3),
    _chunks("fewer rows than a step", 3, 20, 16, "M = 3, BLOCK_M = 8", "rows past M are added up",
        mean=1.0, rows=8, chunk=8, partials=1),
    _chunks("one row", 1, 33, 16, mean=3.0, rows=4, chunk=4, partials=1),
    _chunks("one column", 9, 1, 16, mistake="a column past N is written", rows=2, chunk=4,
        partials=3),
    _chunks("wide", 5, 100, 32, "four blocks of columns, 28 padded lanes",
        "only the first block of columns is written", mean=3.0, rows=2, chunk=2, partials=3,
        orders=3),
    _chunks("many rows", 300, 8, 16, "300 rows in 2 chunks, 75 steps each",
        "only the first rows are added up", rows=2, chunk=150, partials=2, orders=1),
    _chunks("zeros", 5, 17, 32, "0 in x and as sums of rows whose terms are not 0",
        "a sum that is 0 is taken for a buffer not yet written", rows=2, chunk=3, partials=2,
        orders=1),
    _chunks("fp32 dy", 5, 17, 32, dtypes=(("x", "fp16"),), mean=3.0, rows=2, chunk=3, partials=2,
        orders=1),
    _chunks("fp32 x", 5, 17, 32, dtypes=(("dy", "bf16"),), mean=3.0, rows=2, chunk=3, partials=2,
        orders=1),
    _chunks("far partial sums, stage one", 3, 16, 16,
        "row 2 of the partial sums begins at 2^31: the programs of the first 16 columns run",
        "the offset of a row of partial sums is computed in 32 bits", mean=1.0, rows=2, chunk=1,
        partials=3, orders=1, dtype="fp16", layout="far", wide=True),
    _chunks("far columns", 3, 4, 16, rows=2, chunk=2, partials=2, orders=1),
    _chunks("mean 1000", 6, 33, 64, mistake="xhat is computed from a rounded mean", rows=4, chunk=4,
        partials=2),
    _chunks("fp16", 200, 17, 32, "200 rows in half precision", rows=16, chunk=100, partials=2),
    _chunks("bf16", 40, 17, 32, "40 rows in bfloat16", rows=8, chunk=20, partials=2),
    _chunks("sliced", 5, 50, 64, "dy and x are slices of wider matrices",
        "one row stride is taken for all tensors", rows=2, chunk=4, partials=2),
    _chunks("expanded", 5, 50, 64, rows=2, chunk=4, partials=2),
    _chunks("transposed", 5, 36, 64, rows=2, chunk=4, partials=2),
    _chunks("a NaN row", 4, 19, 32, "row 0 of dy begins with NaN", rows=2, chunk=2, partials=2,
        orders=1),
    _chunks("an Inf row", 4, 19, 32,
        "dy holds an Inf in row 1, which a step of the first chunk reaches, too", rows=2, chunk=1,
        partials=4),
    _chunks("far rows", 5, 17, 32,
        "rows 1.5 * 2^30 elements apart: within a step, too, they pass 2^32", mean=1.0, rows=4,
        chunk=4, partials=2),
)  # fmt: skip

PARTIALS = (
    _partials("one step", 4, 20, 16, "{partials} rows of partial sums, one step",
        "dw and db are swapped", rows=4, partials=4),
    _partials("a row too many", 5, 20, 16, "{partials} is no multiple of BLOCK_P = 4",
        "rows past P are added up", partials=5, mean=0.0),
    _partials("fewer rows than a step, to be summed", 3, 9, 16, "{partials}, BLOCK_P = 16",
        "rows past P are added up", rows=16, partials=3),
    _partials("many steps", 140, 33, 16, "{partials}, BLOCK_P = 16",
        "only the last step, or all but the last, counts", rows=16, partials=140, orders=2),
    _partials("65 steps", 1030, 9, 16, "{partials}, BLOCK_P = 16",
        "steps after the 64th are left out", rows=16, partials=1030, orders=1),
    _partials("fp16 gradients", 132, 33, 16,
        "{partials}, dw and db in fp16: one rounding, at the end",
        "sums are rounded to fp16 on the way", dtype="fp16", rows=16, partials=132),
    _partials("bf16 gradients", 132, 33, 16, "{partials}, dw and db in bf16",
        "sums are rounded to bf16 on the way", dtype="bf16", rows=16, partials=132),
    _partials("bf16 dw", 40, 33, 16, "{partials}, db in fp32", "db is rounded to the dtype of dw",
        dtypes=(("dw", "bf16"),), rows=16, partials=40, orders=1),
    _partials("fp16 db", 40, 33, 16, "{partials}, dw in fp32", "dw is rounded to the dtype of db",
        dtypes=(("db", "fp16"),), rows=16, partials=40, orders=1),
    _partials("far partial sums", 3, 16, 16,
        "{partials}, and row 2 of the partial sums begins past 2^31: program 0 alone runs",
        "the offset of a row of partial sums is computed in 32 bits", rows=4, partials=3, orders=1,
        layout="far"),
)  # fmt: skip


def _plan_chunks(case: _Chunks, kernel: str, rng: np.random.Generator) -> Plan[SharedCase]:
    # The rows of dy and x may overlap: only their first N columns are read.
    of_rows = replace(case, layout="packed") if case.wide else case
    plan = plan_backward(of_rows, kernel, rng, list_chunks(case), "partial")
    if case.wide:
        far = {"strides": (case.columns, 1), "far": True, "guard": size_guard(case.block)}
        tensors = tuple(
            replace(tensor, **far) if tensor.name in PARTIAL_SUMS else tensor
            for tensor in plan.tensors
        )
        plan = replace(plan, case=case, tensors=tensors)
    plan = extend_plan(
        plan,
        [*list_strides(plan), case.M, case.columns, case.chunk],
        {"BLOCK_M": case.rows, "BLOCK_N": case.block},
    )
    grid = (-(-case.N // case.block), case.partials)
    return replace(plan, grid=grid, spread=dict.fromkeys(("x", "dw_partial"), grid[0] * grid[1]))


def _plan_partials(case: _Sums, kernel: str, rng: np.random.Generator) -> Plan[SharedCase]:
    plan = plan_sum(case, kernel, rng, ("dw_partial", "db_partial"), case.partials)
    return extend_plan(
        plan, [case.partials, case.columns], {"BLOCK_P": case.rows, "BLOCK_N": case.block}
    )


def _list_chunk_models() -> Iterator[tuple[str, Model[SharedCase]]]:
    yield from combine_mistakes(DW_MISTAKES, CHUNK_ROWS, list_right_chunks, "partial")
    yield from list_spare_row_models(list_right_chunks)
    yield from list_misplaced_models(lambda p: compute_wrong(p, list_chunks(p.case), "partial"))


def _list_partials_models() -> Iterator[tuple[str, Model[SharedCase]]]:
    yield (
        "rows_left_out",
        lambda p: sum_rows(p, slice(0, p.case.partials // p.case.rows * p.case.rows)),
    )
    yield (
        "rows_not_summed",
        lambda p: sum_rows(p, slice((p.case.partials - 1) // p.case.rows * p.case.rows, None)),
    )
    yield "rows_not_summed", lambda p: sum_rows(p, slice(0, p.case.rows))
    yield (
        "rows_counted_twice",
        lambda p: _weigh_rows(p, np.minimum(np.arange(p.case.partials) + 1, p.case.rows)),
    )
    for names in (("dw", "db"), ("dw",), ("db",)):
        for step in (lambda case: 1, lambda case: case.rows):
            yield (
                "rows_not_summed",
                lambda p, names=names, step=step: _repeat_first_step(p, names, step(p.case)),
            )
        yield "max_for_sum", lambda p, names=names: {name: _take_largest(p, name) for name in names}
    yield from list_sum_models(lambda p: p.case.partials)


def _weigh_rows(p: Plan[SharedCase], weights: np.ndarray) -> Outputs:
    return {name: weights @ p.inputs[f"{name}_partial"] for name in ("dw", "db")}


def _repeat_first_step(p: Plan[SharedCase], names: tuple[str, ...], step: int) -> Outputs:
    """Return the sums if each step adds up the first ``step`` rows."""
    weights = np.bincount(np.arange(p.case.partials) % step, minlength=p.case.partials)
    sums = _weigh_rows(p, weights)
    return {name: sums[name] for name in names}


def _take_largest(p: Plan[SharedCase], name: str) -> np.ndarray:
    """Return the largest of the sums of a tile's lanes, where their total belongs."""
    return add_up_lanes(p.inputs[f"{name}_partial"].T, p.case.rows).max(axis=1)


PARTS = {
    "column_partials_kernel": Part(
        CHUNKS,
        _plan_chunks,
        _list_chunk_models,
        traits=(("row_mask", has_short_steps),),
        partials=PARTIAL_SUMS,
    ),
    "sum_partials_kernel": Part(PARTIALS, _plan_partials, _list_partials_models),
}
