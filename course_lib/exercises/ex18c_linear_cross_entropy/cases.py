"""Cross entropy without logits in memory (18c): its cases and wrong formulas."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from course_lib.exercises import by_hand
from course_lib.exercises.batteries import make_case
from course_lib.exercises.cross_entropy import (
    compute_wrong,
    draw_target,
    list_forward_models,
    place_per_row,
)
from course_lib.exercises.expectations import make_expected
from course_lib.exercises.tensors import choose_strides, place_statistic, spoil_row
from course_lib.exercises.wrong_formulas import list_dtype_models
from course_lib.grading.cases.buffers import Tensor, round_to, size_guard
from course_lib.grading.cases.case import Case
from course_lib.grading.cases.plan import Model, Outputs, Part, Plan
from course_lib.norms import reference


@dataclass(frozen=True)
class LinearCase(Case):
    """Rows of h with ``K`` numbers each, of which the kernel takes ``block_k`` at a time; a logit
    is ``scale`` times a row of h times a row of w.

    The field ``mean`` is that of w. If it is not 0, or a fill asks for large logits, all of h is
    above 0.
    """

    K: int = 6
    block_k: int = 4
    scale: float = 0.5

    def describe(self) -> str:
        words = super().describe().replace(f"N = {self.N}", f"N = {self.N}, K = {self.K}", 1)
        return words.replace(
            f"BLOCK = {self.block}", f"BLOCK = {self.block}, BLOCK_K = {self.block_k}", 1
        )


_linear = partial(make_case, case_class=LinearCase)
CASES = (
    _linear("two full blocks", 4, 8, 4, "two full tiles of rows, two full blocks of columns",
        "any formula but the right one", rows=2, K=8),
    _linear("padded lanes", 5, 17, 8, "M, N and K are no multiples of ROWS, BLOCK and BLOCK_K",
        "a lane past the last column has the logit 0", rows=4, K=9, mean=-1.0),
    _linear("one short block", 3, 7, 16, "N below BLOCK, 9 padded lanes, K below BLOCK_K",
        "a row is taken to have a whole block at least", rows=2, K=3, mean=-0.5),
    _linear("one column", 3, 1, 4, "N = 1: softmax is 1, so the loss is 0",
        "the only column is taken for one of several", rows=2),
    _linear("K = 1", 3, 20, 8, "K = 1: a logit is one product",
        "the first number of h or w is left out", rows=2, K=1),
    _linear("one row, many asked", 1, 33, 16, "M = 1, ROWS = 8", rows=8, mean=0.0),
    _linear("many columns", 2, 600, 32, "19 blocks, the last one of 24 columns",
        "only the first blocks are added up", rows=2, K=5),
    _linear("many rows", 150, 10, 8, "38 programs of four rows", rows=4, mean=0.0),
    _linear("long sums", 2, 20, 8, "K = 70: 18 steps, the last one of two numbers",
        "a logit is the last step's sum", rows=2, K=70),
    _linear("small scale", 4, 40, 16, "scale = 0.01", "scale is left out", rows=2, scale=0.01,
        std=10.0),
    _linear("negative scale", 4, 40, 16, "scale = -2", "scale comes after the maximum", rows=2,
        scale=-2.0),
    _linear("large logits", 3, 40, 16, "logits of several thousands: exp of them is Inf",
        "exp is taken of the logits as they are", rows=2, scale=100.0, mean=10.0),
    _linear("logits far below 0", 3, 40, 16, "logits far below 0: exp of them is 0",
        "the maximum begins with 0", rows=2, scale=100.0, mean=-10.0),
    _linear("largest last", 3, 40, 16, "the last column of each row is far larger than the others",
        "the maximum of the first block is subtracted everywhere", rows=2, fill="largest last"),
    _linear("largest first", 3, 40, 16,
        "the first column of each row is far larger than the others",
        "the maximum of the last block is subtracted everywhere", rows=2, fill="largest first"),
    _linear("fp16", 3, 40, 16, "h and w in half precision",
        "products or sums are rounded to half precision", rows=2, K=33, mean=1.0),
    _linear("fp16, products above 65504", 3, 40, 16, "a product passes the largest number of fp16",
        "products are computed in fp16, and overflow", rows=2, K=5, dtype="fp16", std=3000.0,
        scale=1e-5),
    _linear("bf16", 3, 40, 16, "h and w in bfloat16", rows=2, K=33, mean=1.0),
    _linear("fp16 w", 3, 40, 16, "h in fp32, w in fp16", "h is rounded to the dtype of w", rows=2,
        dtypes=(("w", "fp16"),)),
    _linear("fp16 h", 3, 40, 16, "h in fp16, w in fp32", "w is rounded to the dtype of h", rows=2,
        dtypes=(("h", "fp16"),)),
    _linear("sliced", 5, 20, 8, "h and w are slices of wider matrices: two row strides",
        "K is taken for the distance between rows", rows=2, mean=0.0),
    _linear("a NaN row", 4, 19, 8, "row 0 of h begins with NaN, which must stay in row 0", rows=4),
    _linear("an Inf row", 4, 19, 8, "row 1 of h holds an Inf: it must stay in row 1", rows=4),
    _linear("far rows", 5, 6, 4, "rows of h and of w 1.5 * 2^30 elements apart", rows=4),
)  # fmt: skip


def _draw_linear(case: LinearCase, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw h (M, K) and w (N, K), rounded to their dtypes."""
    h = rng.normal(size=(case.M, case.K))
    w = case.mean + case.std * rng.normal(size=(case.N, case.K))
    if case.by_hand:
        h = by_hand.choose_residual(case.M, case.K) - 2
        w = by_hand.choose_sums(case.N, case.K, 3) - 4
    elif case.mean or case.fill.startswith("largest"):
        h = np.abs(h) + 0.5
    if case.fill.startswith("largest"):
        w[0 if case.fill == "largest first" else -1] += 600 / case.K
    spoil_row(case, h)
    return round_to(h, case.dtype_of("h")), round_to(w, case.dtype_of("w"))


def _place_rows(name: str, case: LinearCase, values: np.ndarray, spare: int) -> Tensor:
    strides, far = choose_strides(case.layout, values.shape, spare), case.layout == "far"
    rows = case.rows + case.block
    return Tensor(
        name,
        case.dtype_of(name),
        values.shape,
        strides,
        values,
        far,
        size_guard(case.block_k + (0 if far else rows * strides[0])),
    )


def _plan_linear(case: LinearCase, kernel: str, rng: np.random.Generator) -> Plan[LinearCase]:
    h, w = _draw_linear(case, rng)
    target = draw_target(case, np.zeros((case.M, case.N)), rng)
    tensors = (
        _place_rows("h", case, h, spare=3), _place_rows("w", case, w, spare=5),
        place_per_row("target", "int64", case, target),
        place_statistic("loss", case), place_statistic("lse", case),
    )  # fmt: skip
    h64, w64, programs = h.astype(np.float64), w.astype(np.float64), -(-case.M // case.rows)
    inputs = {"h": h64, "w": w64, "target": target}
    with np.errstate(invalid="ignore"):
        x = _compute_logits(h64, w64, case.scale)
        unsure = _compute_logits(np.abs(h64), np.abs(w64), abs(case.scale))
        want = reference.cross_entropy(x, target)
        # an error of a logit counts as much as its softmax
        of_row = (np.exp(x - want.lse[:, None]) * unsure).sum(axis=1)
        terms = 1 + of_row + (np.abs(x.max(axis=1)) + np.abs(want.lse)) / 8
        infinite = case.has_bad_row
        expected = {
            "loss": make_expected(
                want.loss, terms + unsure[np.arange(case.M), target], "fp32", infinite=infinite
            ),
            "lse": make_expected(want.lse, terms, "fp32", infinite=infinite),
        }
    arguments = (
        *(t.name for t in tensors),
        tensors[0].strides[0],
        tensors[1].strides[0],
        case.scale,
        case.M,
        case.N,
        case.K,
    )
    return Plan(
        case, kernel, (programs,), tensors, arguments,
        {"ROWS": case.rows, "BLOCK": case.block, "BLOCK_K": case.block_k}, expected,
        inputs=inputs, reads={"w": programs, "loss": 0, "lse": 0},
        spread=dict.fromkeys(("w", "loss"), programs),
    )  # fmt: skip


def _compute_logits(h: np.ndarray, w: np.ndarray, scale: float) -> np.ndarray:
    return scale * (h[:, None, :] * w[None, :, :]).sum(axis=2)


def _with_logits(p: Plan[LinearCase], x: np.ndarray | None = None) -> Plan[LinearCase]:
    """Return the plan with the logits as x, which are the right ones if there are no others."""
    return replace(
        p,
        inputs=p.inputs
        | {"x": _compute_logits(p.inputs["h"], p.inputs["w"], p.case.scale) if x is None else x},
    )


# wrong logits, of the plan, h and w
_LOGITS: tuple[
    tuple[str, Callable[[Plan[LinearCase], np.ndarray, np.ndarray], np.ndarray]], ...
] = (
    ("scale_misapplied", lambda p, h, w: _compute_logits(h, w, 1.0)),
    ("scale_misapplied", lambda p, h, w: _compute_logits(h, w, p.case.scale**2)),
    ("scale_misapplied", lambda p, h, w: _compute_logits(h, w, 1 / p.case.scale)),
    ("scale_misapplied", lambda p, h, w: _scale_in_every_step(p, h, w)),
    ("product_misread", lambda p, h, w: _compute_logits(h, w, p.case.scale / p.case.K)),
    (
        "product_misread",
        lambda p, h, w: _compute_logits(
            h[:, : p.case.block_k], w[:, : p.case.block_k], p.case.scale
        ),
    ),
    (
        "product_misread",
        lambda p, h, w: _compute_logits(h[:, _last_step(p) :], w[:, _last_step(p) :], p.case.scale),
    ),
    (
        "product_misread",
        lambda p, h, w: _compute_logits(
            h[:, : _full_steps(p)], w[:, : _full_steps(p)], p.case.scale
        ),
    ),
    ("product_misread", lambda p, h, w: p.case.scale * (h[:, None, :] + w[None, :, :]).sum(axis=2)),
    ("product_misread", lambda p, h, w: p.case.scale * (h[:, None, :] * w[None, :, :]).max(axis=2)),
    ("same_row", lambda p, h, w: _compute_logits(h[:1] + 0 * h, w, p.case.scale)),
)


def _scale_in_every_step(p: Plan[LinearCase], h: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Return the logits if scale multiplies, after each step, what has been added up so far."""
    x = np.zeros((len(h), len(w)))
    for at in range(0, p.case.K, p.case.block_k):
        step = slice(at, at + p.case.block_k)
        x = p.case.scale * (x + _compute_logits(h[:, step], w[:, step], 1.0))
    return x


def _last_step(p: Plan[LinearCase]) -> int:
    return (p.case.K - 1) // p.case.block_k * p.case.block_k


def _full_steps(p: Plan[LinearCase]) -> int:
    return p.case.K // p.case.block_k * p.case.block_k


def _scale_at_the_end(p: Plan[LinearCase]) -> Outputs:
    """Return the outputs if scale multiplies lse and the target's logit, and not the logits."""
    bare = compute_wrong(_with_logits(p, _compute_logits(p.inputs["h"], p.inputs["w"], 1.0)))
    return {name: p.case.scale * values for name, values in bare.items()}


def _leave_the_targets_logit(p: Plan[LinearCase]) -> Outputs:
    """Return the outputs if scale does not multiply the target's logit alone."""
    right = compute_wrong(_with_logits(p))
    bare = _compute_logits(p.inputs["h"], p.inputs["w"], 1.0)
    return right | {"loss": right["lse"] - bare[np.arange(p.case.M), p.inputs["target"]]}


def _list_linear_models() -> Iterator[tuple[str, Model]]:
    for cause, logits in _LOGITS:
        yield (
            cause,
            lambda p, logits=logits: compute_wrong(
                _with_logits(p, logits(p, p.inputs["h"], p.inputs["w"]))
            ),
        )
    yield "scale_misapplied", _scale_at_the_end
    yield "scale_misapplied", _leave_the_targets_logit
    for cause, model in list_forward_models():
        yield cause, lambda p, model=model: model(_with_logits(p))
    yield from list_dtype_models(lambda p: compute_wrong(_with_logits(p)), ("h", "w"))


PARTS = {
    "linear_cross_entropy_kernel": Part(
        CASES, _plan_linear, _list_linear_models, unwritten={"lse": "statistics_not_saved"}
    )
}
