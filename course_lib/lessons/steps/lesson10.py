"""The steps of lesson 10: the parts of dx, one direction at a time, and dw by hand."""

from __future__ import annotations

from typing import Any

import numpy as np

from course_lib.lessons.steps.step import In, Slip, Step, Try, WrongForm
from course_lib.norms import reference

_PUSH = np.array([2.0, -1, 0.5, 4])
_SQUARE = np.array([[2.0, -1, 0.5], [0, 1, 2], [4, 4, 1]])
_ROW = np.array([2.0, -1.0, 3.5])
_EIGHT = np.array([2, -1, 3, 0.5, -0.5, 1.5, -2, 1])


def _without_xhat(push: np.ndarray, row: np.ndarray) -> Try:
    """Make a try with the xhat of ``row``, eps = 0."""
    xhat = reference.layer_norm([row], eps=0.0).y[0]
    rest = push - xhat * (xhat * push).mean()
    return Try(f"the xhat of a row of {len(row)} numbers", (In(push), In(xhat)), rest)


def _accept_weights(value: Any) -> str:
    """Return why these four numbers are not dw; "" if they are."""
    try:
        numbers = np.asarray(value, dtype=np.float64).ravel()
    except (TypeError, ValueError):
        raise WrongForm("dw has to be four numbers.") from None
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
            Slip(
                "push - push.mean()",
                "push - push.sum()",
                "the sum is subtracted where the mean belongs",
                "Four numbers add up to 5.5. What do they add up to after your line?",
            ),
            Slip(
                "push - push.mean()",
                "push - push[0]",
                "one element is subtracted from all",
                "Four numbers add up to 5.5. What do they add up to after your line?",
            ),
            Slip(
                "push - push.mean()",
                "push.mean()",
                "one number is returned",
                "Something is taken away from four numbers. How many are left?",
            ),
            Slip(
                "push - push.mean()",
                "push + push.mean()",
                "the mean is added",
                "Four numbers add up to 5.5. What do they add up to after your line?",
            ),
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
            Slip(
                "(xhat * push).mean()",
                "(xhat * push).sum()",
                "the sum stands where the mean belongs",
                "Take a push that is `xhat` itself: nothing should be left of it. What does your line leave?",
            ),
            Slip(
                "(xhat * push).mean()",
                "push.mean()",
                "the mean of push is taken for the number of xhats",
                "Take a push that is `xhat` itself: nothing should be left of it. What does your line leave?",
            ),
            Slip(
                "xhat * (xhat * push).mean()",
                "(xhat * push).mean()",
                "the same number is subtracted from every element",
                "What you take away should be a multiple of `xhat`. What does your line take away?",
            ),
            Slip(
                "push - xhat * (xhat * push).mean()",
                "push - xhat * xhat * push",
                "each element has a number of its own",
                "The number of xhats in a push is one number for the whole row. How many does your line have?",
            ),
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
            Slip(
                "push.mean(dim=1, keepdim=True)",
                "push.mean(dim=0, keepdim=True)",
                "the means run down the columns",
                "Along which dimension does a row lie? Which numbers share one of your means?",
            ),
            Slip(
                "push.mean(dim=1, keepdim=True)",
                "push.mean(dim=1)",
                "the mean of row i is subtracted from column i",
                "Which shape has your mean, and which element of it is subtracted from push[0, 1]?",
            ),
            Slip(
                "push.mean(dim=1, keepdim=True)",
                "push.mean()",
                "one mean is taken of all rows",
                "How many means have three rows, and how many do you subtract?",
            ),
            Slip(
                "push.mean(dim=1, keepdim=True)",
                "push.sum(dim=1, keepdim=True)",
                "the sum is subtracted where the mean belongs",
                "What does each row add up to after your line?",
            ),
        ),
    ),
    Step(
        "10-weights",
        kind="value",
        entry_point="dw",
        accepts=_accept_weights,
        question="Raise w[1] by 1. By how much does y[0, 1] move, and by how much y[1, 1]? What does the loss make of each?",
        debrief="One term for each row that uses the same w. So these sums run down the columns, while every mean so far ran along a row.",
        slips=(Slip("[3, -1, -1, -3]", "[3, 3, 1, 3]"), Slip("[3, -1, -1, -3]", "[-4, 2]"), Slip("[3, -1, -1, -3]", "[3, 1, -1, -3]")),
    ),
)
