"""Lesson 10: the VJP of a norm as a projection, as plain data. Rows have three numbers, so each is
a point in space."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from course_lib.base.errors import CourseError
from course_lib.base.translation import gettext as _

KINDS = {"layer_norm": "LayerNorm", "rms_norm": "RMSNorm"}
N = 3
ONE = np.ones(N) / math.sqrt(N)  # the direction 1, with length 1
# the axes of the drawing: two in the plane at right angles to 1, then 1 itself, which points up
FRAME = np.array([np.array([1, -1, 0]) / math.sqrt(2), np.array([1, 1, -2]) / math.sqrt(6), ONE])
EPS = (0.0, 1e-5, 1e-2, 0.1, 0.3, 1.0, 3.0, 10.0)
STDS = (0.1, 0.3, 1.0, 3.0)
IN_PLANE = 1.8  # length of wdy's part in the plane


@dataclass(frozen=True)
class ProjectionState:
    """The parts of one row's gradient. Vectors have shape (3,).

    ``wdy = along_one + along_xhat + left``: the c2 term, the c1 term, and the remainder, which is
    dx / rstd. RMSNorm has no c2 term, so its ``along_one`` is 0.
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
        """Return the share of wdy's part along xhat that stays in dx / rstd: eps * rstd^2, which is
        0 only for eps = 0."""
        return self.eps * self.rstd**2

    @property
    def again(self) -> np.ndarray:
        """Apply the VJP's matrix to ``left`` once more. If the matrix were a projector, nothing
        would change."""
        return project_out(self.kind, self.left, self.xhat)


def project_out(kind: str, wdy: np.ndarray, xhat: np.ndarray) -> np.ndarray:
    """Return ``wdy - xhat c1 - c2``, which is the matrix ``I - 11'/N - xhat xhat'/N`` times wdy.
    RMSNorm has no c2 and no ``11'/N``."""
    c2 = wdy.mean() if kind == "layer_norm" else 0.0
    return wdy - (xhat * wdy).mean() * xhat - c2


def model(kind: str, x: ArrayLike, wdy: ArrayLike, eps: float = 0.0) -> ProjectionState:
    """Compute the parts of one row's gradient.

    Args:
        kind: "layer_norm" or "rms_norm".
        x, wdy: three numbers each; wdy is w * dy.
        eps: 0 or more.

    Raises: CourseError if an argument does not fit, or rstd does not exist because variance and eps
    are 0.
    """
    x, wdy = (np.asarray(values, dtype=np.float64) for values in (x, wdy))
    if kind not in KINDS:
        raise CourseError(
            _("the projection shows layer_norm and rms_norm; you asked for {kind!r}.").format(
                kind=kind
            )
        )
    if x.shape != (N,) or wdy.shape != (N,):
        words = _(
            "the projection is drawn in space, so x and wdy are three numbers each; their shapes"
            " are {x} and {wdy}."
        )
        raise CourseError(words.format(x=x.shape, wdy=wdy.shape))
    if not eps >= 0.0:
        raise CourseError(
            _("eps is added inside the root and cannot be negative; you passed {eps}.").format(
                eps=eps
            )
        )
    centred = x - x.mean() if kind == "layer_norm" else x
    spread = float((centred**2).mean()) + eps
    if spread <= 0.0:
        if kind == "layer_norm":
            raise CourseError(
                _(
                    "this row is constant and eps is 0: 1 / sqrt(0) has no value. Give the row a"
                    " spread, or eps a value."
                )
            )
        raise CourseError(
            _(
                "this row is zero and eps is 0: 1 / sqrt(0) has no value. Give the row a spread, or"
                " eps a value."
            )
        )
    rstd = spread**-0.5
    xhat = centred * rstd
    return ProjectionState(
        kind,
        eps,
        x,
        wdy,
        rstd,
        xhat,
        float((xhat * wdy).mean()),
        float(wdy.mean()) if kind == "layer_norm" else None,
    )


def row(turn: float, mean: float, std: float) -> np.ndarray:
    """Return a row of three numbers with this mean and (biased) standard deviation; ``turn``, in
    degrees, rotates it about 1."""
    return mean + std * math.sqrt(N) * _in_plane(turn)


def push(turn: float, mean: float) -> np.ndarray:
    """Return a wdy with this mean; its part at right angles to 1 has length IN_PLANE and the
    direction ``turn``, in degrees."""
    return mean + IN_PLANE * _in_plane(turn)


def _in_plane(turn: float) -> np.ndarray:
    angle = math.radians(turn)
    return math.cos(angle) * FRAME[0] + math.sin(angle) * FRAME[1]
