"""Lesson 03: how much of a variance each algorithm loses as the mean moves away, and what LayerNorm makes of it: what is shown, as plain data."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import ml_dtypes
import numpy as np

from course_lib.base.errors import CourseError
from course_lib.norms import statistics

DTYPES = {"fp16": np.float16, "bf16": ml_dtypes.bfloat16, "fp32": np.float32}
NAMES = {
    "naive": "naive, op by op",
    "one_pass": "one-pass",
    "shifted": "shifted one-pass",
    "two_pass": "two-pass",
    "welford": "Welford",
    "chan": "Chan merge",
}
ORDERS = ("sequential", "pairwise")
RATIOS = (0.0, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0, 10000.0, 30000.0)
COLUMNS = (16, 64, 256, 1024, 4096, 8192)
EPS = 1e-5
ROWS = 4  # a point is the worst of that many rows
SHOWN = 64  # elements of y in the picture


@dataclass(frozen=True)
class Point:
    """One mean/std: the worst of a few rows. ``error`` is |computed - true| / true, infinite where the result is no number."""

    ratio: float
    error: float
    bound: float  # of the worst-conditioned row
    negative: bool  # the computed variance of some row is below 0
    finite: bool


@dataclass(frozen=True)
class Row:
    """The worst row at the chosen mean/std, and LayerNorm of it with the computed statistics, all else in float64."""

    kappa: float
    true: float
    computed: float
    bound: float
    y_true: tuple[float, ...]
    y: tuple[float, ...]  # NaN where the root of a negative number was taken
    mean_square_true: float  # of all of y, not only of what is shown
    mean_square: float

    @property
    def error(self) -> float:
        return _relative(self.computed, self.true)

    @property
    def scale(self) -> float:
        """How much larger y is than it should be; NaN if it is no number."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return float(np.sqrt((self.true + EPS) / np.float64(self.computed + EPS)))


@dataclass(frozen=True)
class Exploration:
    """All that one setting shows."""

    algorithm: str
    order: str
    dtype: str
    n: int
    ratio: float
    clamp: bool
    points: tuple[Point, ...]
    row: Row


def model(
    algorithm: str, ratio: float, n: int, dtype: str, order: str = "pairwise", clamp: bool = False
) -> Exploration:
    """Compute the variance of rows with mean ``ratio`` and std 1, stored and computed in ``dtype``, and compare with float64.

    What storing the rows in dtype does to them is not counted: the true variance is that of the stored row.

    Args:
        algorithm: one of NAMES.
        order: of the sums; means nothing to "welford" and "chan".
        clamp: a negative variance becomes 0 before LayerNorm takes its root.

    Raises: CourseError if an argument is unknown, n is below 2, or ratio negative.
    """
    if algorithm not in NAMES or dtype not in DTYPES or order not in ORDERS or n < 2 or not 0 <= ratio < math.inf:
        raise CourseError(
            f"the cancellation explorer knows the algorithms {', '.join(NAMES)}, the dtypes {', '.join(DTYPES)}, the orders "
            f"{', '.join(ORDERS)}, N from 2 and mean/std from 0; you asked for {algorithm!r}, {dtype!r}, {order!r}, "
            f"N = {n}, mean/std = {ratio}."
        )
    points, row = _measure(algorithm, float(ratio), n, dtype, order)
    if clamp and row.computed < 0:
        row = _row(algorithm, order, dtype, n, ratio, clamp=True)
    return Exploration(algorithm, order, dtype, n, float(ratio), clamp, points, row)


@functools.lru_cache(maxsize=64)
def _measure(algorithm: str, ratio: float, n: int, dtype: str, order: str) -> tuple[tuple[Point, ...], Row]:
    return _curve(algorithm, order, dtype, n), _row(algorithm, order, dtype, n, ratio)


@functools.lru_cache(maxsize=64)
def _curve(algorithm: str, order: str, dtype: str, n: int) -> tuple[Point, ...]:
    x = np.stack([_data(n, ratio, dtype) for ratio in RATIOS])  # (ratios, ROWS, n)
    true = x.astype(np.float64).var(axis=-1)
    with np.errstate(all="ignore"):
        computed = statistics.compute(algorithm, x, DTYPES[dtype], order).var.astype(np.float64)
    return tuple(_point(algorithm, order, dtype, r, x[i], true[i], computed[i]) for i, r in enumerate(RATIOS))


def _point(
    algorithm: str, order: str, dtype: str, ratio: float, x: np.ndarray, true: np.ndarray, computed: np.ndarray
) -> Point:
    errors = [_relative(float(c), float(t)) for c, t in zip(computed, true, strict=True)]
    bounds = [_bound(algorithm, order, dtype, row) for row in x]
    return Point(ratio, max(errors), max(bounds), bool((computed < 0).any()), bool(np.isfinite(computed).all()))


def _row(algorithm: str, order: str, dtype: str, n: int, ratio: float, clamp: bool = False) -> Row:
    rows = _data(n, ratio, dtype)
    with np.errstate(all="ignore"):
        of_all = statistics.compute(algorithm, rows, DTYPES[dtype], order)
        errors = [
            _relative(float(c), float(t)) for c, t in zip(of_all.var, rows.astype(np.float64).var(axis=1), strict=True)
        ]
        worst = int(np.argmax(errors))
        x, got = rows[worst], statistics.Statistics(of_all.mean[worst], of_all.var[worst])
        x64 = x.astype(np.float64)
        mean, var = np.float64(got.mean), np.float64(got.var)
        used = max(var, 0.0) if clamp else var
        y = (x64 - mean) / np.sqrt(used + EPS)
    true = float(x64.var())
    y_true = (x64 - x64.mean()) / math.sqrt(true + EPS)
    kappa = float(statistics.condition_number(x64))
    return Row(
        kappa,
        true,
        float(used),
        _bound(algorithm, order, dtype, x),
        tuple(map(float, y_true[:SHOWN])),
        tuple(map(float, y[:SHOWN])),
        float(np.mean(y_true**2)),
        float(np.mean(y**2)),
    )


def _data(n: int, ratio: float, dtype: str) -> np.ndarray:
    """ROWS rows of n normal numbers with std 1 around ``ratio``, in ``dtype``; the same noise at every ratio."""
    noise = np.random.default_rng(n).standard_normal((ROWS, n))
    return (noise + ratio).astype(DTYPES[dtype])


def _bound(algorithm: str, order: str, dtype: str, row: np.ndarray) -> float:
    shift = row[0] if algorithm == "shifted" else 0.0
    kappa = float(statistics.condition_number(row.astype(np.float64), np.float64(shift)))
    return statistics.bound(algorithm, len(row), kappa, statistics.unit_roundoff(DTYPES[dtype]), order)


def _relative(computed: float, true: float) -> float:
    if not math.isfinite(computed):
        return math.inf
    if true == 0.0:
        return 0.0 if computed == 0.0 else math.inf
    return abs(computed - true) / true


def title(state: Exploration) -> str:
    """What becomes of the chosen row, in a sentence."""
    name, row = NAMES[state.algorithm], state.row
    head = f"{name[0].upper()}{name[1:]} at mean/std = {state.ratio:g}"
    if not math.isfinite(row.computed):
        return (
            f"{head}: the variance is infinite, y is 0"
            if row.computed == math.inf
            else f"{head}: the variance is NaN, and so is y"
        )
    if any(math.isnan(value) for value in row.y):
        return f"{head}: the variance is negative, y is NaN"
    if row.error <= 1e-3:
        return f"{head}: right to {_digits(row.error)}"
    if row.error < 0.5:
        return f"{head}: {_percent(row.error)} off, and y looks as good as ever"
    becomes = f"{row.scale:.3g} times too large" if row.scale > 1 else f"{row.scale:.2g} of its size"
    return f"{head}: the variance is lost, y is {becomes}"


def describe(state: Exploration) -> str:
    """The caption: the numbers of the chosen row, and of the whole curve."""
    row = state.row
    words = [f"N = {state.n}, all arithmetic in {state.dtype}{_summed(state)}; kappa = {row.kappa:.4g}."]
    words.append(
        f"The variance of the stored row is {row.true:.5g}, computed {row.computed:.5g}{' (clamped)' if _is_clamped(state) else ''}:"
    )
    words.append(f"relative error {_power(row.error)}, bound {_power(row.bound)}.")
    if all(map(math.isfinite, row.y)):
        words.append(f"The mean square of y is {row.mean_square:.3g}; it should be {row.mean_square_true:.3g}.")
    if broken := [p for p in state.points if not p.finite]:
        words.append(f"From mean/std = {broken[0].ratio:g} on a square or a sum leaves {state.dtype}'s range.")
    if negative := [p for p in state.points if p.negative]:
        words.append(f"Negative variances at mean/std = {', '.join(f'{p.ratio:g}' for p in negative)}.")
    if math.isinf(state.points[0].bound):
        words.append(
            f"So many roundings one on top of the other that the bound promises nothing: N u = {_nu(state):.2g}."
        )
    return " ".join(words)


def _is_clamped(state: Exploration) -> bool:
    return state.clamp and state.row.computed == 0.0 and state.row.true > 0.0


def _nu(state: Exploration) -> float:
    return state.n * statistics.unit_roundoff(DTYPES[state.dtype])


def _summed(state: Exploration) -> str:
    return "" if state.algorithm in ("welford", "chan") else f", sums {state.order}"


def _digits(error: float) -> str:
    if error == 0.0:
        return "the last digit"
    digits = min(math.floor(-math.log10(error)), 15)
    return f"{digits} digits"


def _percent(error: float) -> str:
    return f"{100 * error:.2g} %"


def _power(value: float) -> str:
    return f"{value:.1e}" if math.isfinite(value) else "infinite"
