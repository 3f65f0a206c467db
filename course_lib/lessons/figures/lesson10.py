"""The two figures of lesson 10: the three paths from x to xhat as matrices, and the share of a push along xhat that eps lets through."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from course_lib.lessons import style
from course_lib.norms import reference

EPS = 1e-5
THREE_PATHS = (
    "Four matrices of 4 x 4 numbers. The first has the same number on its diagonal and 0 elsewhere, the second the same negative number "
    "everywhere, the third the products of two xhats. Their sum, the Jacobian, has no zero entry."
)
LET_THROUGH = (
    "Share of a push along xhat that reaches dx, against the standard deviation of the row on a logarithmic axis, eps = 1e-5. The share is "
    "nearly 1 for rows below 0.0003, one half at sqrt(eps) = 0.0032, and nearly 0 from 0.1 on."
)
_NEGATIVE, _POSITIVE = np.array([0xF9, 0xB5, 0x84]) / 255, np.array([0x86, 0xC3, 0xF0]) / 255


def split_jacobian(row: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the three parts of the Jacobian of one row of N numbers: the effect of x[i] on xhat[a] directly, through the mean and through
    sigma. Each is a matrix of shape (N, N)."""
    N = len(row)
    forward = reference.layer_norm([row], eps=EPS)
    xhat, rstd = forward.y[0], forward.rstd[0]
    return rstd * np.eye(N), -rstd * np.ones((N, N)) / N, -rstd * np.outer(xhat, xhat) / N


def draw_three_paths(row: np.ndarray) -> Figure:
    """Draw the three parts of the Jacobian of one row and their sum, side by side, with all numbers. The row has at most 4 columns."""
    direct, mean, sigma = split_jacobian(row)
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
    figure.suptitle("x itself fills the diagonal; the mean and sigma fill every entry", fontsize=12, weight="bold", x=0.01, ha="left")
    return figure


def _numbers(axes: Axes, matrix: np.ndarray, largest: float) -> None:
    """Draw a small matrix with its numbers: positive ones blue and plain, negative ones orange and hatched."""
    N = len(matrix)
    for a, i in np.ndindex(matrix.shape):
        value = matrix[a, i]
        strength = min(abs(value) / largest, 1.0)
        colour = 1 - strength * (1 - (_POSITIVE if value > 0 else _NEGATIVE))
        axes.fill_between(
            [i - 0.5, i + 0.5], a - 0.5, a + 0.5, facecolor=tuple(colour), edgecolor=style.QUIET, linewidth=0.6,
            hatch="//" if value < -0.02 else "", **style.colour_hatch(style.PANEL),
        )  # fmt: skip
        axes.text(i, a, "0" if abs(value) < 5e-4 else f"{value:.2f}", ha="center", va="center", fontsize=style.FONT - 1)
    axes.set(xlim=(-0.5, N - 0.5), ylim=(N - 0.5, -0.5), xticks=range(N), yticks=range(N), aspect="equal")
    axes.grid(False)


def measure_let_through(eps: float) -> tuple[np.ndarray, np.ndarray]:
    """Return rising standard deviations of rows, and for each the share of a push along xhat that reaches dx: eps * rstd^2."""
    stds = np.logspace(-5, 0, 31)
    row = np.tile([1.0, -1.0], 4)  # mean 0, standard deviation 1
    return stds, np.array([eps * reference.layer_norm([std * row], eps=eps).rstd[0] ** 2 for std in stds])


def draw_let_through(eps: float) -> Figure:
    """Draw the share of a push along xhat that reaches dx against the spread of the row, and mark the root of eps."""
    stds, shares = measure_let_through(eps)
    root = eps**0.5
    figure = Figure()
    axes = figure.add_subplot()
    axes.plot(stds, shares, color=style.COLOURS["dw"], marker="o", markeredgecolor=style.INK, linestyle="-")
    axes.axvline(root, color=style.QUIET, linestyle=":", marker="")
    axes.annotate(f"std = sqrt(eps) = {root:.2g}: half comes through", (root, 0.5), (10, 0), textcoords="offset points", va="center")
    axes.annotate("ordinary rows: nearly nothing", (stds[-1], shares[-1]), (0, 12), textcoords="offset points", ha="right")
    axes.annotate("nearly constant rows:\nLayerNorm only centres and scales", (stds[0], 0.9), (0, 0), textcoords="offset points", va="top")
    axes.set(xscale="log", xlabel="standard deviation of the row", ylabel="share of the push along xhat in dx / rstd", ylim=(-0.04, 1.08))
    axes.set_title("For rows with a small std, eps lets a push along xhat through")
    return figure
