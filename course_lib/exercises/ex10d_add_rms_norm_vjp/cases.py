"""Backward through a residual and its norm (10d): its cases and wrong formulas."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from course_lib.exercises import by_hand
from course_lib.exercises.dx_kernels import RARE, compute_wrong_dx
from course_lib.exercises.expectations import make_expected
from course_lib.exercises.gradients import bound_terms
from course_lib.exercises.tensors import round_values
from course_lib.exercises.vjps import (
    RMS_NORM_CASES,
    RMS_NORM_DX_MISTAKES,
    compute_wrong_sum,
    list_models,
    plan_gradients,
)
from course_lib.exercises.wrong_formulas import change_inputs
from course_lib.grading.cases.buffers import Tensor, compute_strides, round_to
from course_lib.grading.cases.case import Case
from course_lib.grading.cases.plan import Model, Outputs, Part, Plan
from course_lib.norms import reference


def _plan_skip(case: Case, entry_point: str, rng: np.random.Generator) -> Plan:
    """Plan the gradients of RMSNorm where x, a sum, goes on past the norm as well: dskip is the
    gradient that comes back that way."""
    plan = plan_gradients(case, entry_point, rng, reference.rms_norm, reference.rms_norm_vjp)
    dtype, shape = case.dtype_of("x"), (case.M, case.N)
    drawn = by_hand.choose_residual(*shape) if case.by_hand else rng.normal(-0.5, size=shape)
    dskip = round_to(drawn, dtype)
    inputs = plan.inputs | {"dskip": dskip.astype(np.float64)}
    with np.errstate(invalid="ignore"):
        terms = bound_terms(inputs)["dx"] + np.abs(inputs["dskip"])
        dx = make_expected(
            plan.expected["dx"].values + inputs["dskip"],
            terms,
            dtype,
            infinite=case.fill == "inf row",
        )
    tensors = (Tensor("dskip", dtype, shape, compute_strides(shape), dskip), *plan.tensors)
    return replace(
        plan, tensors=tensors, arguments=("dy", "dskip", "x", "w", "rstd"),
        expected=plan.expected | {"dx": dx}, inputs=inputs
    )  # fmt: skip


def _list_skip_models() -> Iterator[tuple[str, Model]]:
    """Yield what is wrong with dskip, and then the wrong gradients of RMSNorm beside a right
    dskip."""
    for skip in (
        lambda p: 0.0,
        lambda p: -p.inputs["dskip"],
        lambda p: 2 * p.inputs["dskip"],
        lambda p: p.inputs["dskip"] * p.inputs["w"],
        lambda p: p.inputs["dskip"] * p.inputs["rstd"][:, None],
        lambda p: p.inputs["dskip"] * p.inputs["w"] * p.inputs["rstd"][:, None],
    ):
        yield "skip_misapplied", lambda p, skip=skip: {"dx": compute_wrong_dx(p) + skip(p)}
    yield "skip_misapplied", lambda p: {"dx": compute_wrong_dx(_add_to_wdy(p))}
    yield "skip_misapplied", lambda p: {"dx": compute_wrong_dx(_add_to_dy(p))}
    yield "skip_in_dw", lambda p: {"dw": compute_wrong_sum(_add_to_dy(p), xhat="xhat")}
    yield "skip_misapplied", lambda p: {"dx": compute_wrong_dx(_add_to_dy(p)) + p.inputs["dskip"]}
    for dtype in ("fp16", "bf16"):
        yield (
            "low_precision",
            lambda p, dtype=dtype: {
                "dx": round_values(compute_wrong_dx(p), dtype) + p.inputs["dskip"]
            },
        )
    for cause, model in list_models(RMS_NORM_DX_MISTAKES):
        yield cause, lambda p, model=model: _add_skip(p, model(p))


def _add_skip(p: Plan, outputs: Outputs) -> Outputs:
    return outputs | {"dx": outputs["dx"] + p.inputs["dskip"]} if "dx" in outputs else outputs


def _add_to_dy(p: Plan) -> Plan:
    return change_inputs(p, dy=p.inputs["dy"] + p.inputs["dskip"])


def _add_to_wdy(p: Plan) -> Plan:
    """Return the plan with dskip in wdy, so that it goes through the projection."""
    both = p.inputs["dy"] * p.inputs["w"] + p.inputs["dskip"]
    return change_inputs(p, dy=both, w=np.ones_like(p.inputs["w"]))


PARTS = {"add_rms_norm_vjp": Part(RMS_NORM_CASES, _plan_skip, _list_skip_models, rare=RARE)}
