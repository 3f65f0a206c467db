"""Name the cause by wrong formulas. A wrong formula computes the outputs of a solution with a known
bug, in float64; see exercises/.

A formula is the bug if it reproduces the learner's outputs in every case, wrong and right ones, and
if the wrong elements lie much nearer to it than to the right answer. This is much stronger evidence
than the size of an error, and it does not look at the code.
"""

from __future__ import annotations

import numpy as np

from course_lib.grading.cases.buffers import round_to
from course_lib.grading.cases.plan import Model, Outputs, Part
from course_lib.grading.judging.judge import Judged
from course_lib.launching.faults import FaultKind

# relative difference allowed between an output and a model's
_RELATIVE = {"fp32": 1e-3, "fp16": 2e-3, "bf16": 8e-3, "int64": 0.0}
_OF_LARGEST = 1e-5
_NEARER = 0.25  # a distance counts as nearer if it is at most this part of the other distance
# largest distance, in allowed errors: it would be infinite for an element that allows no error
_FAR = 1e9


def name_cause(judged: list[Judged], parts: dict[str, Part]) -> str | None:
    """Return the cause whose wrong formula explains every case of the first entry point that is
    wrong, or None.

    If several formulas do, the first one counts, unless a later one is much nearer: an exercise
    lists the likelier first, and formulas that are equal on paper are equally near. A formula may
    explain some outputs only. If none explains all wrong outputs, each wrong output needs a
    formula, and the cause is that of the first wrong output.
    """
    for entry_point, part in parts.items():
        seen = [j for j in judged if j.plan.entry_point == entry_point and _is_comparable(j)]
        inside = [j for j in seen if j.fault is None or j.fault.kind is not FaultKind.LOAD]
        if sum(bool(j.deviations) for j in inside) > len(seen) - len(inside):
            # no formula predicts what a load outside a tensor reads, and most wrong cases have no
            # such load
            seen = inside
        # Wrong cases come first, the smallest ones first: they rule out a model at the least cost.
        seen.sort(key=lambda j: (not j.deviations, j.plan.case.M * j.plan.case.N))
        if any(j.deviations for j in seen):
            with np.errstate(all="ignore"):
                return _find_nearest(part, seen)
    return None


def _find_nearest(part: Part, seen: list[Judged]) -> str | None:
    wrong = list(
        dict.fromkeys(
            d.output
            for name in seen[0].outputs
            for j in seen
            for d in j.deviations
            if d.output == name
        )
    )
    whole = frozenset(wrong)
    nearest: dict[frozenset[str], tuple[float, str]] = {}  # outputs -> distance, cause
    for cause, model in part.models():
        names = whole.intersection(model(seen[0].plan))
        limit = nearest[names][0] * _NEARER if names in nearest else np.inf
        distance = _measure(model, seen, limit) if names else None
        if distance is not None:
            nearest[names] = distance, cause
    if whole in nearest:
        return nearest[whole][1]
    of_first = next((cause for names, (_, cause) in nearest.items() if wrong[0] in names), None)
    return of_first if frozenset().union(*nearest) == whole else None


def _measure(model: Model, seen: list[Judged], limit: float) -> float | None:
    """Return the distance of the wrong outputs from the model's, as a part of their distance from
    the right ones.

    Return None if the model does not explain every case, or if the distance is not below ``limit``.
    Distances are in allowed errors, so that the cases with the clearest errors weigh most.
    """
    from_model = from_right = 0.0
    for judged in seen:
        predicted = model(judged.plan)
        if not _reproduces(predicted, judged):
            return None
        for name in {deviation.output for deviation in judged.deviations} & predicted.keys():
            actual, expected = judged.outputs[name], judged.plan.expected[name]
            off = np.abs(actual - expected.values) / expected.allowed
            wrong = (off > 1) & np.isfinite(off)
            stored = round_to(predicted[name], judged.plan.tensor(name).dtype).astype(np.float64)
            # both distances get the same weight, so their ratio stays
            weight = np.minimum(off[wrong], _FAR) / off[wrong]
            from_right += float((off[wrong] * weight).sum())
            from_model += float(
                np.minimum(
                    np.abs(actual - stored)[wrong] / expected.allowed[wrong] * weight, _FAR
                ).sum()
            )
    # no wrong element is finite: the model explains them if it makes no right element infinite
    if not from_right:
        rivalled = limit == 0 or any(
            _is_infinite_where_right(model(judged.plan), judged) for judged in seen
        )
        return None if rivalled else 0.0
    distance = from_model / from_right
    return distance if distance <= _NEARER and distance < limit else None


def _is_infinite_where_right(predicted: Outputs, judged: Judged) -> bool:
    expected = judged.plan.expected
    return any(
        (
            np.isinf(values)
            & (np.abs(judged.outputs[name] - expected[name].values) <= expected[name].allowed)
        ).any()
        for name, values in predicted.items()
    )


def _is_comparable(judged: Judged) -> bool:
    finite = all(np.isfinite(expected.values).all() for expected in judged.plan.expected.values())
    # In a sampled plan most rows hold the expected values, not the learner's.
    return (
        judged.ran
        and not judged.raised
        and bool(judged.outputs)
        and finite
        and not judged.plan.sample
    )


def _reproduces(predicted: Outputs, judged: Judged) -> bool:
    for name, values in predicted.items():
        actual, allowed = judged.outputs[name], judged.plan.expected[name].allowed
        dtype = judged.plan.tensor(name).dtype
        values = (
            np.where(np.abs(values) > 65504, np.sign(values) * np.inf, values)
            if dtype == "fp16"
            else values
        )
        # a wrong formula's sums may round more than the right ones
        largest = np.abs(values[np.isfinite(values)]).max(initial=0.0)
        close = (
            np.abs(actual - values)
            <= 2 * allowed + _RELATIVE[dtype] * np.abs(values) + _OF_LARGEST * largest
        )
        same = close | (actual == values) | (~np.isfinite(values) & ~np.isfinite(actual))
        if not same.all():
            return False
    return True
