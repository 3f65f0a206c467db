"""Lesson 03: the error of each variance algorithm as the mean moves away from zero, as plain
data."""

from __future__ import annotations

import functools
import math
from typing import Any

import ml_dtypes
import numpy as np

from course_lib.base.errors import CourseError
from course_lib.base.translation import gettext as _
from course_lib.base.translation import mark as N_
from course_lib.base.words import list_words
from course_lib.norms import statistics

DTYPES = {"fp16": np.float16, "bf16": ml_dtypes.bfloat16, "fp32": np.float32}
NAMES = {
    "naive": N_("naive, op by op"),
    "one_pass": N_("one-pass"),
    "shifted": N_("shifted one-pass"),
    "two_pass": N_("two-pass"),
    "welford": "Welford",
    "chan": N_("Chan merge"),
}
ORDERS = (N_("sequential"), N_("pairwise"))
UNORDERED = ("welford", "chan")  # algorithms that fix their own order of additions
RATIOS = (0.0, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0, 10000.0, 30000.0)
COLUMNS = (64, 1024, 8192)
EPS = 1e-5
ROWS = 4  # rows per ratio; a point of a curve is the worst of them
SHOWN = 12  # elements of y in the picture

# algorithms that compute E[x^2] - E[x]^2: of x (False), or of x minus its first element (True)
_DIFFERENCES = {"one_pass": False, "shifted": True}


def make_data(mean_over_std: float, n: int, dtype: str, algorithm: str) -> dict[str, Any]:
    """Return the data of all settings for ``picture.js``. The first call takes seconds; later ones
    use the cache.

    ``curves`` has one value per ratio. ``rows`` and ``true`` have entries per dtype and N, with
    ROWS rows per ratio. ``rows`` holds each row's first SHOWN elements minus the ratio; ``true``
    holds (mean minus the ratio, variance), computed in float64.

    Raises: CourseError if an argument is unknown, n is below 2, or mean_over_std negative or
    infinite.
    """
    if algorithm not in NAMES or dtype not in DTYPES or n < 2 or not 0 <= mean_over_std < math.inf:
        words = _(
            "the cancellation explorer knows the algorithms {algorithms}, the dtypes {dtypes}, N"
            " from 2 and mean/std from 0; you asked for {algorithm!r}, {dtype!r}, N = {n}, mean/std"
            " = {ratio}."
        )
        choices = {"algorithms": list_words(NAMES), "dtypes": list_words(DTYPES)}
        raise CourseError(
            words.format(**choices, algorithm=algorithm, dtype=dtype, n=n, ratio=mean_over_std)
        )
    ratios = tuple(sorted({*RATIOS, float(mean_over_std)}))
    columns = sorted({*COLUMNS, n})
    rows, true, curves = {}, {}, {}
    for d in DTYPES:
        for c in columns:
            x64 = make_rows(ratios, c, d).astype(np.float64) - np.array(ratios)[:, None, None]
            rows[f"{d}|{c}"] = np.round(x64[..., :SHOWN], 5).tolist()
            true[f"{d}|{c}"] = _shorten(np.stack([x64.mean(-1), x64.var(-1)], axis=-1)).tolist()
            for name in NAMES:
                for order in ORDERS if name not in UNORDERED else ORDERS[1:]:
                    curves[f"{name}|{order}|{d}|{c}"] = compute_curve(name, order, d, c, ratios)
    return {
        "start": {"algorithm": algorithm, "order": "pairwise", "dtype": dtype, "n": n,
            "ratio": float(mean_over_std), "clamp": False},
        "names": {key: _(name) for key, name in NAMES.items()},
        "ordered": [name for name in NAMES if name not in UNORDERED],
        "orders": {order: _(order) for order in ORDERS}, "dtypes": list(DTYPES), "columns": columns,
        "ratios": ratios, "eps": EPS,
        "rows": rows, "true": true, "curves": curves,
    }  # fmt: skip


@functools.cache
def make_rows(ratios: tuple[float, ...], n: int, dtype: str) -> np.ndarray:
    """Return normal numbers of std 1 around each ratio, of shape (ratios, ROWS, n) in ``dtype``;
    the noise is the same at every ratio."""
    noise = np.random.default_rng(n).standard_normal((ROWS, n))
    return (noise + np.array(ratios)[:, None, None]).astype(DTYPES[dtype])


@functools.cache
def compute_curve(
    algorithm: str, order: str, dtype: str, n: int, ratios: tuple[float, ...]
) -> dict[str, list]:
    """Describe for each ratio the row whose variance has the largest error.

    The result has the row's number, its mean minus the ratio and var, both as computed in
    ``dtype``, and the bound on the relative error of var. For the algorithms in _DIFFERENCES it
    also has ``terms``: E[x^2] and E[x]^2.
    """
    x = make_rows(ratios, n, dtype)
    x64 = x.astype(np.float64)
    with np.errstate(all="ignore"):
        mean, var = (
            part.astype(np.float64)
            for part in statistics.compute(algorithm, x, DTYPES[dtype], order)
        )
        error = np.abs(var - x64.var(-1)) / x64.var(-1)
    error = np.where(np.isfinite(var), np.where(var == x64.var(-1), 0.0, error), np.inf)
    worst = error.argmax(axis=1)
    at = np.arange(len(ratios)), worst
    curve = {
        "row": worst.tolist(),
        "mean": _shorten(mean[at] - np.array(ratios)).tolist(),
        "var": _shorten(var[at]).tolist(),
        "bound": (
            _shorten(np.array([_bound(algorithm, order, dtype, row) for row in x[at]]), 3).tolist()
        ),
    }
    if algorithm in _DIFFERENCES:
        curve["terms"] = _subtract_terms(x[at], order, shifted=_DIFFERENCES[algorithm]).tolist()
    return curve


def _shorten(values: np.ndarray, digits: int = 10) -> np.ndarray:
    """Drop the digits that no picture shows, to keep the page small."""
    return np.vectorize(lambda value: float(f"{value:.{digits}g}"))(values)


def _subtract_terms(x: np.ndarray, order: str, *, shifted: bool) -> np.ndarray:
    """Return E[x^2] and E[x]^2 of each row, rounded as in ``statistics.one_pass`` before it
    subtracts them."""
    with np.errstate(all="ignore"):
        x = x - x[..., :1] if shifted else x
        n = np.asarray(x.shape[-1]).astype(x.dtype)
        mean = statistics.total(x, order) / n
        return np.stack([statistics.total(x * x, order) / n, mean * mean], axis=-1).astype(
            np.float64
        )


def _bound(algorithm: str, order: str, dtype: str, row: np.ndarray) -> float:
    shift = row[0] if algorithm == "shifted" else 0.0
    kappa = float(statistics.condition_number(row.astype(np.float64), np.float64(shift)))
    return statistics.bound(
        algorithm, len(row), kappa, statistics.unit_roundoff(DTYPES[dtype]), order
    )
