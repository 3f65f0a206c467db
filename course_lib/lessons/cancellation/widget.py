"""Lesson 03: how much of a variance each algorithm loses as the mean moves away, and what LayerNorm makes of it."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import ipywidgets
import ml_dtypes
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from course_lib.base.errors import CourseError
from course_lib.lessons import style
from course_lib.lessons.live import LiveFigure, Picture, wide
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
_SHOWN = 64  # elements of y in the picture
_FLOOR, _CEILING = 1e-9, 1e5


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


def model(algorithm: str, ratio: float, n: int, dtype: str, order: str = "pairwise", clamp: bool = False) -> Exploration:
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


def _point(algorithm: str, order: str, dtype: str, ratio: float, x: np.ndarray, true: np.ndarray, computed: np.ndarray) -> Point:
    errors = [_relative(float(c), float(t)) for c, t in zip(computed, true, strict=True)]
    bounds = [_bound(algorithm, order, dtype, row) for row in x]
    return Point(ratio, max(errors), max(bounds), bool((computed < 0).any()), bool(np.isfinite(computed).all()))


def _row(algorithm: str, order: str, dtype: str, n: int, ratio: float, clamp: bool = False) -> Row:
    rows = _data(n, ratio, dtype)
    with np.errstate(all="ignore"):
        of_all = statistics.compute(algorithm, rows, DTYPES[dtype], order)
        errors = [_relative(float(c), float(t)) for c, t in zip(of_all.var, rows.astype(np.float64).var(axis=1), strict=True)]
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
        tuple(map(float, y_true[:_SHOWN])),
        tuple(map(float, y[:_SHOWN])),
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
        return f"{head}: the variance is infinite, y is 0" if row.computed == math.inf else f"{head}: the variance is NaN, and so is y"
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
    words.append(f"The variance of the stored row is {row.true:.5g}, computed {row.computed:.5g}{' (clamped)' if _clamped(state) else ''}:")
    words.append(f"relative error {_power(row.error)}, bound {_power(row.bound)}.")
    if all(map(math.isfinite, row.y)):
        words.append(f"The mean square of y is {row.mean_square:.3g}; it should be {row.mean_square_true:.3g}.")
    if broken := [p for p in state.points if not p.finite]:
        words.append(f"From mean/std = {broken[0].ratio:g} on a square or a sum leaves {state.dtype}'s range.")
    if negative := [p for p in state.points if p.negative]:
        words.append(f"Negative variances at mean/std = {', '.join(f'{p.ratio:g}' for p in negative)}.")
    if math.isinf(state.points[0].bound):
        words.append(f"So many roundings one on top of the other that the bound promises nothing: N u = {_nu(state):.2g}.")
    return " ".join(words)


def draw(state: Exploration) -> Picture:
    """Left the error and its bound against mean/std, right y against the true y of the chosen row."""
    figure = Figure(figsize=(style.WIDTH, 3.9))
    left, right = figure.subplots(1, 2, width_ratios=(1.45, 1))
    _draw_curve(left, state)
    _draw_output(right, state)
    figure.suptitle(title(state), x=0.01, ha="left", fontsize=style.FONT + 1.5, weight="bold")
    caption = describe(state)
    alt = (
        f"{title(state)}. Left: relative error of the variance against mean/std on logarithmic axes, measured with markers, bound dashed. "
        f"Right: {_SHOWN if state.n > _SHOWN else state.n} elements of y against what they should be. {caption}"
    )
    return Picture(style.png(figure, alt), alt, caption)


def _draw_curve(axes: Axes, state: Exploration) -> None:
    at = [max(p.ratio, 0.3) for p in state.points]
    axes.plot(at, [_inside(p.error) for p in state.points], **style.line(state.algorithm, linestyle="-"))
    bounds = [(a, p.bound) for a, p in zip(at, state.points, strict=True) if math.isfinite(p.bound)]
    if bounds:
        axes.plot(*zip(*[(a, _inside(b)) for a, b in bounds], strict=True), color=style.INK, linestyle="--", marker="")
        named = bounds[min(3, len(bounds) - 1)]
        axes.annotate("bound", (named[0], _inside(named[1])), (-6, 7), textcoords="offset points", ha="right")
    axes.annotate("measured", (at[2], _inside(state.points[2].error)), (5, -14), textcoords="offset points")
    for p, a in zip(state.points, at, strict=True):
        if p.negative:
            axes.annotate("< 0", (a, _inside(p.error)), (3, -14), textcoords="offset points")
    if broken := [a for p, a in zip(state.points, at, strict=True) if not p.finite]:
        axes.annotate("Inf or NaN", (broken[0], _CEILING), (0, -16), textcoords="offset points")
    axes.axhline(1.0, color=style.QUIET, linestyle=":", marker="")
    axes.text(0.3, 1.3, "1: nothing left", color=style.QUIET, va="bottom")
    here = max(state.ratio, 0.3)
    axes.axvline(here, color=style.COLOURS["active"], linewidth=5, alpha=0.45, zorder=0)
    axes.set(xscale="log", yscale="log", ylim=(_FLOOR / 2, _CEILING * 3), xlim=(0.22, 45000))
    axes.set_xticks([0.3, 1, 10, 100, 1000, 10000], ["0", "1", "10", "100", "1000", "10\u2074"])
    axes.set(xlabel="mean/std", ylabel="relative error of the variance")


def _draw_output(axes: Axes, state: Exploration) -> None:
    row = state.row
    axes.plot([-4, 4], [-4, 4], color=style.QUIET, linestyle=":", marker="")
    axes.set(xlabel="y as it should be", ylabel="y computed", xlim=(-4, 4))
    if not all(map(math.isfinite, row.y)):
        axes.set_ylim(-4, 4)
        axes.text(0, 0, "NaN", ha="center", va="center", fontsize=22, weight="bold")
        return
    reach = max(4.0, 1.1 * max(abs(value) for value in row.y))
    axes.plot(row.y_true, row.y, linestyle="", marker="o", markersize=4, color=style.COLOURS["y"])
    axes.set_ylim(-reach, reach)


def cancellation(mean_over_std: float = 1000.0, N: int = 4096, dtype: str = "fp32", algorithm: str = "one_pass") -> LiveFigure:
    """What each algorithm loses as the mean moves away from zero, against its bound, and the LayerNorm output of one row.

    Raises: CourseError if an argument is unknown or outside what the arithmetic can hold.
    """
    model(algorithm, mean_over_std, N, dtype)
    controls = {
        "algorithm": ipywidgets.Dropdown(
            options=[(label, key) for key, label in NAMES.items()], value=algorithm, description="algorithm", layout=wide(230)
        ),
        "order": ipywidgets.Dropdown(options=ORDERS, value="pairwise", description="sums", layout=wide(160)),
        "dtype": ipywidgets.Dropdown(options=list(DTYPES), value=dtype, description="dtype", layout=wide(130)),
        "ratio": ipywidgets.SelectionSlider(
            options=[(f"{r:g}", r) for r in sorted({*RATIOS, float(mean_over_std)})], value=float(mean_over_std), description="mean/std",
            layout=wide(310),
        ),
        "n": ipywidgets.SelectionSlider(options=sorted({*COLUMNS, N}), value=N, description="N columns", layout=wide(270)),
        "clamp": ipywidgets.Checkbox(False, description="clamp at 0", indent=False, layout=wide(110)),
    }  # fmt: skip

    def arrange(controls: Mapping[str, Any]) -> None:
        controls["order"].disabled = controls["algorithm"].value in ("welford", "chan")
        controls["clamp"].disabled = controls["algorithm"].value not in ("one_pass", "shifted")

    def redraw(algorithm: str, order: str, dtype: str, ratio: float, n: int, clamp: bool) -> Picture:
        return draw(model(algorithm, ratio, n, dtype, order, clamp))

    return LiveFigure(redraw, controls, arrange=arrange)


def _inside(value: float) -> float:
    return min(max(value, _FLOOR), _CEILING)


def _clamped(state: Exploration) -> bool:
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
