"""Lesson 03: the error of each variance algorithm as the mean moves away from zero, and the
LayerNorm output that follows."""

from __future__ import annotations

from course_lib.base.translation import gettext as _
from course_lib.lessons.kit.output import MovingPicture
from course_lib.lessons.lesson03.cancellation.model import make_data


def cancellation(
    mean_over_std: float = 1000.0, N: int = 8192, dtype: str = "fp32", algorithm: str = "one_pass"
) -> MovingPicture:
    """Show the error of each variance algorithm against mean/std, with its bound, the subtraction
    digit by digit, and the LayerNorm output of one row.

    Raises: CourseError if an argument is unknown, N is below 2, or mean_over_std is negative or
    infinite.
    """
    data = make_data(mean_over_std, N, dtype, algorithm)
    return MovingPicture(
        "cancellation",
        data,
        _(
            "Relative error of the variance against mean/std, one line per algorithm, on"
            " logarithmic axes. E[x²] - E[x]², one-pass, loses digits with the square of mean/std"
            " and keeps none of them from 10000 on; two-pass, Welford and Chan's merge lose next to"
            " nothing. Beside it the two terms of the subtraction, digit by digit, and LayerNorm's"
            " output."
        ),
    )
