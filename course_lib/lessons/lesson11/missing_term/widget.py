"""Lesson 11: leave a term of the VJP out and see the error of dx, or name a missing term from the
error."""

from __future__ import annotations

from course_lib.base.errors import CourseError
from course_lib.base.translation import gettext as _
from course_lib.lessons.kit.output import MovingPicture
from course_lib.lessons.lesson11.missing_term.model import KINDS, MYSTERIES, make_data, model


def missing_term(kind: str = "layer_norm", term: str = "none", mystery: int = 0) -> MovingPicture:
    """Choose a mistake in dx and see its error along 1, along xhat and in neither direction, or
    name a hidden mistake.

    Args:
        kind: "layer_norm" or "rms_norm".
        term: the mistake to begin with, a key of TERMS[kind].
        mystery: 1 to 8 hides one of the mistakes, which the learner has to name from the points;
            ``term`` is then ignored. The picture begins with the points by column, and shows
            neither the line nor the parts of the error until the mistake is named.

    Raises: CourseError if :func:`model` raises it, or if there is no such mystery.
    """
    model(kind, term)
    if not 0 <= mystery <= len(MYSTERIES):
        words = _("missing_term has mysteries 1 to {most}; you asked for {mystery!r}.")
        raise CourseError(words.format(most=len(MYSTERIES), mystery=mystery))
    hidden = MYSTERIES[mystery - 1] if mystery else None
    words = _(
        "The error of {norm}'s dx, one point per column, across by the number of the column or by"
        " its xhat. Against xhat the line that fits it best has the error along 1 as its height at"
        " xhat = 0, and the error along xhat as its slope; what is off the line is in neither."
        " Beside it the sizes of the three parts, and dx by column."
    )
    return MovingPicture(
        "missing_term",
        make_data(kind, None if hidden else term, hidden),
        words.format(norm=KINDS[kind]),
    )
