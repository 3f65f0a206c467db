"""Lesson 02: the VJP of a norm as a projection, for rows of three numbers, which are points in space: what is shown, as plain data."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from course_lib.base.errors import CourseError
from course_lib.lessons.words import format_decimal

KINDS = {"layer_norm": "LayerNorm", "rms_norm": "RMSNorm"}
N = 3
ONE = np.ones(N) / math.sqrt(N)  # of length 1
# the drawing's own axes: two in the plane at right angles to 1, then 1 itself, drawn upwards
FRAME = np.array([np.array([1, -1, 0]) / math.sqrt(2), np.array([1, 1, -2]) / math.sqrt(6), ONE])
EPS = (0.0, 1e-5, 1e-2, 0.1, 0.3, 1.0, 3.0, 10.0)
STDS = (0.1, 0.3, 1.0, 3.0)
_IN_PLANE = 1.8  # length of wdy's part in the plane
ZERO = 5e-4  # below it a length is drawn as a point and written as 0


@dataclass(frozen=True)
class ProjectionState:
    """One row's gradient, taken apart. Vectors have shape (3,).

    ``wdy = along_one + along_xhat + left``: the c2 term, the c1 term, and what is left, which is dx / rstd. RMSNorm
    has no c2 term, so its ``along_one`` is 0.
    """

    kind: str
    eps: float
    x: np.ndarray
    wdy: np.ndarray
    rstd: float
    xhat: np.ndarray
    c1: float
    c2: float | None

    @property
    def along_one(self) -> np.ndarray:
        return np.full(N, self.c2 or 0.0)

    @property
    def along_xhat(self) -> np.ndarray:
        return self.c1 * self.xhat

    @property
    def left(self) -> np.ndarray:
        return self.wdy - self.along_one - self.along_xhat

    @property
    def dx(self) -> np.ndarray:
        return self.left * self.rstd

    @property
    def kept(self) -> float:
        """The share of a push along xhat that comes through: eps * rstd^2, which is 0 only for eps = 0."""
        return self.eps * self.rstd**2

    @property
    def again(self) -> np.ndarray:
        """The same matrix applied to ``left``; a projector would change nothing."""
        return project_out(self.kind, self.left, self.xhat)


def project_out(kind: str, wdy: np.ndarray, xhat: np.ndarray) -> np.ndarray:
    """``wdy - xhat c1 - c2`` (without c2 for RMSNorm): the matrix ``I - 11'/N - xhat xhat'/N`` times wdy."""
    c2 = wdy.mean() if kind == "layer_norm" else 0.0
    return wdy - (xhat * wdy).mean() * xhat - c2


def model(kind: str, x: ArrayLike, wdy: ArrayLike, eps: float = 0.0) -> ProjectionState:
    """The parts of the gradient of one row.

    Args:
        kind: "layer_norm" or "rms_norm".
        x, wdy: three numbers each; wdy is w * dy.
        eps: 0 or more.

    Raises: CourseError if an argument does not fit, or if the row has no rstd: eps = 0 and nothing to divide by.
    """
    x, wdy = (np.asarray(values, dtype=np.float64) for values in (x, wdy))
    if kind not in KINDS:
        raise CourseError(f"the projection shows {' and '.join(KINDS)}; you asked for {kind!r}.")
    if x.shape != (N,) or wdy.shape != (N,):
        raise CourseError(
            f"the projection is drawn in space, so x and wdy are three numbers each; their shapes are {x.shape} and {wdy.shape}."
        )
    if not eps >= 0.0:
        raise CourseError(f"eps is added inside the root and cannot be negative; you passed {eps}.")
    centred = x - x.mean() if kind == "layer_norm" else x
    spread = float((centred**2).mean()) + eps
    if spread <= 0.0:
        what = "is constant" if kind == "layer_norm" else "is zero"
        raise CourseError(
            f"this row {what} and eps is 0: 1 / sqrt(0) has no value. Give the row a spread, or eps a value."
        )
    rstd = spread**-0.5
    xhat = centred * rstd
    return ProjectionState(
        kind, eps, x, wdy, rstd, xhat, float((xhat * wdy).mean()), float(wdy.mean()) if kind == "layer_norm" else None
    )


def row(turn: float, mean: float, std: float) -> np.ndarray:
    """A row of three numbers with this mean and (biased) standard deviation; ``turn``, in degrees, turns it about 1."""
    return mean + std * math.sqrt(N) * _in_plane(turn)


def push(turn: float, mean: float) -> np.ndarray:
    """A wdy with this mean; its part at right angles to 1 has length 1.8 and points where ``turn`` says."""
    return mean + _IN_PLANE * _in_plane(turn)


def _in_plane(turn: float) -> np.ndarray:
    angle = math.radians(turn)
    return math.cos(angle) * FRAME[0] + math.sin(angle) * FRAME[1]


def title(state: ProjectionState) -> str:
    """The message of the picture."""
    if state.kept >= 0.005:
        return f"{KINDS[state.kind]}: eps lets {state.kept:.0%} of the push along xhat through. No projector"
    if state.kind == "rms_norm":
        return "RMSNorm: only the push along xhat is taken out. The mean may change"
    return "LayerNorm: what is left changes neither the mean nor the scale of the row"


def describe(state: ProjectionState) -> str:
    """The caption: every vector in numbers, and what a step along dx can and cannot do to the row."""
    words = [
        f"{KINDS[state.kind]}, N = 3, eps = {state.eps:g}: x = {format_vector(state.x)}, rstd = {format_decimal(state.rstd)}, "
        f"xhat = {format_vector(state.xhat)}. wdy = {format_vector(state.wdy)}."
    ]
    if state.c2 is not None:
        words.append(f"c2 = {format_decimal(state.c2)} takes the part along 1 out, {format_vector(state.along_one)}.")
    words.append(f"c1 = {format_decimal(state.c1)} takes {format_vector(state.along_xhat)} along xhat out.")
    words.append(f"Left is {format_vector(state.left)}, which is dx / rstd.")
    drift, stretch = clean(state.left.mean()), clean(float((state.left * state.xhat).mean()))
    words.append(f"Its mean is {format_decimal(drift)}, so a step along it {_moves(drift)} the mean of the row.")
    if state.kept < ZERO:
        words.append(
            f"Along xhat nothing is left{_describe_share(state)}: to first order the step does not change the row's scale."
        )
        words.append(
            "Applied once more, the matrix changes nothing: it is a projector."
            if state.eps == 0
            else _describe_second_application(state)
        )
    else:
        share = f"the share eps * rstd^2 = {state.kept:.2g}"
        words.append(
            f"Along xhat {format_decimal(stretch)} of the {format_decimal(state.c1)} is left, {share}. {_describe_second_application(state)}"
        )
    return " ".join(words)


def _describe_share(state: ProjectionState) -> str:
    return "" if state.eps == 0 else f" but the share eps * rstd^2 = {state.kept:.1g}"


def _describe_second_application(state: ProjectionState) -> str:
    moved = float(np.linalg.norm(state.again - state.left))
    if moved < ZERO:
        return (
            "Applied once more, the matrix moves it by less than the drawing shows; only at eps = 0 is it a projector."
        )
    return f"Applied once more, the matrix would leave {format_vector(state.again)}: it is no projector."


def _moves(drift: float) -> str:
    return "cannot change" if drift == 0 else "changes"


def clean(value: float) -> float:
    return 0.0 if abs(value) < ZERO else float(value)


def format_vector(values: np.ndarray) -> str:
    return f"[{', '.join(format_decimal(clean(value)) for value in values)}]"
