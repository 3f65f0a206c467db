"""The figure of lesson 07: the effect of lanes past the end on a variance when BLOCK changes."""

from __future__ import annotations

import numpy as np

from course_lib.base.translation import gettext as _
from course_lib.lessons.kit.output import MovingPicture
from course_lib.lessons.pictures.chart.model import Axis, Plot, Series, View, chart

# BLOCK = 8 gives 125 full blocks; BLOCK = 64 gives 16 blocks with 24 lanes past the end
N, BLOCKS = 1000, (8, 64)


def make_rows() -> np.ndarray:
    """Return eleven rows of N numbers with means 0 to 10, all with variance 1."""
    shape = np.random.default_rng(1).standard_normal(N)
    return (shape - shape.mean()) / shape.std() + np.arange(11)[:, None]


def find_unmasked_variance(x: np.ndarray, block: int) -> np.ndarray:
    """Return the variance of each row, shape (M,), if lanes past the last column load 0 and their
    deviations are squared as well."""
    padded = np.pad(x, ((0, 0), (0, -x.shape[1] % block)))
    return ((padded - x.mean(axis=1, keepdims=True)) ** 2).sum(axis=1) / x.shape[1]


def show_unmasked_variance() -> MovingPicture:
    """Show the computed variance of rows with true variance 1 against their mean, with 24 lanes
    past the end and with none."""
    x, means, pad = make_rows(), list(range(11)), -N % BLOCKS[1]
    right, wrong = (find_unmasked_variance(x, block).tolist() for block in BLOCKS)
    lines = (
        Series(
            _("1 + {pad}/{N} mean\u00b2").format(pad=pad, N=N),
            means,
            [1 + pad * mean * mean / N for mean in means],
            "quiet",
            dots=False,
        ),
        Series(
            _("BLOCK = {block}: {pad} lanes past the end").format(block=BLOCKS[1], pad=pad),
            means,
            wrong,
            "one_pass",
            line=False,
        ),
        Series(
            _("BLOCK = {block}: no lane past the end").format(block=BLOCKS[0]),
            means,
            right,
            "two_pass",
        ),
    )
    plot = Plot(
        Axis(_("mean of the row (its standard deviation is 1)")),
        Axis(_("variance computed (true: 1)")),
        lines,
    )
    return chart(
        View(
            _("{pad} lanes past the end ruin the variance once the mean leaves 0").format(pad=pad),
            [plot],
        ),
        alt=_(
            "The variance found for rows of true variance 1, against their mean. With BLOCK = 64 24"
            " lanes are past the end, and the points lie on 1 + 0.024 mean squared: 3.4 at mean 10."
            " With BLOCK = 8 no lane is past the end, and they stay at 1."
        ),
    )
