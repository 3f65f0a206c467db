"""Lesson 11: leave a term of the VJP out, and read from the error of dx which one it was, as plain
data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from course_lib.base.errors import CourseError
from course_lib.base.translation import gettext as _
from course_lib.base.translation import mark as N_
from course_lib.base.translation import translate_names
from course_lib.base.words import list_words

KINDS = {"layer_norm": "LayerNorm", "rms_norm": "RMSNorm"}
# the mistakes, by norm: a key for the term, and words for what happens to it
TERMS: dict[str, dict[str, str]] = {
    "layer_norm": {
        "none": N_("nothing: dx is right"),
        "c1": N_("c1 left out"),
        "c2": N_("c2 left out"),
        "both": N_("c1 and c2 left out"),
        "rstd": N_("the last rstd left out"),
        "w": N_("w left out"),
        "mean": N_("the mean not subtracted in xhat"),
        "divisor": N_("1/N left out of c1 and c2"),
        "statistics": N_("statistics saved in bf16"),
    },
    "rms_norm": {
        "none": N_("nothing: dx is right"),
        "c1": N_("c1 left out"),
        "c2": N_("a c2 put in"),
        "both": N_("c1 left out and a c2 put in"),
        "rstd": N_("the last rstd left out"),
        "w": N_("w left out"),
        "mean": N_("a mean subtracted in xhat"),
        "divisor": N_("1/N left out of c1"),
        "statistics": N_("statistics saved in bf16"),
    },
}
MYSTERIES = (
    "c1",
    "w",
    "both",
    "c2",
    "divisor",
    "rstd",
    "mean",
    "statistics",
)  # a lesson gives the number, so that its code does not name the mistake
RATIOS = (0.0, 1.0, 3.0, 10.0, 100.0, 1000.0)
COLUMNS = (3, 8, 16, 32)
WEIGHTS = {"random": N_("random, 0.5 to 2"), "ones": N_("all 1")}
ACROSS = {"column": N_("column"), "xhat": "xhat"}
GRADIENTS = {"random": N_("random, mean 0.5"), "ones": N_("all 1, as y.sum() sends")}
# Standard deviation of every row. With 1, a missing rstd would hardly show. 1.734 times 3, 10 or
# 100 is not exact in bf16.
STD = 1.734
EPS = 1e-5
_NOTHING = 1e-9  # an error below this fraction of wdy * rstd is rounding


@dataclass(frozen=True)
class MissingTermState:
    """One row's dx with a mistake in it. Vectors have shape (N,), float64; sizes are root mean
    squares.

    ``error = along_one + along_xhat + rest``: ``along_one`` is a multiple of 1, ``along_xhat`` a
    multiple of xhat, and ``rest`` is as small as possible. So ``along_one + along_xhat`` is the
    least-squares line of the error against xhat.
    """

    kind: str
    term: str
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
        """Return the size below which an error is only rounding."""
        return _NOTHING * size(self.wdy) * self.rstd


def size(values: np.ndarray) -> float:
    """Return the root mean square."""
    return float(np.sqrt((values**2).mean()))


def model(
    kind: str = "layer_norm",
    term: str = "c1",
    ratio: float = 3.0,
    columns: int = 16,
    weights: str = "random",
    gradient: str = "random",
) -> MissingTermState:
    """Make a row with standard deviation STD and mean ``STD * ratio``, its dx with one mistake, and
    the parts of the error.

    Args:
        kind: "layer_norm" or "rms_norm".
        term: the mistake, a key of TERMS[kind].
        ratio: mean over standard deviation.
        columns: N, at least 3: with two numbers every error lies along 1 and xhat.
        weights: "random" (0.5 to 2, some negative) or "ones".
        gradient: "random" (normal with mean 0.5) or "ones".

    Raises: CourseError if an argument has another value.
    """
    choices = (
        ("kind", kind, KINDS),
        ("term", term, TERMS["layer_norm"]),
        ("weights", weights, WEIGHTS),
        ("gradient", gradient, GRADIENTS),
    )
    for name, value, allowed in choices:
        if value not in allowed:
            words = _("missing_term knows {name} {known}; you asked for {value!r}.")
            raise CourseError(
                words.format(name=name, known=list_words(map(repr, allowed)), value=value)
            )
    if columns < 3 or not np.isfinite(ratio):
        words = _(
            "missing_term draws rows of at least 3 columns with a finite mean; you asked for"
            " N={columns}, mean/std={ratio}."
        )
        raise CourseError(words.format(columns=columns, ratio=ratio))
    noise, w, dy = make_row(columns)
    x = STD * (ratio + noise)
    w = np.ones(columns) if weights == "ones" else w
    dy = np.ones(columns) if gradient == "ones" else dy

    layer = kind == "layer_norm"
    mean, rstd = compute_statistics(kind, x)
    xhat, wdy = (x - mean) * rstd, w * dy
    true = _dx(xhat, wdy, rstd, c2=layer)
    dx = _compute_mistaken_dx(term, layer, x, w, dy, mean, rstd)
    slope, intercept = _line(xhat, dx - true)
    return MissingTermState(kind, term, xhat, wdy, rstd, dx, true, intercept, slope)


def make_row(columns: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a row with mean 0 and standard deviation 1, random weights (some negative) and a
    random gradient."""
    rng = np.random.default_rng(columns)
    noise = rng.standard_normal(columns)
    w = rng.uniform(0.5, 2.0, columns) * np.where(np.arange(columns) % 4 == 3, -1, 1)
    return (noise - noise.mean()) / noise.std(), w, rng.normal(0.5, size=columns)


def compute_statistics(kind: str, x: np.ndarray) -> tuple[float, float]:
    """Return mean (0 for RMSNorm) and rstd of a row."""
    mean = float(x.mean()) if kind == "layer_norm" else 0.0
    return mean, float(1 / np.sqrt(((x - mean) ** 2).mean() + EPS))


def make_data(kind: str, term: str | None, hidden: str | None = None) -> dict[str, Any]:
    """Return the data for ``picture.js``: the rows, and the statistics of each rounded to bf16.

    ``hidden`` is a mistake that the learner has to name; ``term`` is then the learner's guess. The
    picture then begins with the error by column, in which no line shows.
    """
    saved = {}
    rows = {columns: make_row(columns) for columns in COLUMNS}
    for columns, (noise, *_rest) in rows.items():
        for ratio in RATIOS:
            for norm in KINDS:
                exact = compute_statistics(norm, STD * (ratio + noise))
                saved[f"{norm}|{columns}|{ratio:g}"] = [
                    float(ml_dtypes.bfloat16(value)) for value in exact
                ]
    return {
        "start": {
            "kind": kind, "term": term, "hidden": hidden, "gradient": "random", "weights": "random",
            "ratio": 3.0, "columns": 16, "column": 0,
            "across": "column" if hidden else "xhat",
        },
        "kinds": KINDS, "terms": {norm: translate_names(terms) for norm, terms in TERMS.items()},
        "ratios": RATIOS, "columns": COLUMNS,
        "weights": translate_names(WEIGHTS), "gradients": translate_names(GRADIENTS),
        "across": translate_names(ACROSS),
        "std": STD, "eps": EPS, "saved": saved,
        "rows": {str(columns): [part.tolist() for part in row] for columns, row in rows.items()},
    }  # fmt: skip


def _dx(
    xhat: np.ndarray,
    wdy: np.ndarray,
    rstd: float,
    *,
    c1: bool = True,
    c2: bool = True,
    divide: bool = True,
    times_rstd: bool = True,
) -> np.ndarray:
    average = np.mean if divide else np.sum
    return (wdy - c1 * average(xhat * wdy) * xhat - c2 * average(wdy)) * (
        rstd if times_rstd else 1.0
    )


def _compute_mistaken_dx(
    term: str, layer: bool, x: np.ndarray, w: np.ndarray, dy: np.ndarray, mean: float, rstd: float
) -> np.ndarray:
    xhat, wdy = (x - mean) * rstd, w * dy
    if term == "w":
        return _dx(xhat, dy, rstd, c2=layer)
    if term == "mean":
        return _dx((x if layer else x - x.mean()) * rstd, wdy, rstd, c2=layer)
    if term == "statistics":
        saved_mean, saved_rstd = (float(ml_dtypes.bfloat16(value)) for value in (mean, rstd))
        return _dx((x - saved_mean) * saved_rstd, wdy, saved_rstd, c2=layer)
    # RMSNorm has no c2, so there the mistake is to subtract one
    keep_c2 = layer != (term in ("c2", "both"))
    return _dx(
        xhat,
        wdy,
        rstd,
        c1=term not in ("c1", "both"),
        c2=keep_c2,
        divide=term != "divisor",
        times_rstd=term != "rstd",
    )


def _line(xhat: np.ndarray, error: np.ndarray) -> tuple[float, float]:
    """Return slope and intercept of the least-squares line of ``error`` against ``xhat``."""
    centred = xhat - xhat.mean()
    slope = float((centred * error).sum() / (centred**2).sum())
    return slope, float(error.mean() - slope * xhat.mean())


def _name_line_cause(state: MissingTermState, error: float) -> str:
    """Name the cause of an error of this size whose points all lie on a line through known terms;
    "" if they do not."""
    if size(state.rest) > 1e-6 * error:
        return ""
    layer = state.kind == "layer_norm"
    c1_term = state.c1 * state.rstd
    c2_term = state.c2 * state.rstd if layer else -state.c2 * state.rstd

    def has_line(slope: float, intercept: float) -> bool:
        pairs = ((state.slope, slope), (state.intercept, intercept))
        return all(
            abs(value - expected) <= 1e-6 * max(abs(expected), error) for value, expected in pairs
        )

    if has_line(0, c2_term):
        return (
            "The error is c2 * rstd along 1: c2 is missing"
            if layer
            else "The error is -c2 * rstd along 1: RMSNorm has no c2"
        )
    if has_line(c1_term, 0):
        return "The error is c1 * rstd along xhat: c1 is missing"
    if has_line(c1_term, c2_term):
        return (
            "The error is c1 * rstd along xhat and c2 * rstd along 1: c1 and c2 are missing"
            if layer
            else "The error lies along 1 and xhat: c1 is missing, and RMSNorm has no c2"
        )
    over = 1 - state.N
    if has_line(over * c1_term, over * c2_term if layer else 0):
        return f"The error is N - 1 = {-over} times what should be taken out: 1/N is missing"
    return ""


def name_cause(state: MissingTermState) -> str:
    """Name the cause of the error from its line and its rest, without looking at the chosen
    mistake."""
    error, noise = size(state.error), state.noise
    if error <= noise:
        return "No error" if state.term == "none" else "This test does not see the mistake"
    if words := _name_line_cause(state, error):
        return words
    factor = (
        float((state.dx * state.true).sum() / (state.true**2).sum())
        if size(state.true) > noise
        else 0.0
    )
    if factor and size(state.dx - factor * state.true) <= 1e-6 * error:
        return f"dx is right but for a factor of {factor:.3g}: rstd is {state.rstd:.3g}"
    if size(state.rest) < 0.25 * error:
        return "The error lies along 1 and xhat, by other amounts than c1 and c2: xhat is wrong"
    if error < 0.01 * size(state.true):
        return (
            "The error is below 1 % of dx, and its points form no line: digits are lost somewhere"
        )
    return "The points form no line: the row sums may be right, so look at wdy"
