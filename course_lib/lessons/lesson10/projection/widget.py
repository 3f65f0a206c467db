"""Lesson 10: the VJP of a norm as a projection. Rows have three numbers, so each is a point in
space."""

from __future__ import annotations

from course_lib.base.errors import CourseError
from course_lib.base.translation import gettext as _
from course_lib.base.words import list_words
from course_lib.lessons.kit.output import MovingPicture
from course_lib.lessons.lesson10.projection.model import EPS, IN_PLANE, KINDS, STDS


def projection(kind: str = "layer_norm", eps: float = 0.0) -> MovingPicture:
    """Drag x and wdy in space, and see which parts the VJP subtracts from wdy and what remains for
    dx.

    Args:
        kind: "layer_norm" or "rms_norm".
        eps: one of 0, 1e-5, 0.01, 0.1, 0.3, 1, 3 and 10.

    Raises: CourseError if an argument has another value.
    """
    if kind not in KINDS:
        raise CourseError(
            _("the projection shows layer_norm and rms_norm; you asked for {kind!r}.").format(
                kind=kind
            )
        )
    if eps not in EPS:
        offered = list_words(f"{offer:g}" for offer in EPS)
        raise CourseError(
            _("the projection shows eps from {offered}; you asked for {eps!r}.").format(
                offered=offered, eps=eps
            )
        )
    data = {
        "start": {
            "kind": kind, "eps": eps, "where": False, "turn": 130, "length": IN_PLANE, "mean": 0.75,
            "xTurn": 60, "xMean": 0.5, "xStd": 1.0,
            "view": 285,
        },
        "kinds": KINDS, "eps": EPS, "stds": STDS,
    }  # fmt: skip
    alt = _(
        "{norm} in space. Up is the direction 1, in which all three numbers of a row rise together;"
        " the disc is the plane at right angles to it. The arrow wdy is taken apart into the parts"
        " that the VJP takes out and the arrow that is left, which is dx / rstd."
    )
    return MovingPicture("projection", data, alt.format(norm=KINDS[kind]))
