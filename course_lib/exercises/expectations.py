"""Right values with the errors that a right solution may make."""

from __future__ import annotations

import numpy as np

from course_lib.grading.cases.plan import Expected
from course_lib.grading.judging import tolerance


def make_expected(
    values: np.ndarray,
    terms: np.ndarray,
    dtype: str,
    free_row: int | None = None,
    infinite: bool = False,
) -> Expected:
    """Return the values with their allowed errors.

    ``free_row``: this row may hold anything, because right algorithms and GPUs give different
    statistics to a row with a NaN or an Inf.

    ``infinite``: they also differ in whether an Inf ends as Inf or as NaN, where the formula gives
    NaN; and the statement of an exercise may allow both for a NaN, too.
    """
    allowed = np.asarray(tolerance.bound_error(terms, values, dtype))
    if free_row is not None:
        allowed[free_row] = np.nan
    else:
        allowed[np.isnan(allowed)] = np.inf if infinite else 0.0
    return Expected(values, allowed)


def bound_two_sweeps(size: np.ndarray, var: np.ndarray) -> np.ndarray:
    """Return the terms of a variance of rows with the mean absolute value ``size``, computed in two
    sweeps.

    It may have its own roundings, and the square of the mean's error, which the deviations contain.
    """
    return var + tolerance.K * tolerance.UNIT * size**2


def bound_welford(size: np.ndarray, var: np.ndarray) -> np.ndarray:
    """Return the terms of a variance computed by Welford.

    It may have the errors of two sweeps, and the mean's error times a deviation: M2 is computed
    from means that still change.
    """
    return var + size * np.sqrt(var) + tolerance.K * tolerance.UNIT * size**2


def half_ulp(values: np.ndarray, dtype: str) -> np.ndarray:
    """Return half a unit in the last place, the allowed error of an output that must be exact: the
    next value is two of these away."""
    digits = {"fp32": 23, "fp16": 10, "bf16": 7}[dtype]
    smallest = {"fp32": -126, "fp16": -14, "bf16": -126}[dtype]
    with np.errstate(divide="ignore", invalid="ignore"):
        exponent = np.floor(np.log2(np.abs(values)))
    return 0.5 * 2.0 ** (
        np.where(np.isfinite(exponent), np.maximum(exponent, smallest), smallest) - digits
    )
