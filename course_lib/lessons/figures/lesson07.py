"""The figure of lesson 07: the effect of padding on a variance when BLOCK changes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from course_lib.lessons import style
from course_lib.lessons.live import Picture, picture

N, BLOCKS = 1000, (8, 64)  # BLOCK = 8 gives 125 full blocks; BLOCK = 64 gives 16 blocks with 24 padded lanes


def make_rows() -> np.ndarray:
    """Return eleven rows of N numbers with means 0 to 10, all with variance 1."""
    shape = np.random.default_rng(1).standard_normal(N)
    return (shape - shape.mean()) / shape.std() + np.arange(11)[:, None]


def find_unmasked_variance(x: np.ndarray, block: int) -> np.ndarray:
    """Return the variance of each row, shape (M,), if lanes past the last column load 0 and their deviations are squared as well."""
    padded = np.pad(x, ((0, 0), (0, -x.shape[1] % block)))
    return ((padded - x.mean(axis=1, keepdims=True)) ** 2).sum(axis=1) / x.shape[1]


def show_padded_variance() -> Picture:
    """Draw the computed variance of rows with true variance 1 against their mean, with 24 padded lanes and with none."""
    x = make_rows()
    right, wrong = (find_unmasked_variance(x, block) for block in BLOCKS)
    figure = padded_variance(list(range(11)), list(wrong), list(right), N, -N % BLOCKS[1])
    return picture(
        figure,
        "The variance found for rows of true variance 1, against their mean. With BLOCK = 64 there are 24 padded lanes, and the points lie "
        "on 1 + 0.024 mean squared: 3.4 at mean 10. With BLOCK = 8 there is no padded lane, and they stay at 1.",
    )


def padded_variance(means: Sequence[float], unmasked: Sequence[float], masked: Sequence[float], N: int, pad: int) -> Figure:
    """Draw the computed variance of rows with true variance 1 against their mean, with padded lanes squared and without padded lanes.

    Args:
        means: the mean of each row, in rising order.
        unmasked: the variance of each row as a kernel computes it that squares its padded lanes.
        masked: the variance of each row without padded lanes.
        N: columns of a row.
        pad: number of padded lanes.
    """
    figure = Figure()
    axes = figure.add_subplot()
    law = [1 + pad * mean * mean / N for mean in means]
    axes.plot(means, law, color=style.QUIET, linestyle="-", linewidth=1.2, marker="", zorder=1)
    axes.plot(means, unmasked, color=style.COLOURS["fault"], marker="D", markeredgecolor=style.INK, linestyle="")
    axes.plot(means, masked, **style.line("two_pass"))
    axes.annotate(
        f"BLOCK = {BLOCKS[1]}: {pad} padded lanes,\non the curve 1 + {pad}/{N} mean\u00b2",
        (means[-4], unmasked[-4]),
        (-14, 22),
        textcoords="offset points",
        ha="right",
    )
    axes.annotate(f"BLOCK = {BLOCKS[0]}: no padded lane", (means[-1], masked[-1]), (0, 10), textcoords="offset points", ha="right")
    axes.set(xlabel="mean of the row (its standard deviation is 1)", ylabel="variance computed (true: 1)", ylim=(0, None))
    axes.set_title(f"{pad} padded lanes of {N + pad} ruin the variance once the mean leaves 0")
    return figure
