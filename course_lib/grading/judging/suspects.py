"""Wrong formulas, computed in float64: what a solution with a known bug would give. They stand with their families.

If one of them reproduces a learner's outputs in every case, wrong ones and right ones, then that is the bug. Much
stronger evidence than the size of an error, and it needs no look at the code.
"""

from __future__ import annotations

import numpy as np

from course_lib.grading.cases.plan import Outputs, Part
from course_lib.grading.judging.judge import Judged

_RELATIVE = {"fp32": 1e-3, "fp16": 2e-3, "bf16": 8e-3}  # outputs of the same wrong formula agree to this


def name_cause(judged: list[Judged], parts: dict[str, Part]) -> str | None:
    """The cause whose wrong formula reproduces every case of the first entry point that is wrong, or None."""
    for entry_point, part in parts.items():
        seen = [j for j in judged if j.plan.entry_point == entry_point and _is_comparable(j)]
        if not any(j.deviations for j in seen):
            continue
        with np.errstate(all="ignore"):
            for cause, model in part.models():
                if all(_reproduces(model(j.plan), j) for j in seen):
                    return cause
        return None
    return None


def _is_comparable(judged: Judged) -> bool:
    finite = all(np.isfinite(expected.values).all() for expected in judged.plan.expected.values())
    return judged.ran and not judged.raised and bool(judged.outputs) and finite


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
