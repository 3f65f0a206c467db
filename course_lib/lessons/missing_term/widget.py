"""Lesson 08: leave a term of the VJP out, and read from the error of dx which one it was."""

from __future__ import annotations

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
from course_lib.lessons.words import format_number

KINDS = {"layer_norm": "LayerNorm", "rms_norm": "RMSNorm"}
# what is wrong, by norm: the key says which term, the words what happens to it
TERMS: dict[str, dict[str, str]] = {
    "layer_norm": {
        "none": "nothing: dx is right",
        "c1": "c1 left out",
        "c2": "c2 left out",
        "both": "c1 and c2 left out",
        "rstd": "the last rstd left out",
        "w": "w left out",
        "mean": "the mean not subtracted in xhat",
        "divisor": "1/N left out of c1 and c2",
        "statistics": "statistics saved in bf16",
    },
    "rms_norm": {
        "none": "nothing: dx is right",
        "c1": "c1 left out",
        "c2": "a c2 put in",
        "both": "c1 left out and a c2 put in",
        "rstd": "the last rstd left out",
        "w": "w left out",
        "mean": "a mean subtracted in xhat",
        "divisor": "1/N left out of c1",
        "statistics": "statistics saved in bf16",
    },
}
RATIOS = (0.0, 1.0, 3.0, 10.0, 100.0, 1000.0)
COLUMNS = (3, 8, 16, 32)
WEIGHTS = {"random": "random, 0.5 to 2", "ones": "all 1"}
GRADIENTS = {"random": "random, mean 0.5", "ones": "all 1, as y.sum() sends"}
STD = 1.734  # of every row: with 1 a missing rstd would hardly show, and 1.734 times 3, 10 or 100 is no bf16 number
EPS = 1e-5
_NOTHING = 1e-9  # of the size of wdy * rstd: what rounding leaves


@dataclass(frozen=True)
class State:
    """One row's dx with a mistake in it. Vectors have shape (N,), float64; sizes are root mean squares.

    ``error = along_one + along_xhat + rest`` with ``along_one`` a multiple of 1, ``along_xhat`` one of xhat, and as little
    as possible in ``rest``: the line that fits the error best, drawn against xhat.
    """

    kind: str
    term: str
    ratio: float
    weights: str
    gradient: str
    xhat: np.ndarray
    wdy: np.ndarray
    rstd: float
    dx: np.ndarray  # with the mistake
    true: np.ndarray
    intercept: float
    slope: float

    @property
    def N(self) -> int:
        return len(self.xhat)

    @property
    def c1(self) -> float:
        return float((self.xhat * self.wdy).mean())

    @property
    def c2(self) -> float:
        return float(self.wdy.mean())

    @property
    def error(self) -> np.ndarray:
        return self.dx - self.true

    @property
    def along_one(self) -> np.ndarray:
        return np.full(self.N, self.intercept)

    @property
    def along_xhat(self) -> np.ndarray:
        return self.slope * self.xhat

    @property
    def rest(self) -> np.ndarray:
        return self.error - self.along_one - self.along_xhat

    @property
    def noise(self) -> float:
        """What is too small to be anything but rounding."""
        return _NOTHING * size(self.wdy) * self.rstd


def size(values: np.ndarray) -> float:
    """The root mean square."""
    return float(np.sqrt((values**2).mean()))


def model(
    kind: str = "layer_norm", term: str = "c1", ratio: float = 3.0, columns: int = 16, weights: str = "random", gradient: str = "random"
) -> State:
    """A row with standard deviation STD and mean ``STD * ratio``, its dx with one mistake, and the error taken apart.

    Args:
        kind: "layer_norm" or "rms_norm".
        term: the mistake, a key of TERMS[kind].
        ratio: mean over standard deviation.
        columns: N, at least 3: two numbers have no direction besides 1 and xhat.
        weights: "random" (0.5 to 2, some negative) or "ones".
        gradient: "random" (normal with mean 0.5) or "ones".

    Raises: CourseError if an argument is none of those.
    """
    choices = (
        ("kind", kind, KINDS),
        ("term", term, TERMS["layer_norm"]),
        ("weights", weights, WEIGHTS),
        ("gradient", gradient, GRADIENTS),
    )
    for name, value, known in choices:
        if value not in known:
            raise CourseError(f"missing_term knows {name} {', '.join(map(repr, known))}; you asked for {value!r}.")
    if columns < 3 or not np.isfinite(ratio):
        raise CourseError(f"missing_term draws rows of at least 3 columns with a finite mean; you asked for N={columns}, mean/std={ratio}.")
    rng = np.random.default_rng(columns)
    noise = rng.standard_normal(columns)
    x = STD * (ratio + (noise - noise.mean()) / noise.std())
    w = np.ones(columns) if weights == "ones" else rng.uniform(0.5, 2.0, columns) * np.where(np.arange(columns) % 4 == 3, -1, 1)
    dy = np.ones(columns) if gradient == "ones" else rng.normal(0.5, size=columns)

    layer = kind == "layer_norm"
    mean = x.mean() if layer else 0.0
    rstd = 1 / np.sqrt(((x - mean) ** 2).mean() + EPS)
    xhat, wdy = (x - mean) * rstd, w * dy
    true = _dx(xhat, wdy, rstd, c2=layer)
    dx = _mistaken(term, layer, x, w, dy, mean, rstd)
    slope, intercept = _line(xhat, dx - true)
    return State(kind, term, ratio, weights, gradient, xhat, wdy, float(rstd), dx, true, intercept, slope)


def _dx(
    xhat: np.ndarray, wdy: np.ndarray, rstd: float, *, c1: bool = True, c2: bool = True, divide: bool = True, last: bool = True
) -> np.ndarray:
    average = np.mean if divide else np.sum
    return (wdy - c1 * average(xhat * wdy) * xhat - c2 * average(wdy)) * (rstd if last else 1.0)


def _mistaken(term: str, layer: bool, x: np.ndarray, w: np.ndarray, dy: np.ndarray, mean: float, rstd: float) -> np.ndarray:
    xhat, wdy = (x - mean) * rstd, w * dy
    if term == "w":
        return _dx(xhat, dy, rstd, c2=layer)
    if term == "mean":
        return _dx((x if layer else x - x.mean()) * rstd, wdy, rstd, c2=layer)
    if term == "statistics":
        saved_mean, saved_rstd = (float(ml_dtypes.bfloat16(value)) for value in (mean, rstd))
        return _dx((x - saved_mean) * saved_rstd, wdy, saved_rstd, c2=layer)
    keep_c2 = layer != (term in ("c2", "both"))  # for RMSNorm the mistake is to have one
    return _dx(xhat, wdy, rstd, c1=term not in ("c1", "both"), c2=keep_c2, divide=term != "divisor", last=term != "rstd")


def _line(xhat: np.ndarray, error: np.ndarray) -> tuple[float, float]:
    """Slope and intercept of the least-squares line of ``error`` against ``xhat``."""
    centred = xhat - xhat.mean()
    slope = float((centred * error).sum() / (centred**2).sum())
    return slope, float(error.mean() - slope * xhat.mean())


def named(state: State) -> str:
    """What the error itself says about its cause, read from the line and the rest, not from what was chosen."""
    error, noise = size(state.error), state.noise
    if error <= noise:
        return "No error" if state.term == "none" else "This test does not see the mistake"
    one, hat = state.c2 * state.rstd, state.c1 * state.rstd
    layer = state.kind == "layer_norm"

    def is_(value: float, wanted: float) -> bool:
        return abs(value - wanted) <= 1e-6 * max(abs(wanted), error)

    if size(state.rest) <= 1e-6 * error:
        if is_(state.intercept, one if layer else -one) and is_(state.slope, 0):
            return "All along 1, by c2 * rstd: c2 is missing" if layer else "All along 1, by -c2 * rstd: RMSNorm has no c2"
        if is_(state.slope, hat) and is_(state.intercept, 0):
            return "All along xhat, by c1 * rstd: c1 is missing"
        if is_(state.slope, hat) and is_(state.intercept, one if layer else -one):
            return "c1 * rstd along xhat and c2 * rstd along 1: both are missing" if layer else "c1 is missing, and RMSNorm has no c2"
        over = 1 - state.N
        if is_(state.slope, over * hat) and is_(state.intercept, over * one if layer else 0):
            return f"{-over} times too much is taken out, N - 1: 1/N is missing"
    factor = float((state.dx * state.true).sum() / (state.true**2).sum()) if size(state.true) > noise else 0.0
    if factor and size(state.dx - factor * state.true) <= 1e-6 * error:
        return f"dx is right but for a factor of {factor:.3g}: rstd is {state.rstd:.3g}"
    if size(state.rest) < 0.25 * error:
        return "Along 1 and xhat, by other amounts than c1 and c2: xhat is off"
    if error < 0.01 * size(state.true):
        return "Below 1 % of dx, and no line: digits are lost somewhere"
    return "No line: the row sums may be right, so look at wdy"


def describe(state: State) -> str:
    """The caption: the setting, the sizes of the parts, and the line beside c1 and c2."""
    what = TERMS[state.kind][state.term]
    words = [
        f"{KINDS[state.kind]}, N = {state.N}, mean/std = {state.ratio:g}, w {WEIGHTS[state.weights]}, "
        f"dy {GRADIENTS[state.gradient]}; {what}.",
        f"The true dx has size {_number(size(state.true), state)}, the error {_number(size(state.error), state)}: "
        f"{_number(size(state.along_one), state)} along 1, {_number(size(state.along_xhat), state)} along xhat, "
        f"{_number(size(state.rest), state)} in neither.",
        f"The line through the error: {_number(state.intercept, state)} at xhat = 0, slope {_number(state.slope, state)}; "
        f"c2 * rstd is {_number(state.c2 * state.rstd, state)}, c1 * rstd is {_number(state.c1 * state.rstd, state)}.",
        f"{named(state)}.",
    ]
    if size(state.true) <= state.noise:
        words.append("The true dx is 0 here: whatever returns 0 passes.")
    return " ".join(words)


# colour, hatch, marker and line of each part; every one carries its name as well
_PARTS = {
    "along 1": {"facecolor": style.COLOURS["mean"], "hatch": "\\\\"},
    "along xhat": {"facecolor": style.COLOURS["x"], "hatch": ""},
    "in neither": {"facecolor": style.COLOURS["masked"], "hatch": "xx"},
}


def draw(state: State) -> Picture:
    """dx by column beside the true dx; the error against xhat with its line; the sizes of the three parts."""
    figure = Figure(figsize=(style.WIDTH, 5.6))
    top, bottom = figure.subfigures(2, 1, height_ratios=(1.0, 1.15))
    _draw_dx(top.subplots(), state)
    line, bars = bottom.subplots(1, 2, width_ratios=(1.25, 1.0))
    _draw_line(line, state)
    _draw_parts(bars, state)
    figure.suptitle(named(state), fontsize=12, weight="bold", x=0.01, ha="left")
    caption = describe(state)
    alt = (
        f"{named(state)}. Above, dx and the true dx as bars by column. Below left, the error of dx against xhat with the line that fits "
        f"it best; below right, bars for the error along 1, along xhat and in neither. {caption}"
    )
    return Picture(style.png(figure, alt), alt, caption)


def _draw_dx(axes: Axes, state: State) -> None:
    cols = np.arange(state.N)
    axes.bar(cols - 0.2, state.true, 0.4, label="true dx", **style.fill("dx"))
    axes.bar(cols + 0.2, state.dx, 0.4, label="dx computed", facecolor=style.PANEL, edgecolor="#A44A00", linewidth=1.4)
    axes.axhline(0, color=style.QUIET, linewidth=0.8)
    axes.set(xlabel="column", ylabel="dx", xticks=cols[:: max(1, state.N // 16)], xlim=(-0.7, state.N - 0.3))
    _room(axes, np.concatenate([state.true, state.dx]), state)
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2, borderaxespad=0.2, frameon=False)
    axes.grid(axis="x", visible=False)


def _draw_line(axes: Axes, state: State) -> None:
    reach = np.array([min(state.xhat.min(), 0.0), max(state.xhat.max(), 0.0)])
    error = np.where(np.abs(state.error) <= state.noise, 0.0, state.error)
    axes.plot(reach, state.intercept + state.slope * reach, color=style.INK, linestyle="--", marker="", linewidth=1.6)
    axes.plot(state.xhat, error, linestyle="", marker="D", color="#A44A00", markersize=6)
    axes.plot([0], [_cleaned(state.intercept, state)], linestyle="", marker="v", color=style.COLOURS["mean"], markersize=10, zorder=5)
    axes.axhline(0, color=style.QUIET, linewidth=0.8)
    axes.axvline(0, color=style.QUIET, linewidth=0.8)
    axes.set(xlabel="xhat of the column", ylabel="dx computed - true dx")
    axes.set_title(_equation(state), fontsize=style.FONT + 1)
    _room(axes, error, state)


def _equation(state: State) -> str:
    """The line in words: "error = 0.168 - 0.102 * xhat + rest"."""
    terms = [_number(state.intercept, state)] if _cleaned(state.intercept, state) else []
    if slope := _cleaned(state.slope, state):
        sign = ("- " if slope < 0 else "+ ") if terms else ("-" if slope < 0 else "")
        terms.append(f"{sign}{_number(abs(slope), state)} * xhat")
    if _cleaned(size(state.rest), state):
        terms.append("+ rest" if terms else "rest")
    return f"error = {' '.join(terms) or '0'}"


def _draw_parts(axes: Axes, state: State) -> None:
    parts = {"along 1": state.along_one, "along xhat": state.along_xhat, "in neither": state.rest}
    sizes = [_cleaned(size(values), state) for values in parts.values()]
    axes.barh(range(3), sizes, 0.6, edgecolor=style.INK, linewidth=0.8, **{
        "facecolor": [look["facecolor"] for look in _PARTS.values()], "hatch": [look["hatch"] for look in _PARTS.values()],
    })  # fmt: skip
    for at, value in enumerate(sizes):
        axes.annotate(_number(value, state), (value, at), (4, 0), textcoords="offset points", va="center", weight="bold")
    axes.set(yticks=range(3), yticklabels=list(parts), ylim=(2.6, -0.6), xlim=(0, 1.35 * (max(sizes) or 1.0)))
    axes.set_xlabel("size (root mean square)")
    axes.set_title("parts of the error", fontsize=style.FONT + 1)
    axes.grid(axis="y", visible=False)


def _room(axes: Axes, values: np.ndarray, state: State) -> None:
    """Limits that keep 0 in sight and do not blow rounding up to the height of the picture."""
    low, high = min(float(values.min()), 0.0), max(float(values.max()), 0.0)
    if high - low <= state.noise:
        low, high = -0.1 * size(state.wdy) * state.rstd, 0.1 * size(state.wdy) * state.rstd
    axes.set_ylim(low - 0.1 * (high - low), high + 0.1 * (high - low))


def _cleaned(value: float, state: State) -> float:
    return 0.0 if abs(value) <= max(state.noise, 1e-6 * size(state.error)) else float(value)


def _number(value: float, state: State) -> str:
    value = _cleaned(value, state)
    return format_number(value, 3)


def missing_term(kind: str = "layer_norm", term: str = "none") -> LiveFigure:
    """Choose a mistake in dx and a row, and see the error along 1, along xhat and in neither.

    Args:
        kind: "layer_norm" or "rms_norm".
        term: the mistake to begin with, a key of TERMS[kind].

    Raises: CourseError as :func:`model`.
    """
    model(kind, term)
    controls = {
        "kind": ipywidgets.Dropdown(
            options=[(label, key) for key, label in KINDS.items()], value=kind, description="norm", layout=wide(170)
        ),
        "term": ipywidgets.Dropdown(options=_options(kind), value=term, description="wrong", layout=wide(330)),
        "gradient": ipywidgets.Dropdown(
            options=[(label, key) for key, label in GRADIENTS.items()], value="random", description="dy", layout=wide(240)
        ),
        "weights": ipywidgets.Dropdown(
            options=[(label, key) for key, label in WEIGHTS.items()], value="random", description="w", layout=wide(190)
        ),
        "ratio": ipywidgets.SelectionSlider(options=[(f"{r:g}", r) for r in RATIOS], value=3.0, description="mean/std", layout=wide(270)),
        "columns": ipywidgets.SelectionSlider(options=COLUMNS, value=16, description="N columns", layout=wide(260)),
    }  # fmt: skip

    def arrange(controls: Mapping[str, Any]) -> None:
        options, chosen = _options(controls["kind"].value), controls["term"].value
        if controls["term"].options != options:
            controls["term"].options = options
            controls["term"].value = chosen

    def redraw(kind: str, term: str, gradient: str, weights: str, ratio: float, columns: int) -> Picture:
        return draw(model(kind, term, ratio, columns, weights, gradient))

    return LiveFigure(redraw, controls, arrange=arrange)


def _options(kind: str) -> tuple[tuple[str, str], ...]:
    return tuple((label, key) for key, label in TERMS[kind].items())
