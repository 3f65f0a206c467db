"""The two figures of lesson 02: the three paths from x to xhat as matrices, and what eps lets through."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from course_lib.lessons import style

_NEGATIVE, _POSITIVE = np.array([0xF9, 0xB5, 0x84]) / 255, np.array([0x86, 0xC3, 0xF0]) / 255


def three_paths(direct: np.ndarray, mean: np.ndarray, sigma: np.ndarray) -> Figure:
    """The three parts of the Jacobian of one row and their sum, side by side, every number written out.

    Args:
        direct, mean, sigma: shape (N, N), N at most 4: what x[i] does to xhat[a] by itself, through the mean, through sigma.
    """
    whole = direct + mean + sigma
    figure = Figure(figsize=(style.WIDTH, 2.7))
    grid = figure.subplots(1, 4)
    titles = ("x itself", "+ the mean", "+ sigma", "= the Jacobian")
    largest = np.abs(whole).max()
    for axes, title, matrix in zip(grid, titles, (direct, mean, sigma, whole), strict=True):
        _numbers(axes, matrix, largest)
        axes.set_title(title, fontsize=style.FONT + 1)
        axes.set_xlabel("i: the x that moves")
    grid[0].set_ylabel("a: the xhat that feels it")
    figure.suptitle(
        "Only a diagonal by itself; mean and sigma make every entry count",
        fontsize=12,
        weight="bold",
        x=0.01,
        ha="left",
    )
    return figure


def _numbers(axes: Axes, matrix: np.ndarray, largest: float) -> None:
    """A small matrix with its numbers; blue and plain where positive, orange and hatched where negative."""
    N = len(matrix)
    for a, i in np.ndindex(matrix.shape):
        value = matrix[a, i]
        strength = min(abs(value) / largest, 1.0)
        colour = 1 - strength * (1 - (_POSITIVE if value > 0 else _NEGATIVE))
        axes.fill_between(
            [i - 0.5, i + 0.5], a - 0.5, a + 0.5, facecolor=tuple(colour), edgecolor=style.QUIET, linewidth=0.6,
            hatch="//" if value < -0.02 else "", hatchcolor=style.PANEL,
        )  # fmt: skip
        axes.text(i, a, "0" if abs(value) < 5e-4 else f"{value:.2f}", ha="center", va="center", fontsize=style.FONT - 1)
    axes.set(xlim=(-0.5, N - 0.5), ylim=(N - 0.5, -0.5), xticks=range(N), yticks=range(N), aspect="equal")
    axes.grid(False)


def let_through(stds: Sequence[float], shares: Sequence[float], eps: float) -> Figure:
    """How much of a push along xhat reaches dx, against the spread of the row.

    Args:
        stds: standard deviations of rows, rising.
        shares: the share for each, between 0 and 1.
        eps: the one used; its root is marked.
    """
    root = eps**0.5
    figure = Figure()
    axes = figure.add_subplot()
    axes.plot(stds, shares, color=style.COLOURS["dw"], marker="o", markeredgecolor=style.INK, linestyle="-")
    axes.axvline(root, color=style.QUIET, linestyle=":", marker="")
    axes.annotate(
        f"std = sqrt(eps) = {root:.2g}: half comes through",
        (root, 0.5),
        (10, 0),
        textcoords="offset points",
        va="center",
    )
    axes.annotate(
        "ordinary rows: nearly nothing", (stds[-1], shares[-1]), (0, 12), textcoords="offset points", ha="right"
    )
    axes.annotate(
        "nearly constant rows:\nLayerNorm only centres and scales",
        (stds[0], 0.9),
        (0, 0),
        textcoords="offset points",
        va="top",
    )
    axes.set(
        xscale="log",
        xlabel="standard deviation of the row",
        ylabel="share of the push along xhat in dx / rstd",
        ylim=(-0.04, 1.08),
    )
    axes.set_title("eps lets the scale of quiet rows learn")
    return figure
