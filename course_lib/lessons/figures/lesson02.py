"""Lesson 02: the published table, and the figure of the effect of eps on a row of small numbers."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from course_lib.lessons import style
from course_lib.lessons.live import Picture, picture
from course_lib.lessons.pictures.block_stepper.model import EXAMPLE as TABLE

__all__ = ["PUBLISHED", "TABLE", "small_rows"]

PUBLISHED = (21.75, 44.25, 50.0)  # sum of squares of each row of TABLE as printed in the blog post; two are wrong


def small_rows(eps: float) -> Picture:
    """Draw the rms of y against that of x, with eps inside the root and outside, and mark the two thresholds."""
    rms = np.logspace(-7, 1, 65)
    figure = Figure()
    axes = figure.add_subplot()
    axes.plot(rms, rms / np.sqrt(rms**2 + eps), color=style.INK, linestyle="-", marker="")
    axes.plot(rms, rms / (rms + eps), color=style.QUIET, linestyle="--", marker="")
    for at, name, y, ha in ((eps, "eps", 0.95, "right"), (eps**0.5, "sqrt(eps)", 0.02, "left")):
        axes.axvline(at, color=style.QUIET, linestyle=":", linewidth=1.2)
        axes.annotate(f"{name} = {_short(at)}", (at, y), (5 if ha == "left" else -5, 0), textcoords="offset points", ha=ha)
    axes.annotate("outside:\nx / (rms + eps)", (eps, 0.6), (-10, 0), textcoords="offset points", ha="right")
    axes.annotate("inside:\nx / sqrt(rms\u00b2 + eps)", (eps**0.5, 0.6), (14, -24), textcoords="offset points")
    axes.set(xscale="log", xlabel="rms of the row", ylabel="rms of y (large rows: 1)", ylim=(-0.02, 1.08))
    axes.set_title("Rows below sqrt(eps) stay small, or below eps if it stands outside")
    return picture(
        figure,
        f"The rms of y against the rms of the row, eps = {_short(eps)}, logarithmic axis. With eps inside the root the curve rises from 0 "
        f"to 1 around sqrt(eps) = {_short(eps**0.5)}. With eps outside it rises around eps, so rows between the two come out at nearly full "
        "size.",
    )


def _short(value: float) -> str:
    """Write two digits; an exponent has no leading zero: 1e-5."""
    digits, _, exponent = f"{value:.2g}".partition("e")
    return f"{digits}e{int(exponent)}" if exponent else digits
