"""RMSNorm with the same bits in every batch (13d): its cases and wrong formulas."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from course_lib.exercises.batteries import make_case
from course_lib.exercises.rms_norm_kernels import BLOCKED_CASES, list_blocked_models, plan_rms_norm
from course_lib.grading.cases.case import Case
from course_lib.grading.cases.plan import Batch, Part, Plan


@dataclass(frozen=True)
class _BatchCase(Case):
    """A case whose first ``few`` rows are launched a second time, as a batch of their own; 0 for no
    second launch."""

    few: int = 0


_batch = partial(make_case, case_class=_BatchCase)


def _list_single(*names: str) -> list[_BatchCase]:
    """List cases of a blocked RMSNorm that are launched once."""
    by_name = {case.name: case for case in BLOCKED_CASES}
    return [_BatchCase(**vars(by_name[name])) for name in names]


CASES = (
    *_list_single(
        "worked example", "padded, mean 3", "one short block", "one full block", "one column",
    ),
    _batch("large and small batch", 80, 200, 4, "also as a batch of 8 rows",
        "a step of UNROLL blocks is one block of sums", few=8),
    _batch("middle and small batch", 20, 150, 4, "also as a batch of 8 rows",
        "each of UNROLL blocks has sums of its own", few=8),
    _batch("large and middle batch", 70, 333, 8, "also as a batch of 12 rows",
        "the number of parts of a row is taken from M", few=12),
    _batch("two small batches", 7, 500, 8, "also as a batch of 4 rows, with the same UNROLL",
        "the number of parts of a row is taken from M", few=4),
    _batch("a batch of one row", 14, 3000, 8, "also as a batch of 1 row",
        "a row that is alone is added up in another way", fill="large first", few=1),
    _batch("another batch of one row", 66, 900, 8, "also as a batch of 1 row",
        "a row that is alone is added up in another way", few=1),
    _batch("one row and two", 2, 1700, 4, "also as a batch of 1 row",
        "a row that is alone is added up in another way", few=1),
    _batch("rows of one block", 12, 16, 16, "also as a batch of 8 rows",
        "rows that fit into one block are added up in another way", few=8),
    _batch("more than 256 rows", 260, 150, 4, "also as a batch of 16 rows",
        "the sums are chosen by M < 256, as a library did", fill="large first", few=16),
    _batch("a batch of a few rows", 16, 640, 8, "also as a batch of 7 rows",
        "the columns of a batch of few rows come in another order", fill="large first", few=7),
    _batch("fp16 batches", 40, 300, 16, "x, w and y in fp16; also as a batch of 8 rows",
        "the columns of a batch of few rows come in another order", dtype="fp16", mean=3.0, few=8),
    *_list_single(
        "one row", "near zero", "large eps", "tiny eps", "zeros", "zero row", "fp16, std 100",
        "fp16, mean 8", "bf16", "fp32 weights", "fp32 out", "fp32 in", "16400 columns",
    ),
    _batch("sliced", 12, 150, 16,
        "the matrices are slices of wider ones, so their row strides differ; also as a batch of 3"
        " rows", "stride_y is taken for stride_x", few=3),
    _batch("a NaN row", 20, 19, 8, few=4),
    _batch("an Inf row", 20, 19, 8,
        "row 1 holds an Inf: there y is NaN, and 0 in the rest of the row", few=4),
    *_list_single("far rows"),
)  # fmt: skip


def _choose_unroll(M: int) -> int:
    """Return how many blocks the server wants under way in each of M programs."""
    return 4 if M < 10 else 2 if M < 64 else 1


def _plan_batches(case: _BatchCase, kernel: str, rng: np.random.Generator) -> Plan[_BatchCase]:
    plan = plan_rms_norm(case, kernel, rng, sweeps=2)
    *pointers_and_strides, N, eps = plan.arguments

    def list_arguments(M: int) -> tuple[str | int | float | None, ...]:
        return (*pointers_and_strides, M, N, eps)

    def list_constants(M: int) -> dict[str, int]:
        return plan.constexprs | {"UNROLL": _choose_unroll(M)}

    few = min(case.few, case.M - 1)
    # in a larger batch the rows that are not compared need not run, but for the last one
    sample = (*range(few), case.M - 1) if few and case.M > 8 else ()
    return replace(
        plan,
        arguments=list_arguments(case.M),
        constexprs=list_constants(case.M),
        batch=Batch(few, list_arguments(few), list_constants(few)) if few else None,
        sample=sample,
    )


PARTS = {"rms_norm_batch_invariant_kernel": Part(CASES, _plan_batches, list_blocked_models)}
