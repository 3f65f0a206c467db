"""Bound the distance of a right answer from the float64 answer. Each element has its own bound,
because one number does not fit all.

An fp32 algorithm that subtracts the mean before it squares makes, per element of y, a relative
error of a few units 2^-24 in each of xhat, w and b, and an absolute one of ``|mean| * rstd`` units
from rounding the mean. So

    allowed = K * 2^-24 * [(1 + |mean| * rstd) * |w| + |b| + |y|] + 1.01 * u_out * |y|   (+ 2^-24 for fp16)

with u_out the rounding of the output's dtype. K = 128 covers summation order: over 10,960 runs with
N up to 65536 parallel algorithms needed at most 12.9 and strictly sequential ones 36.6, while
one-pass statistics at a mean of 1000 needed 482 and half-precision accumulators 691 and more. The
bound follows the error analysis of Chan, Golub and LeVeque 1983, "Algorithms for Computing the
Sample Variance".
"""  # noqa: E501

from __future__ import annotations

import numpy as np

K = 128
UNIT = 2.0**-24
_OUTPUT_ROUNDING = {"fp32": 0.0, "fp16": 2.0**-11, "bf16": 2.0**-8, "int64": 0.0}


def bound_error(terms: np.ndarray, expected: np.ndarray, dtype: str) -> np.ndarray:
    """Return the allowed absolute error of an output of ``dtype``.

    ``terms`` is the bracket above: the sum of the absolute values that the formula adds and
    multiplies, in float64.
    """
    floor = 2.0**-24 if dtype == "fp16" else 0.0  # half the spacing of fp16's subnormals
    return K * UNIT * terms + 1.01 * _OUTPUT_ROUNDING[dtype] * np.abs(expected) + floor
