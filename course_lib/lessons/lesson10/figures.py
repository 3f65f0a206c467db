"""The two figures of lesson 10: the three paths from x to xhat as matrices, and the share of a push
along xhat that eps lets through."""

from __future__ import annotations

import numpy as np

from course_lib.base.translation import gettext as _
from course_lib.lessons.kit.output import MovingPicture
from course_lib.lessons.pictures.chart.model import Axis, Cells, Level, Plot, Series, View, chart
from course_lib.norms import reference

EPS = 1e-5


def split_jacobian(row: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the three parts of the Jacobian of one row of N numbers: the effect of x[i] on xhat[a]
    directly, through the mean and through sigma. Each is a matrix of shape (N, N)."""
    N = len(row)
    forward = reference.layer_norm([row], eps=EPS)
    xhat, rstd = forward.y[0], forward.rstd[0]
    return rstd * np.eye(N), -rstd * np.ones((N, N)) / N, -rstd * np.outer(xhat, xhat) / N


def show_three_paths(row: np.ndarray) -> MovingPicture:
    """Show the three parts of the Jacobian of one row and their sum, side by side, with all
    numbers. The row has at most 4 columns."""
    parts = split_jacobian(row)
    whole = np.sum(parts, axis=0)
    names = [str(i) for i in range(len(row))]
    largest = np.abs(whole).max()
    panels = [
        Cells(
            names, names,
            [["0" if abs(value) < 5e-4 else f"{value:.2f}" for value in line] for line in matrix],
            (matrix / largest).clip(-1, 1).tolist(),
            _("a: the xhat that changes"), _("i: the x that moves"), title,
        )
        for title, matrix in zip((_("x itself"), _("+ the mean"), "+ sigma", _("= the Jacobian")),
            (*parts, whole), strict=True)
    ]  # fmt: skip
    return chart(
        View(_("x itself fills the diagonal; the mean and sigma fill every entry"), panels),
        alt=_(
            "Four matrices of 4 x 4 numbers. The first has the same number on its diagonal and 0"
            " elsewhere, the second the same negative number everywhere, the third the products of"
            " two xhats. Their sum, the Jacobian, has no zero entry."
        ),
    )


def measure_let_through(eps: float) -> tuple[np.ndarray, np.ndarray]:
    """Return rising standard deviations of rows, and for each the share of a push along xhat that
    reaches dx: eps * rstd^2."""
    stds = np.logspace(-5, 0, 31)
    row = np.tile([1.0, -1.0], 4)  # mean 0, standard deviation 1
    return stds, np.array(
        [eps * reference.layer_norm([std * row], eps=eps).rstd[0] ** 2 for std in stds]
    )


def show_let_through(eps: float) -> MovingPicture:
    """Show the share of a push along xhat that reaches dx against the spread of the row, and mark
    the root of eps."""
    stds, shares = measure_let_through(eps)
    root = eps**0.5
    plot = Plot(
        Axis(_("standard deviation of the row"), log=True),
        Axis(_("share of the push along xhat in dx / rstd"), high=1.1),
        [Series("", stds.tolist(), shares.tolist(), "dw")],
        [Level(root, _("sqrt(eps) = {root:.2g}: half comes through").format(root=root), "x")],
    )
    return chart(
        View(
            _("For rows with a small std, eps lets a push along xhat through"),
            [plot],
            _("For an ordinary row, nearly nothing of the push comes through."),
        ),
        alt=_(
            "Share of a push along xhat that reaches dx, against the standard deviation of the row"
            " on a logarithmic axis, eps = {eps:g}. The share is nearly 1 for rows far below"
            " sqrt(eps) = {root:.2g}, one half there, and nearly 0 far above."
        ).format(eps=eps, root=root),
    )
