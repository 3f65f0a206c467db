"""LayerNorm with two reads (07b): its cases and wrong formulas."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from course_lib.exercises.layer_norm_kernels import BLOCKED_CASES, list_models, make_plan
from course_lib.exercises.statistics_kernels import list_merged_models
from course_lib.exercises.wrong_formulas import apply_right, inverse_root
from course_lib.grading.cases.counts import Count, Quantity
from course_lib.grading.cases.plan import Model, Outputs, Part, Plan


def _list_two_read_models() -> Iterator[tuple[str, Model]]:
    yield from list_models()
    yield "merge_between", lambda p: _merge_blocks(p, between=0.0)
    yield "merge_between", lambda p: _merge_blocks(p, between=-1.0)
    yield "merge_weights", lambda p: _merge_blocks(p, weigh=np.ones_like)
    yield (
        "short_chunk",
        lambda p: _merge_blocks(p, weigh=lambda counts: np.full_like(counts, p.case.block)),
    )
    yield "padding_in_variance", lambda p: _merge_blocks(p, padding=True)
    yield from ((cause, partial(_normalise, model)) for cause, model in list_merged_models())


def _merge_blocks(
    p: Plan, weigh=lambda counts: counts, between: float = 1.0, padding: bool = False
) -> Outputs:
    """Return the outputs if the statistics of the blocks are merged with wrong weights, or with a
    factor at the distance of the means."""
    x, block = p.inputs["x"], p.case.block
    blocks = [x[:, start : start + block] for start in range(0, p.case.N, block)]
    counts = np.array([part.shape[1] for part in blocks], np.float64)
    means = np.stack([part.mean(axis=1) for part in blocks], axis=1)
    squares = np.stack(
        [((part - part.mean(axis=1, keepdims=True)) ** 2).sum(axis=1) for part in blocks], axis=1
    )
    if padding:
        squares += (block - counts) * means**2
    weights = weigh(counts)
    mean = (weights * means).sum(axis=1, keepdims=True) / weights.sum()
    var = (squares + between * counts * (means - mean) ** 2).sum(axis=1, keepdims=True) / p.case.N
    rstd = inverse_root(var, p.case.eps)
    return {
        "y": apply_right((x - mean) * rstd, p.inputs["w"], p.inputs["b"]),
        "mean": mean[:, 0],
        "rstd": rstd[:, 0],
    }


def _normalise(model: Model, p: Plan) -> Outputs:
    """Return the outputs by the mean and the variance of a wrong formula of Welford."""
    statistics = model(p)
    mean, rstd = statistics["mean"], inverse_root(statistics["var"], p.case.eps)
    deviation = p.inputs["x"] - mean[:, None]
    y = apply_right(deviation * rstd[:, None], p.inputs["w"], p.inputs["b"])
    return {"y": y, "mean": mean, "rstd": rstd}


PARTS = {
    "layer_norm_two_reads_kernel": Part(
        BLOCKED_CASES,
        partial(make_plan, resident=False, reads=2),
        _list_two_read_models,
        counts=(Count(Quantity.READS, course=2, least=2, tensor="x"),),
        counted_case="many blocks",
    )
}
