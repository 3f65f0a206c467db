"""Evidence for causes that no formula reproduces: the size of the errors, and what only the failing
cases have in common.

The set of failing cases proves a cause if exactly the cases with the cause's trait fail, and there
is no rival: no other fact that all failing cases share and all passing cases lack. Otherwise the
verdict describes the failure and names no cause.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from math import sqrt

import numpy as np

from course_lib.base.translation import gettext as _
from course_lib.grading.cases.case import Case
from course_lib.grading.cases.plan import Plan
from course_lib.grading.judging import tolerance
from course_lib.grading.judging.elements import Element
from course_lib.grading.judging.judge import Judged

Trait = Callable[[Case], bool]
_UNITS = {"fp16": 2.0**-11, "bf16": 2.0**-8}
_LARGEST_FP16 = 65504.0
_NEARLY_ALL = 0.9
_QUIET = 2.0**-10


# ---- which cases fail


def is_exactly(trait: Trait, judged: list[Judged], failed: list[Judged]) -> bool:
    """Return True if all failed cases have the trait, no passed case has it, and some case
    passed."""
    passed = [j.plan.case for j in judged if j.passed]
    return bool(passed) and _tells_apart(trait, [j.plan.case for j in failed], passed)


def has_rival(trait: Trait, judged: list[Judged], failed: list[Judged]) -> bool:
    """Return True if another fact than ``trait`` tells the failed cases from the passed ones: a
    size from which on all fail, a dtype, a layout."""
    passed = [j.plan.case for j in judged if j.passed]
    wrong = [j.plan.case for j in failed]
    return any(_tells_apart(rival, wrong, passed) for _words, rival in list_rivals(wrong))


def _tells_apart(trait: Trait, wrong: list[Case], passed: list[Case]) -> bool:
    return all(trait(c) for c in wrong) and not any(trait(c) for c in passed)


def are_vectors(cases: list[Case]) -> bool:
    return all(case.vector for case in cases)


def list_rivals(wrong: list[Case]) -> Iterator[tuple[str, Trait]]:
    """Yield the plain facts that all wrong cases share: the words, and the trait."""
    rows = _("with {count} rows or more"), _("with {count} row"), _("with {count} rows or fewer")
    columns = (
        _("with {count} columns or more"),
        _("with {count} column"),
        _("with {count} columns or fewer"),
    )
    elements = (
        _("with {count} elements or more"),
        _("with {count} element"),
        _("with {count} elements or fewer"),
    )
    for dimension, (at_least, one, at_most) in (
        ("M", rows),
        ("N", elements if are_vectors(wrong) else columns),
    ):
        sizes = [getattr(c, dimension) for c in wrong]
        least, most = min(sizes), max(sizes)
        if least > 1:
            yield at_least.format(count=least), _is_at_least(dimension, least)
        if most <= 2:
            yield (
                (at_most if most > 1 else one).format(count=most),
                lambda c, dimension=dimension, most=most: getattr(c, dimension) <= most,
            )
    for words, trait in (
        (_("in fp16"), lambda c: c.dtype == "fp16"),
        (_("in bf16"), lambda c: c.dtype == "bf16"),
        (_("in half precision"), lambda c: c.dtype != "fp32"),
        (_("with tensors of different dtypes"), lambda c: c.has_mixed_dtypes),
        (_("with an eps of its own"), lambda c: c.eps != 1e-5),
        (_("with a small spread"), lambda c: c.std < 0.1),
        (_("with rows that are all alike"), lambda c: c.fill == "constant"),
        (_("with several rows per program"), lambda c: c.rows > 1),
        (
            _("with one block") if are_vectors(wrong) else _("with one block per row"),
            lambda c: c.one_block,
        ),
        (_("with a mean that is not 0"), lambda c: c.mean != 0),
        (_("with a large mean"), lambda c: abs(c.mean) >= 100 * c.std),
        (_("with rows that do not follow each other"), lambda c: c.layout != "packed"),
    ):
        if all(trait(c) for c in wrong):
            yield words, trait


def _is_at_least(dimension: str, least: int) -> Trait:
    return lambda case: getattr(case, dimension) >= least


# ---- which elements are wrong


def has_only_first_block(judged: Judged) -> bool:
    """Return True if in every wrong output the first block of columns is right, and nearly all
    elements of the other blocks are wrong."""
    return _has_only_block(judged, lambda case: slice(0, case.block))


def has_only_last_block(judged: Judged) -> bool:
    return _has_only_block(
        judged, lambda case: slice((case.N - 1) // case.block * case.block, None)
    )


def _has_only_block(judged: Judged, right: Callable[[Case], slice]) -> bool:
    """Return True if the block ``right`` is right, and nearly all other elements are wrong: a few
    may be right by chance."""
    case, names = judged.plan.case, judged.wrong_outputs
    if case.one_block or not names or not judged.outputs:
        return False
    for name in names:
        wrong = judged.elements[name].wrong
        if wrong.ndim == 0 or wrong.shape[-1] != case.N:
            return False
        others = np.ones(case.N, bool)
        others[right(case)] = False
        # a row of NaN is right in every block
        tells = np.isfinite(judged.plan.expected[name].values)[..., others]
        if (
            wrong[..., ~others].any()
            or not tells.any()
            or wrong[..., others][tells].mean() < _NEARLY_ALL
        ):
            return False
    return True


def is_of_factor(failed: list[Judged]) -> bool:
    """Return True if each wrong output is the right one times one factor, the same for all its
    elements and failed cases, and not 0."""
    if any(j.fault or j.changed or j.outside or j.kinds - {Element.OFF} for j in failed):
        return False
    names = {name for j in failed for name in j.wrong_outputs}
    return all(_is_multiple(name, [j for j in failed if name in j.wrong_outputs]) for name in names)


def _is_multiple(name: str, wrong: list[Judged]) -> bool:
    """Return True if the output is the right one times one factor in at least two cases, and enough
    elements show the factor."""
    pairs = [(j.outputs[name], j.plan.expected[name]) for j in wrong]
    flat = [
        (actual.ravel(), expected.values.ravel(), expected.allowed.ravel())
        for actual, expected in pairs
    ]
    numbers = np.concatenate(flat, axis=1)
    got, want, allowed = numbers[:, np.isfinite(numbers).all(axis=0)]
    distinct = np.abs(want) > _FAR_FROM_ERROR * allowed
    if len(wrong) < 2 or len(np.unique(want[distinct])) < _TELLING:
        return False
    factor = float(np.median(got[distinct] / want[distinct]))
    return bool(factor) and not (np.abs(got - factor * want) > (1 + abs(factor)) * allowed).any()


# an element shows the factor only if its right value is larger than this many allowed errors
_FAR_FROM_ERROR = 100.0
_TELLING = 8  # fewest different values that have to show the factor


# ---- how large the error is


@dataclass(frozen=True)
class _Error:
    """The errors of a wrong output: actual and expected values, and the terms that the expected
    ones are made of. Only elements that are finite and can be wrong are kept."""

    name: str
    actual: np.ndarray
    expected: np.ndarray
    terms: np.ndarray
    # some elements were left out because they are NaN or Inf, or because a sum that is Inf explains
    # them
    saturated: bool

    @property
    def relative(self) -> np.ndarray:
        return np.abs(self.actual - self.expected) / np.maximum(self.terms, 1e-300)


def _list_errors(judged: Judged) -> list[_Error]:
    errors = []
    overflows = _overflows(judged.plan)
    for name in judged.wrong_outputs:
        expected, dtype = judged.plan.expected[name], judged.plan.tensor(name).dtype
        actual = judged.outputs[name]
        usable = np.isfinite(expected.values) & np.isfinite(expected.allowed)
        lost = usable & ~np.isfinite(actual)
        if overflows:  # if the sum is Inf, rstd is 0, and y is only the last summand: b or 0
            after = np.broadcast_to(
                judged.plan.inputs["b"] if name == "y" and "b" in judged.plan.inputs else 0.0,
                actual.shape,
            )
            lost |= usable & (np.abs(actual - after) <= 2.0**-8 * np.abs(after))
        counted = usable & ~lost
        rounding = tolerance.bound_error(np.zeros(()), expected.values[counted], dtype)
        terms = np.maximum(
            (expected.allowed[counted] - rounding) / (tolerance.K * tolerance.UNIT), 0.0
        )
        right = expected.values[counted]
        off = np.maximum(np.abs(actual[counted] - right) - rounding, 0.0)
        signed = right + np.sign(actual[counted] - right) * off
        errors.append(_Error(name, signed, right, terms, bool(lost.any())))
    return errors


def is_of_half_precision(judged: list[Judged], failed: list[Judged]) -> bool:
    """Return True if the errors are those of arithmetic in half precision. There are three such
    patterns:

    - The results are numbers that half precision can hold, and the right ones are not.
    - Only cases with half-precision tensors fail, and the errors are as small as half-precision
      roundings.
    - Cases in fp32 fail as well, with errors as small as those roundings, and the errors go in no
      one direction.

    A result that overflowed counts as such an error only if fp16 overflows on this input.
    """
    failed = [
        j for j in failed if not j.plan.case.has_bad_row and not _becomes_0_in_half(j.plan.case)
    ] or failed
    if any(not j.deviations or Element.UNWRITTEN in j.kinds for j in failed):
        return False
    wrong = sum(int(elements.wrong.sum()) for j in failed for elements in j.elements.values())
    # a few numbers may have few bits by chance
    held = wrong >= _TELLING and all(_is_held_in_half(j) for j in failed)
    return held or _is_of_half_roundings(judged, failed)


def _becomes_0_in_half(case: Case) -> bool:
    """Return True if squares or weights of the case are so small that they become 0 in half
    precision, which is no rounding error."""
    return case.std < _QUIET or case.fill == "tiny weights"


def _is_of_half_roundings(judged: list[Judged], failed: list[Judged]) -> bool:
    """Return True for the second and the third pattern of :func:`is_of_half_precision`."""
    units = [_find_unit(j.plan) for j in failed]
    by_case = [_list_errors(j) for j in failed]
    if not all(
        _is_small(errors, j, unit if all(units) else 2.0**-8)
        for errors, j, unit in zip(by_case, failed, units, strict=True)
    ):
        return False
    errors = [e for errors in by_case for e in errors]
    if all(units):
        return any(e.saturated for e in errors) or _differs_by_dtype_alone(judged, failed)
    passed = sum(j.passed and _is_ordinary(j.plan.case) for j in judged)
    return units.count(0.0) > max(passed, 2) and _has_no_direction(errors)


def _find_unit(plan: Plan) -> float:
    """Return the unit roundoff of the coarsest dtype in the case, 0 if all are fp32."""
    return max((_UNITS.get(tensor.dtype, 0.0) for tensor in plan.tensors), default=0.0)


def _is_ordinary(case: Case) -> bool:
    return not case.has_bad_row and case.fill != "constant" and case.N > 1


def _differs_by_dtype_alone(judged: list[Judged], failed: list[Judged]) -> bool:
    """Return True if no size tells failed cases from passed ones, and at least two cases fail or
    fewer than three are in half precision."""
    half = [j for j in judged if _find_unit(j.plan) and _is_ordinary(j.plan.case)]
    passed = [j.plan.case for j in judged if j.passed]
    wrong = [j.plan.case for j in failed]
    smallest = {dimension: min(getattr(c, dimension) for c in wrong) for dimension in ("M", "N")}
    by_size = any(
        least > 1 and _tells_apart(_is_at_least(dimension, least), wrong, passed)
        for dimension, least in smallest.items()
    )
    return (len(failed) > 1 or len(half) < 3) and not by_size


def _is_small(errors: list[_Error], judged: Judged, unit: float) -> bool:
    """Return True if roundings to ``unit`` explain the errors, and an overflow of fp16 the results
    that are NaN or Inf."""
    # The number of roundings that may add up: a sum rounds once per number, and the errors partly
    # cancel.
    reach = 4 + sqrt(max(judged.plan.case.N, judged.plan.case.M))
    if any(e.saturated for e in errors) and not _overflows(judged.plan):
        return False
    return all((e.relative <= reach * unit).all() for e in errors)


def _has_no_direction(errors: list[_Error]) -> bool:
    """Return True if the errors have no direction: neither up nor down, neither towards 0 nor away
    from it.

    Roundings have no direction, unlike wrong formulas.
    """
    signs = [np.sign(e.actual - e.expected) for e in errors]
    outward = [sign * np.sign(e.expected) for sign, e in zip(signs, errors, strict=True)]
    return all(
        abs(np.mean([part[part != 0].mean() for part in parts if (part != 0).any()] or [1.0])) < 0.5
        for parts in (signs, outward)
    )


def _overflows(plan: Plan) -> bool:
    """Return True if the sum of some row's squares is larger than fp16 holds."""
    if (
        not any(tensor.name == "x" and tensor.dtype == "fp16" for tensor in plan.tensors)
        or "x" not in plan.inputs
    ):
        return False
    return bool((plan.inputs["x"] ** 2).sum(axis=-1).max(initial=0) > _LARGEST_FP16)


def _is_held_in_half(judged: Judged) -> bool:
    """Return True if each wrong output is fp32, near the right one, and fits into fp16 or bf16,
    while the right one does not."""
    for name in judged.wrong_outputs:
        actual, expected = judged.outputs[name], judged.plan.expected[name].values
        if judged.plan.tensor(name).dtype != "fp32" or not np.isfinite(actual).all():
            return False
        if not any(
            _has_few_bits(actual, u)
            and not _has_few_bits(expected, u)
            and _is_near(actual, expected, u)
            for u in _UNITS.values()
        ):
            return False
    return bool(judged.deviations)


def _has_few_bits(values: np.ndarray, unit: float) -> bool:
    scaled = np.frexp(values)[0] / unit
    return bool((scaled == np.round(scaled)).all())


def _is_near(actual: np.ndarray, expected: np.ndarray, unit: float) -> bool:
    return bool((np.abs(actual - expected) <= 4 * unit * np.abs(expected)).all())


def is_of_cancellation(judged: list[Judged], failed: list[Judged]) -> bool:
    """Return True if the errors of the variance are as large as E[x^2] - E[x]^2 makes them: some
    roundings of E[x^2], in rows where these are no longer small beside the variance. Rows whose
    mean is no larger than their spread are right. A merge of sums has no row: there one case whose
    sums lie far out is enough."""
    has_rows = all("x" in j.plan.inputs for j in failed)
    return _loses(judged, failed, lambda x: 0.0, all if has_rows else any)


# Elements of a row that code subtracts because it takes them for a number near the mean
_SHIFTS: tuple[Callable[[np.ndarray], np.ndarray], ...] = (
    lambda x: x[:, :1],
    lambda x: x[:, -1:],
    lambda x: x[:, (x.shape[1] - 1) // 2, None],
    lambda x: x[:, x.shape[1] // 2, None],
)


def is_of_shift(judged: list[Judged], failed: list[Judged]) -> bool:
    """Do as :func:`is_of_cancellation`, for x minus one element of its row. Here the mean may lose
    digits, too: the element is added back to it, and where the mean is large its rounding is in the
    variance, even if the element lies near the others."""
    return all("x" in j.plan.inputs for j in failed) and any(
        _loses(judged, failed, shift, any) for shift in _SHIFTS
    )


def _loses(
    judged: list[Judged],
    failed: list[Judged],
    shift: Callable[[np.ndarray], np.ndarray | float],
    how_many: Callable[[Iterable[bool]], bool],
) -> bool:
    """``how_many`` of the failed cases, all or any, have a row that lies far from what is
    subtracted."""
    far = []
    for j in failed:
        loss = _find_loss(j, shift)
        if loss is None:
            return False
        got, want, squares = loss
        lost = tolerance.UNIT * squares * 8 * (4 + sqrt(j.plan.case.N))
        if "x" in j.plan.inputs:  # the mean is rounded before the distance from it is squared
            mean = j.plan.inputs["x"].mean(axis=1)
            lost = lost + tolerance.UNIT * 8 * np.abs(mean) * np.sqrt(np.maximum(squares - want, 0))
        with np.errstate(invalid="ignore"):
            # A variance that rounding makes negative becomes NaN or Inf in the outputs.
            explained = (np.abs(got - want) <= lost) | (~np.isfinite(got) & (want <= lost))
        if not explained.all():
            return False
        far.append(bool((squares > 25 * want).any()))
    return how_many(far) and any(j.passed for j in judged)


def _find_loss(
    judged: Judged, shift: Callable[[np.ndarray], np.ndarray | float]
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Return per row the variance that the outputs imply, the right variance, and E[(x - shift)^2];
    for a merge sums, not means. Return None if the outputs imply no variance, or are wrong in
    another way as well."""
    outputs, inputs, case = judged.outputs, judged.plan.inputs, judged.plan.case
    if Element.UNWRITTEN in judged.kinds or "n" in judged.wrong_outputs:
        return None
    x = inputs.get("x")
    if "mean" in judged.wrong_outputs and (x is None or not _is_mean_near(judged, shift(x))):
        return None
    if "M2_a" in inputs:
        squares = sum(
            inputs[f"n_{side}"] * inputs[f"mean_{side}"] ** 2 + inputs[f"M2_{side}"]
            for side in "ab"
        )
        return outputs["M2"], judged.plan.expected["M2"].values, np.asarray(squares)
    if "M2s" in inputs:  # chunks of rows, and no x
        squares = (inputs["M2s"].sum(axis=1) + inputs["means"] ** 2 @ inputs["counts"]) / case.N
        # there may be one rstd per row, or one per chunk
        squares = squares.reshape(-1, *(1,) * (outputs["rstd"].ndim - 1))
        want = _find_variance_of_rstd(judged.plan.expected["rstd"].values, case.eps)
        return _find_variance_of_rstd(outputs["rstd"], case.eps), want, squares
    if (
        x is None
        or x.ndim != 2
        or not {"y", "mean", "var", "rstd"}.issuperset(judged.wrong_outputs)
    ):
        return None
    var = x.var(axis=1)
    got = _find_variance(judged, x, var)
    return None if got is None else (got, var, ((x - shift(x)) ** 2).mean(axis=1))


def _find_variance(judged: Judged, x: np.ndarray, var: np.ndarray) -> np.ndarray | None:
    """Return per row the variance that the outputs imply; ``var`` is the right one."""
    if "var" in judged.outputs:
        return judged.outputs["var"]
    if "rstd" in judged.outputs:
        return _find_variance_of_rstd(judged.outputs["rstd"], judged.plan.case.eps)
    if "y" in judged.outputs and "b" in judged.plan.inputs:
        return _find_variance_of_y(judged, x, var)
    return None


def _find_variance_of_rstd(rstd: np.ndarray, eps: float) -> np.ndarray:
    with np.errstate(divide="ignore", invalid="ignore"):
        return 1 / rstd**2 - eps


def _is_mean_near(judged: Judged, shift: np.ndarray | float) -> bool:
    """Return True if the rounding of the shift explains the error of the mean."""
    off = np.abs(judged.outputs["mean"] - judged.plan.expected["mean"].values)
    return bool(
        (
            off <= tolerance.UNIT * 8 * (4 + sqrt(judged.plan.case.N)) * np.abs(shift).reshape(-1)
        ).all()
    )


def _find_variance_of_y(judged: Judged, x: np.ndarray, var: np.ndarray) -> np.ndarray | None:
    """Return the variance that y implies: the one by which x - mean was scaled. Return None if y is
    wrong in another way."""
    with np.errstate(divide="ignore", invalid="ignore"):
        y = (judged.outputs["y"].reshape(x.shape) - judged.plan.inputs["b"]) / judged.plan.inputs[
            "w"
        ]
        centred = x - x.mean(axis=1, keepdims=True)
        scale = (y * centred).sum(axis=1) / np.maximum((centred**2).sum(axis=1), 1e-300)
        if (
            np.abs(y - scale[:, None] * centred)
            > 1e-2 * np.abs(y).max(axis=1, keepdims=True) + 1e-3
        ).any():
            return None
        return np.where(var == 0, 0.0, 1 / scale**2 - judged.plan.case.eps)
