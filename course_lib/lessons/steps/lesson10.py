"""The steps of lesson 10: the parts of dx, one direction at a time, and dw by hand."""

from __future__ import annotations

from typing import Any

import numpy as np

from course_lib.lessons.steps.step import In, Step, Try
from course_lib.norms import reference

_PUSH = np.array([2.0, -1, 0.5, 4])
_SQUARE = np.array([[2.0, -1, 0.5], [0, 1, 2], [4, 4, 1]])
_ROW = np.array([2.0, -1.0, 3.5])
_EIGHT = np.array([2, -1, 3, 0.5, -0.5, 1.5, -2, 1])


def _without_xhat(push: np.ndarray, row: np.ndarray) -> Try:
    """A try with the xhat of ``row``, eps = 0."""
    xhat = reference.layer_norm([row], eps=0.0).y[0]
    rest = push - xhat * (xhat * push).mean()
    return Try(f"the xhat of a row of {len(row)} numbers", (In(push), In(xhat)), rest)


def _accept_weights(value: Any) -> str:
    """Why these four numbers are not dw; "" if they are."""
    try:
        numbers = np.asarray(value, dtype=np.float64).ravel()
    except (TypeError, ValueError):
        return "dw has to be four numbers."
    known = {
        (3.0, 3, 1, 3): "That is db: each dy alone. A unit of w[i] moves y by xhat, not by 1.",
        (-4.0, 2): "You added up along the rows. There is one number for each w, and each w has its own column.",
        (10.0, -2, 2, -10): "In that sum every dy of a row takes part. w[i] stands in column i only.",
        (1.0, -2, 0, -3): "That is row 0 alone. Row 1 uses the same w.",
        (2.0, 1, -1, 0): "That is row 1 alone. Row 0 uses the same w.",
    }
    if len(numbers) == 4 and numbers.tolist() == [3, -1, -1, -3]:
        return ""
    if tuple(numbers.tolist()) in known:
        return known[tuple(numbers.tolist())]
    if len(numbers) != 4:
        return f"dw needs four numbers, one for each w; there are {len(numbers)}."
    wrong = next(i for i in range(4) if numbers[i] != [3, -1, -1, -3][i])
    return f"dw[{wrong}] is not {numbers[wrong]:g}. w[{wrong}] stands in y[0, {wrong}] and in y[1, {wrong}]."


STEPS = (
    Step(
        "10-along-one",
        kind="numpy",
        entry_point="without_one",
        tries=(
            Try("four numbers", (In(_PUSH),), _PUSH - _PUSH.mean()),
            Try("a push of 7 in every element, all of it along 1", (In(np.full(5, 7.0)),), np.zeros(5), within=1e-6),
        ),
        question="Four numbers add up to 5.5. You subtract the same number from each of them. Which one, so that 0 is left?",
        debrief="What is left adds up to 0: it stands at a right angle to 1. The number that you subtracted is the mean of the push.",
        slips=(
            ("push - push.mean()", "push - push.sum()"),
            ("push - push.mean()", "push - push[0]"),
            ("push - push.mean()", "push.mean()"),
            ("push - push.mean()", "push + push.mean()"),
        ),
    ),
    Step(
        "10-along-xhat",
        kind="numpy",
        entry_point="without_xhat",
        tries=(_without_xhat(np.array([1.0, -2, 0.5]), _ROW), _without_xhat(np.linspace(-1, 2, 8), _EIGHT)),
        question="Let k be the number of xhats. `sum(xhat * (push - k * xhat))` has to be 0, and `sum(xhat * xhat)` is N. What is k?",
        debrief="What is left does not stretch the row. The number of xhats is the mean of `xhat * push`, one number for the whole row.",
        slips=(
            ("(xhat * push).mean()", "(xhat * push).sum()"),
            ("(xhat * push).mean()", "push.mean()"),
            ("xhat * (xhat * push).mean()", "(xhat * push).mean()"),
            ("push - xhat * (xhat * push).mean()", "push - xhat * xhat * push"),
        ),
    ),
    Step(
        "10-every-row",
        kind="torch",
        entry_point="center_rows",
        tries=(
            Try("3 rows of 3 columns", (In(_SQUARE),), _SQUARE - _SQUARE.mean(axis=1, keepdims=True)),
            Try(
                "4 rows of 4 columns, row 1 twice as large as row 0, row 2 three times",
                (In(np.outer([1, 2, 3, 4], [1, 0, 5, 2])),),
                np.outer([1, 2, 3, 4], np.array([1, 0, 5, 2]) - 2.0),
            ),
        ),
        question="Along which dimension does a row lie, 0 or 1? And which shape does the mean need, so that each row gets its own?",
        debrief="Without `keepdim=True` a square matrix gives no error: element j of the means is then subtracted from column j.",
        slips=(
            ("push.mean(dim=1, keepdim=True)", "push.mean(dim=0, keepdim=True)"),
            ("push.mean(dim=1, keepdim=True)", "push.mean(dim=1)"),
            ("push.mean(dim=1, keepdim=True)", "push.mean()"),
            ("push.mean(dim=1, keepdim=True)", "push.sum(dim=1, keepdim=True)"),
        ),
    ),
    Step(
        "10-weights",
        kind="value",
        entry_point="dw",
        accepts=_accept_weights,
        question="Raise w[1] by 1. By how much does y[0, 1] move, and by how much y[1, 1]? What does the loss make of each?",
        debrief="One term for each row that uses the same w. So these sums run down the columns, while every mean so far ran along a row.",
        slips=(
            ("[3, -1, -1, -3]", "[3, 3, 1, 3]"),
            ("[3, -1, -1, -3]", "[-4, 2]"),
            ("[3, -1, -1, -3]", "[3, 1, -1, -3]"),
        ),
    ),
)
