"""Wrong formulas, computed in float64: what a kernel with a known bug would give.

If one of them reproduces a learner's outputs in every case, wrong ones and right ones, then that is the bug. Much
stronger evidence than the size of an error, and it needs no look at the code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from course_lib.grading.judge import Judged
from course_lib.grading.plans import Plan

Outputs = dict[str, np.ndarray]
Model = Callable[[Plan], Outputs]

_RELATIVE = {"fp32": 1e-3, "fp16": 2e-3, "bf16": 8e-3}  # outputs of the same wrong formula agree to this


def name_cause(judged: list[Judged]) -> str | None:
    """The cause whose wrong formula reproduces every case that ran, or None."""
    seen = [j for j in judged if j.ran and not j.raised and j.outputs and np.isfinite(j.plan.expected["y"].values).all()]
    if not any(j.deviations for j in seen):
        return None
    with np.errstate(all="ignore"):
        for cause, model in _models(seen[0].plan):
            if all(_reproduces(model(j.plan), j) for j in seen):
                return cause
    return None


def _reproduces(predicted: Outputs, judged: Judged) -> bool:
    if any(deviation.output not in predicted for deviation in judged.deviations):
        return False
    for name, values in predicted.items():
        actual, allowed = judged.outputs[name], judged.plan.expected[name].allowed
        dtype = judged.plan.tensor(name).dtype
        values = np.where(np.abs(values) > 65504, np.sign(values) * np.inf, values) if dtype == "fp16" else values
        close = np.abs(actual - values) <= 2 * allowed + _RELATIVE[dtype] * np.abs(values)
        same = close | (actual == values) | (~np.isfinite(values) & ~np.isfinite(actual))
        if not same.all():
            return False
    return True


def _models(plan: Plan) -> Iterator[tuple[str, Model]]:
    if "mean" in plan.expected:
        yield from _layer_norm_models()
    elif "rstd" in plan.expected:
        yield from _rms_norm_models()
        if "total" in plan.expected:
            yield "residual_ignored", lambda p: _rms_norm(p, x=p.inputs["first"])
            yield "residual_ignored", lambda p: {"total": p.inputs["first"], **_rms_norm(p, x=p.inputs["first"])}
            yield "unrounded_total", lambda p: _rms_norm(p, x=p.inputs["exact"])


def _layer_norm_models() -> Iterator[tuple[str, Model]]:
    yield "padding_in_variance", lambda p: _layer_norm(p, padding=True)
    yield "unbiased_variance", lambda p: _layer_norm(p, var_divisor="N-1")
    yield "eps_missing", lambda p: _layer_norm(p, eps=0.0)
    yield "eps_outside", lambda p: _layer_norm(p, root=lambda v, eps: 1 / (np.sqrt(v) + eps))
    for fixed in (1e-5, 1e-6, 1e-8, 1e-12):
        yield "eps_hard_coded", lambda p, fixed=fixed: _layer_norm(p, eps=fixed)
    yield "root_missing", lambda p: _layer_norm(p, root=lambda v, eps: 1 / (v + eps))
    for mean_divisor in ("N", "BLOCK", "lanes", "1"):
        for var_divisor in ("N", "BLOCK", "lanes", "1"):
            for padding in (False, True):
                if (mean_divisor, var_divisor) != ("N", "N"):
                    yield (
                        "divisor",
                        lambda p, m=mean_divisor, v=var_divisor, z=padding: _layer_norm(p, mean_divisor=m, var_divisor=v, padding=z),
                    )
    yield "w_ignored", lambda p: _layer_norm(p, w=1.0)
    yield "b_ignored", lambda p: _layer_norm(p, b=0.0)
    yield "w_twice", lambda p: _layer_norm(p, w=p.inputs["w"] ** 2)
    yield "mean_not_subtracted", lambda p: _layer_norm(p, centre=0.0)
    for which in ("both", "mean", "variance"):
        yield "block_not_accumulated", lambda p, which=which: _layer_norm(p, last_block=which)
    yield "wrong_statistic_saved", lambda p: _layer_norm(p, save=lambda v, eps: v)
    yield "wrong_statistic_saved", lambda p: _layer_norm(p, save=lambda v, eps: v + eps)
    yield "wrong_statistic_saved", lambda p: _layer_norm(p, save=lambda v, eps: np.sqrt(v + eps))


def _rms_norm_models() -> Iterator[tuple[str, Model]]:
    yield "eps_missing", lambda p: _rms_norm(p, eps=0.0)
    yield "eps_outside", lambda p: _rms_norm(p, root=lambda v, eps: 1 / (np.sqrt(v) + eps))
    for fixed in (1e-5, 1e-6, 1e-8, 1e-12):
        yield "eps_hard_coded", lambda p, fixed=fixed: _rms_norm(p, eps=fixed)
    yield "root_missing", lambda p: _rms_norm(p, root=lambda v, eps: 1 / (v + eps))
    for divisor in ("BLOCK", "lanes", "1"):
        yield "divisor", lambda p, d=divisor: _rms_norm(p, divisor=d)
    yield "unbiased_variance", lambda p: _rms_norm(p, divisor="N-1")
    yield "w_ignored", lambda p: _rms_norm(p, w=1.0)
    yield "w_twice", lambda p: _rms_norm(p, w=p.inputs["w"] ** 2)
    yield "mean_subtracted", lambda p: _rms_norm(p, x=p.inputs["x"] - p.inputs["x"].mean(axis=1, keepdims=True))
    yield "wrong_statistic_saved", lambda p: _rms_norm(p, save=lambda v, eps: v)
    yield "wrong_statistic_saved", lambda p: _rms_norm(p, save=lambda v, eps: np.sqrt(v + eps))


def _inverse_root(v, eps):
    return 1 / np.sqrt(v + eps)


def _layer_norm(
    p: Plan, *, mean_divisor="N", var_divisor="N", padding=False, eps=None, root=_inverse_root, save=None, w=None, b=None, centre=None, last_block=""
) -> Outputs:  # fmt: skip
    x, eps = p.inputs["x"], p.case.eps if eps is None else eps
    last = x[:, (x.shape[1] - 1) // p.case.block * p.case.block :]
    mean = (last if last_block in ("both", "mean") else x).sum(axis=1, keepdims=True) / _divisor(p, mean_divisor)
    squares = (((last if last_block in ("both", "variance") else x) - mean) ** 2).sum(axis=1, keepdims=True)
    if padding:
        squares = squares + p.case.padded_lanes * mean**2
    var = squares / _divisor(p, var_divisor)
    rstd = root(var, eps)
    y = (x - (mean if centre is None else centre)) * rstd * (p.inputs["w"] if w is None else w) + (p.inputs["b"] if b is None else b)
    return {"y": y, "mean": mean[:, 0], "rstd": (rstd if save is None else save(var, eps))[:, 0]}


def _rms_norm(p: Plan, *, x=None, divisor="N", eps=None, root=_inverse_root, save=None, w=None) -> Outputs:
    x, eps = p.inputs["x"] if x is None else x, p.case.eps if eps is None else eps
    square = (x**2).sum(axis=1, keepdims=True) / _divisor(p, divisor)
    rstd = root(square, eps)
    return {"y": x * rstd * (p.inputs["w"] if w is None else w), "rstd": (rstd if save is None else save(square, eps))[:, 0]}


def _divisor(p: Plan, which: str) -> float:
    N, block = p.case.N, p.case.block
    return np.float64({"N": N, "N-1": N - 1, "BLOCK": block, "lanes": N + p.case.padded_lanes, "1": 1}[which])
