"""Cross entropy of a long row (18a): its cases and wrong formulas."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from course_lib.exercises.batteries import name_cases
from course_lib.exercises.cross_entropy import (
    FORBIDDEN,
    LONG_ROW_CASES,
    TARGETS,
    draw_logits,
    draw_target,
    list_forward_models,
    place_per_row,
    plan_forward,
)
from course_lib.exercises.expectations import make_expected
from course_lib.exercises.tensors import place_matrix
from course_lib.exercises.wrong_formulas import (
    change_inputs,
    list_dtype_models,
    repeat_first_row,
    vary,
)
from course_lib.grading.cases.buffers import round_to
from course_lib.grading.cases.case import Case
from course_lib.grading.cases.plan import Expected, Model, Outputs, Part, Plan
from course_lib.norms import reference


def _plan_backward(case: Case, kernel: str, rng: np.random.Generator) -> Plan:
    """Plan the backward kernel. The NaN of a bad row is in dloss: one in x would already be in lse.
    The dloss of row 3 is 0."""
    x = draw_logits(replace(case, fill="normal") if case.has_bad_row else case, rng)
    target = draw_target(case, x, rng)
    dloss = (
        np.arange(case.M) % 5 + 1.0
        if case.by_hand
        else rng.uniform(0.5, 2, size=case.M) * rng.choice([-1, 1], size=case.M)
    )
    if not case.by_hand:
        dloss[3:4] = 0
    if case.has_bad_row:
        dloss[case.bad_row] = np.nan if case.fill == "nan row" else np.inf
    dloss, x64 = round_to(dloss, "fp32"), x.astype(np.float64)
    lse = round_to(reference.cross_entropy(x64, target).lse, "fp32")
    tensors = (
        place_per_row("dloss", "fp32", case, dloss), place_matrix("x", case, x, spare=3),
        place_per_row("target", "int64", case, target), place_per_row("lse", "fp32", case, lse),
        place_matrix("dx", case, None, spare=9),
    )  # fmt: skip
    inputs = {
        "dloss": dloss.astype(np.float64),
        "x": x64,
        "target": target,
        "lse": lse.astype(np.float64),
    }
    return Plan(
        case, kernel, (case.M,), tensors,
        (*(t.name for t in tensors), tensors[1].strides[0], tensors[-1].strides[0], case.N),
        {"BLOCK": case.block}, {"dx": _expect_dx(case, inputs)}, inputs=inputs,
        reads={"x": 1, "dx": 0},
        spread=dict.fromkeys(("x", "dx"), case.M),
    )  # fmt: skip


def _expect_dx(case: Case, inputs: Outputs) -> Expected:
    """Return dx with its allowed errors: lse has a rounding error, which softmax takes over as a
    relative one."""
    x, dloss, lse = inputs["x"], inputs["dloss"][:, None], inputs["lse"][:, None]
    with np.errstate(invalid="ignore"):
        dx = reference.cross_entropy_vjp(inputs["dloss"], x, inputs["target"])
        softmax = np.exp(x - lse)
        unsure = np.where(softmax > 0, np.abs(np.where(softmax > 0, x, 0.0)) + np.abs(lse), 0.0) / 8
        terms = (
            np.abs(dloss) * (softmax * (1 + unsure) + _mark(inputs["target"], case.N)) + 2.0**-126
        )
    return make_expected(dx, terms, case.dtype_of("dx"), infinite=case.has_bad_row)


def _mark(target: np.ndarray, N: int) -> np.ndarray:
    """Return (M, N) with a 1 in the target's column of each row, and 0 elsewhere. A target outside
    of the row has no 1."""
    return (np.arange(N) == target[:, None]).astype(np.float64)


# ---- wrong formulas of the backward pass


def _compute_wrong_dx(
    p: Plan, *, softmax: Callable | None = None, hot: float = 1.0,
    target: Callable[[Plan], np.ndarray] | None = None, of_hot: bool = True,
    of_softmax: bool = True, sign: int = 1, dloss: Callable[[Plan], np.ndarray] | None = None,
    every_block: bool = False,
) -> Outputs:  # fmt: skip
    """Return dx with something wrong in it.

    ``softmax``: what stands for it, of x and lse. ``hot``: what is subtracted in the target's
    column. ``of_hot`` and ``of_softmax``: whether dloss multiplies this term. ``every_block``: the
    target is compared with the number of the lane, not of the column.
    """
    x, lse = p.inputs["x"], p.inputs["lse"][:, None]
    softmax_values = np.exp(x - lse) if softmax is None else softmax(x, lse)
    mark = _mark(p.inputs["target"] if target is None else target(p), p.case.N)
    if every_block:
        mark = _mark(p.inputs["target"], p.case.block)[:, np.arange(p.case.N) % p.case.block]
    scale = (p.inputs["dloss"] if dloss is None else dloss(p))[:, None]
    dx = sign * (
        (scale if of_softmax else 1) * softmax_values - (scale if of_hot else 1) * hot * mark
    )
    # fp32, so that it overflows where a kernel's does
    return {"dx": dx.astype(np.float32).astype(np.float64)}


_SOFTMAXES: tuple[Callable[[np.ndarray, np.ndarray], np.ndarray], ...] = (
    lambda x, lse: x - lse,
    lambda x, lse: np.exp((x + 0 * lse).astype(np.float32)).astype(np.float64),
    lambda x, lse: np.exp((lse - x).astype(np.float32)).astype(np.float64),
    lambda x, lse: np.exp((x + lse).astype(np.float32)).astype(np.float64),
    lambda x, lse: np.exp2(x - lse),
    lambda x, lse: np.exp(x - x.max(axis=1, keepdims=True)),
    lambda x, lse: np.exp(x - lse) * (1 - np.exp(x - lse)),
    lambda x, lse: np.exp(x) / lse,
    lambda x, lse: 0 * x,
)


def _divide_exponentials(x: np.ndarray, lse: np.ndarray) -> np.ndarray:
    """Return the softmax as the quotient of two exponentials, in fp32, where they overflow."""
    return (np.exp(x.astype(np.float32)) / np.exp(lse.astype(np.float32))).astype(np.float64)


def _list_backward_models() -> Iterator[tuple[str, Model]]:
    wrong = partial(vary, _compute_wrong_dx)
    yield from wrong("onehot_misapplied", hot=[0.0, -1.0, 2.0])
    yield from wrong("onehot_misapplied", sign=[-1], hot=[1.0, -1.0])
    yield (
        "onehot_misapplied",
        lambda p: {
            "dx": np.where(
                _mark(p.inputs["target"], p.case.N),
                -p.inputs["dloss"][:, None],
                _compute_wrong_dx(p)["dx"],
            )
        },
    )
    yield from wrong("dloss_misapplied", of_hot=[True, False], of_softmax=[False])
    yield from wrong("dloss_misapplied", of_hot=[False])
    for dloss in (
        lambda p: np.full(p.case.M, p.inputs["dloss"][0]),
        lambda p: p.inputs["dloss"] / p.case.M,
        lambda p: p.inputs["dloss"] / p.case.N,
    ):
        yield "dloss_misapplied", partial(_compute_wrong_dx, dloss=dloss)
    yield from wrong("softmax_misread", softmax=_SOFTMAXES)
    yield (
        "softmax_misread",
        lambda p: _compute_wrong_dx(p, softmax=lambda x, lse: np.exp(x - lse) / p.case.N),
    )
    yield from wrong("exp_overflow", softmax=[_divide_exponentials])
    yield (
        "statistics_of_another_row",
        lambda p: _compute_wrong_dx(change_inputs(p, lse=0 * p.inputs["lse"] + p.inputs["lse"][0])),
    )
    # a column that the row has not is found nowhere, or counted from the end
    yield from wrong("target_misread", target=TARGETS)
    yield from wrong("target_misread", target=[lambda p: p.inputs["target"] - 1])
    yield from wrong(
        "target_misread",
        target=[lambda p, target=target: target(p) % p.case.N for target in TARGETS],
    )
    yield from wrong("target_misread", every_block=[True])
    yield (
        "target_misread",
        lambda p: _compute_wrong_dx(
            p,
            target=lambda p: np.where(
                p.inputs["target"] < p.case.block, p.inputs["target"], p.case.N
            ),
        ),
    )
    yield from list_dtype_models(_compute_wrong_dx, ("x", "lse"))
    yield "same_row", lambda p: _compute_wrong_dx(repeat_first_row(p, "x"))


FORWARD = name_cases("cross_entropy_kernel", LONG_ROW_CASES)
BACKWARD = name_cases(
    "cross_entropy_dx_kernel",
    tuple(
        case
        for case in LONG_ROW_CASES
        if case.name not in ("one full block", "bf16, 4096 equal chances", "largest first")
    ),
)


PARTS = {
    "cross_entropy_kernel": Part(
        FORWARD,
        plan_forward,
        list_forward_models,
        rare=FORBIDDEN,
        unwritten={"lse": "statistics_not_saved"},
    ),
    "cross_entropy_dx_kernel": Part(
        BACKWARD, _plan_backward, _list_backward_models, rare=FORBIDDEN
    ),
}
