"""The steps of lesson 11: read two numbers from an error, write two sums, keep lanes past the end
out, give dy its own strides."""

from __future__ import annotations

from typing import Any

import numpy as np

from course_lib.base.translation import gettext as _
from course_lib.lessons.steps.step import In, Out, Slip, Step, Try, WrongForm
from course_lib.norms import reference

EPS = 1e-5
_FIVE = (np.array([8.0, 11, 12, 9, 10]), np.array([1.0, 3, 2, 2, 4]))
_EIGHT = (np.array([2, -1, 3, 0.5, -0.5, 1.5, -2, 1]), np.array([0.5, 1, -1, 2, 0, 1.5, 1, -0.5]))
_X = np.array([[1.0, 2, 3, 4, 5], [2, 0, 1, -1, 3], [4, 1, 0, 2, -2]])
_DY = np.array([[0.5, 1, -1, 2, 1], [1, 1, 0, 3, -2], [2, -1, 1, 0.5, 1]])


def _accept_missing(value: Any) -> str:
    """Return why these are not the two missing numbers; "" if they are."""
    if not isinstance(value, dict) or set(value) != {"c1", "c2"}:
        raise WrongForm(_('`missing` has to be a dict with the keys "c1" and "c2".'))
    try:
        c1, c2 = (float(value[key]) for key in ("c1", "c2"))
    except (TypeError, ValueError):
        raise WrongForm(_("c1 and c2 have to be numbers.")) from None
    if abs(c1 - 0.6) < 1e-3 and abs(c2 - 0.4) < 1e-3:
        return ""
    if abs(c1 - 0.3) < 1e-3 and abs(c2 - 0.2) < 1e-3:
        return _("Those are the slope and the height. Both have rstd in them.")
    if abs(c1 - 0.4) < 1e-3 and abs(c2 - 0.6) < 1e-3:
        return _("The two are exchanged. Which of them is multiplied by xhat?")
    if abs(c2 - 0.4) < 1e-3:
        return _(
            "c2 is right. c1 is not: from the first column to the last xhat rises by 2.8. By how"
            " much does the error rise?"
        )
    if abs(c1 - 0.6) < 1e-3:
        return _(
            "c1 is right. c2 is not: what is the error where xhat is 0, halfway between the two"
            " columns in the middle?"
        )
    return _(
        "Neither is right. The error is (c2 + c1 * xhat) * rstd: read its height at xhat = 0, and"
        " its slope."
    )


def _make_row_try(
    description: str,
    row: tuple[np.ndarray, np.ndarray],
    block: int,
    output: str,
    mean_off: float = 0.0,
) -> Try:
    """Make a try with one row and w = 1; ``output`` is "dx" or "c1". ``mean_off`` is added to the
    row's mean, so that xhat does not add up to 0."""
    x, dy = row
    forward = reference.layer_norm([x], eps=EPS)
    mean, rstd = float(forward.mean[0]) + mean_off, float(forward.rstd[0])
    size = len(x) if output == "dx" else 1
    dx = reference.layer_norm_vjp([dy], [x], eps=EPS).dx[0]
    c1 = np.mean((x - mean) * rstd * (dy - dy.mean()))
    return Try(
        description,
        arguments={
            "dy_ptr": In(dy),
            "x_ptr": In(x),
            f"{output}_ptr": Out((size,)),
            "mean": mean,
            "rstd": rstd,
            "N": len(x),
        },
        constexprs={"BLOCK": block},
        expected={f"{output}_ptr": dx if output == "dx" else np.array([c1])},
        asked=output == "dx" or (len(x) < block and not mean_off),
    )


def _make_strided_try(
    description: str, dy: In, strides: tuple[int, int], x_stride: int, dy_matrix: np.ndarray
) -> Try:
    """Make a try of the sum of x * dy of every row; ``dy_matrix`` is the matrix dy that its strides
    describe."""
    return Try(
        description,
        arguments={
            "dy_ptr": dy, "x_ptr": In(_X, stride=x_stride), "dot_ptr": Out((3,)),
            "dy_row": strides[0], "dy_col": strides[1], "stride_x": x_stride,
            "N": 5,
        },
        grid=(3,),
        constexprs={"BLOCK": 8},
        expected={"dot_ptr": (_X * dy_matrix).sum(axis=1)},
    )  # fmt: skip


STEPS = (
    Step(
        "11-read-the-line",
        kind="value",
        entry_point="missing",
        accepts=_accept_missing,
        question=(
            "The error is (c2 + c1 * xhat) * rstd. What is its height at xhat = 0, and how much"
            " does it rise for a unit of xhat?"
        ),
        debrief=(
            "You computed two means of a row from nothing but an error. A verdict of your exercises"
            " does the same to say which term is missing."
        ),
        slips=(
            Slip('{"c1": 0.6, "c2": 0.4}', '{"c1": 0.3, "c2": 0.2}'),
            Slip('{"c1": 0.6, "c2": 0.4}', '{"c1": 0.4, "c2": 0.6}'),
            Slip('{"c1": 0.6, "c2": 0.4}', '{"c1": 0.6, "c2": 0.2}'),
        ),
    ),
    Step(
        "11-two-sums",
        kind="kernel",
        entry_point="dx_kernel",
        tries=(
            _make_row_try("eight numbers in a block of eight", _EIGHT, 8, "dx"),
            _make_row_try("five numbers in a block of eight, mean 10", _FIVE, 8, "dx"),
        ),
        question=(
            "c1 and c2 are means over the N columns of the row. Which sums, and divided by what?"
        ),
        debrief=(
            "That is a whole dx kernel. What the exercise adds is w, a tile of rows, three dtypes,"
            " and strides."
        ),
        slips=(
            Slip("tl.sum(xhat * wdy) / N", "tl.sum(xhat * wdy) / BLOCK", "divisor"),
            Slip("tl.sum(wdy) / N", "tl.sum(wdy) / BLOCK", "divisor"),
            Slip(
                "tl.sum(xhat * wdy) / N",
                "tl.sum(xhat * wdy)",
                "c1 is a sum, not a mean",
                "c1 is a mean over the columns of the row. By how many do you divide?",
            ),
            Slip(
                "tl.sum(xhat * wdy) / N",
                "tl.sum(xhat) / N",
                "c1 is made of xhat alone",
                "c1 says how much of `xhat` is in `wdy`. Where does `wdy` enter your c1?",
            ),
            Slip(
                "tl.sum(wdy) / N",
                "tl.sum(xhat) / N",
                "c2 is made of xhat",
                "c2 is the mean of what comes in. Which numbers does your c2 add up?",
            ),
        ),
    ),
    Step(
        "11-taken-out-first",
        kind="kernel",
        entry_point="c1_kernel",
        tries=(
            _make_row_try("eight numbers in a block of eight", _EIGHT, 8, "c1"),
            _make_row_try("five numbers in a block of eight, mean 10", _FIVE, 8, "c1"),
            # Without this try, a kernel that never subtracts c2 would pass: if xhat adds up to 0,
            # c2 does not change the sum.
            _make_row_try(
                "five numbers, and a mean that is off by 1: xhat does not add up to 0",
                _FIVE,
                8,
                "c1",
                mean_off=1.0,
            ),
        ),
        question="What does wdy - c2 hold in a lane that loaded 0? And what is it multiplied by?",
        debrief=(
            "The step on paper used that xhat adds up to 0. Over N columns it does; over the lanes"
            " of a block it does not."
        ),
        slips=(
            Slip(
                "tl.where(mask, wdy - c2, 0.0)",
                "wdy",
                "c2 is not taken out",
                "Where `xhat` does not add up to 0, c1 depends on c2. Which of your lines takes it"
                " out of `wdy`?",
            ),
            Slip(
                "tl.where(mask, wdy - c2, 0.0)",
                "wdy - c2",
                "c2 is taken out of the lanes past the end, too",
                "What does `wdy` hold after your line in a lane that loaded 0? And what is it"
                " multiplied by?",
            ),
            Slip(
                "tl.where(mask, wdy - c2, 0.0)",
                "tl.where(mask, wdy, -c2)",
                "c2 is taken out of the lanes past the end, and of no others",
                "Which lanes does your line take c2 out of: those whose mask is true, or those"
                " whose mask is false?",
            ),
            Slip(
                "tl.where(mask, wdy - c2, 0.0)",
                "tl.where(mask, wdy, 0.0) - c2",
                "c2 is taken out of the lanes past the end, too",
                "What does `wdy` hold after your line in a lane that loaded 0? And what is it"
                " multiplied by?",
            ),
        ),
    ),
    Step(
        "11-own-strides",
        kind="kernel",
        entry_point="dot_kernel",
        tries=(
            _make_strided_try("dy packed, x a slice of a wider matrix", In(_DY), (5, 1), 9, _DY),
            _make_strided_try(
                "dy is one number, with strides (0, 0)",
                In([1.25]),
                (0, 0),
                5,
                np.full((3, 5), 1.25),
            ),
            _make_strided_try("dy transposed: its columns are 3 apart", In(_DY.T), (1, 3), 5, _DY),
        ),
        question=(
            "How many elements of memory lie between dy[0, 0] and dy[1, 0], and how many between"
            " dy[0, 0] and dy[0, 1]?"
        ),
        debrief=(
            "FlagGems took dy for a packed matrix (PR 1082), and was wrong after"
            " `y.sum().backward()`."
        ),
        slips=(
            Slip("row * dy_row + cols * dy_col", "row * dy_row + cols", "stride_ignored"),
            Slip(
                "row * dy_row + cols * dy_col", "row * stride_x + cols * dy_col", "stride_ignored"
            ),
            Slip("row * dy_row + cols * dy_col", "row * dy_col + cols * dy_row", "stride_ignored"),
            Slip("row * dy_row + cols * dy_col", "row * N + cols", "stride_ignored"),
        ),
    ),
)
