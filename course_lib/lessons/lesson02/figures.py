"""Lesson 02: the figure of the effect of eps on a row of small numbers."""

from __future__ import annotations

import numpy as np

from course_lib.base.translation import gettext as _
from course_lib.lessons.kit.output import MovingPicture
from course_lib.lessons.pictures.chart.model import Axis, Level, Plot, Series, View, chart

__all__ = ["small_rows"]


def small_rows(eps: float) -> MovingPicture:
    """Show the rms of y against that of x, with eps inside the root and outside, and mark the two
    thresholds; other eps are a choice."""
    rms = np.logspace(-7, 1, 65)

    def make_view(eps: float) -> View:
        lines = (
            Series(
                _("outside: x / (rms + eps)"),
                rms.tolist(),
                (rms / (rms + eps)).tolist(),
                "quiet",
                dots=False,
                dash="7 4",
            ),
            Series(
                _("inside: x / sqrt(rms\u00b2 + eps)"),
                rms.tolist(),
                (rms / np.sqrt(rms**2 + eps)).tolist(),
                "x",
                dots=False,
            ),
        )
        levels = (
            Level(eps, f"eps = {_short(eps)}", "x"),
            Level(eps**0.5, f"sqrt(eps) = {_short(eps**0.5)}", "x"),
        )
        plot = Plot(
            Axis(_("rms of the row"), log=True),
            Axis(_("rms of y (large rows: 1)"), high=1.1),
            lines,
            levels,
        )
        return View(
            _("Rows below sqrt(eps) stay small, or below eps if eps stands outside the root"),
            [plot],
            name=_short(eps),
        )

    choices = sorted({1e-8, 1e-6, 1e-5, 1e-3, eps})
    return chart(
        *map(make_view, choices), control="eps", start=choices.index(eps),
        alt=_(
            "The rms of y against the rms of the row, eps = {eps}, logarithmic axis. With eps "
            "inside the root the curve rises from 0 "
            "to 1 around sqrt(eps) = {root}. With eps outside it rises around eps, so rows "
            "between the two come out at nearly full size."
        ).format(eps=_short(eps), root=_short(eps**0.5)),
    )  # fmt: skip


def _short(value: float) -> str:
    """Write two digits; an exponent has no leading zero: 1e-5."""
    digits, e, exponent = f"{value:.2g}".partition("e")
    return f"{digits}{e}{int(exponent)}" if exponent else digits
