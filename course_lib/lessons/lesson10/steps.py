"""The steps of lesson 10: the parts of dx, one direction at a time, the swap of its proof, and dw
by hand."""

from __future__ import annotations

from typing import Any

import numpy as np

from course_lib.base.translation import gettext as _
from course_lib.lessons.steps.step import In, Slip, Step, Try, WrongForm
from course_lib.norms import reference

_PUSH = np.array([2.0, -1, 0.5, 4])
_ROW = np.array([2.0, -1.0, 3.5])
_EIGHT = np.array([2, -1, 3, 0.5, -0.5, 1.5, -2, 1])


def _without_xhat(push: np.ndarray, row: np.ndarray) -> Try:
    """Make a try with the xhat of ``row``, eps = 0."""
    xhat = reference.layer_norm([row], eps=0.0).y[0]
    remainder = push - xhat * (xhat * push).mean()
    return Try(f"the xhat of a row of {len(row)} numbers", (In(push), In(xhat)), remainder)


def _without_both(wdy: np.ndarray, row: np.ndarray) -> Try:
    """Make a try with the xhat of ``row``, eps = 0, whose result has no part along 1 and none along
    xhat."""
    xhat = reference.layer_norm([row], eps=0.0).y[0]
    return Try(
        f"a row of {len(row)} numbers",
        (In(wdy), In(xhat)),
        wdy - wdy.mean() - xhat * (xhat * wdy).mean(),
    )


def _accept_weights(value: Any) -> str:
    """Return why these four numbers are not dw; "" if they are."""
    try:
        numbers = np.asarray(value, dtype=np.float64).ravel()
    except (TypeError, ValueError):
        raise WrongForm(_("`dw` has to be four numbers.")) from None
    slips = {
        (3.0, 3, 1, 3): _("That is db: each dy alone. A unit of w[i] moves y by xhat, not by 1."),
        (-4.0, 2): _(
            "You added up along the rows. There is one number for each w, and each w has its own"
            " column."
        ),
        (10.0, -2, 2, -10): _(
            "In that sum every dy of a row takes part. w[i] stands in column i only."
        ),
        (1.0, -2, 0, -3): _("That is row 0 alone. Row 1 uses the same w."),
        (2.0, 1, -1, 0): _("That is row 1 alone. Row 0 uses the same w."),
    }
    if len(numbers) == 4 and numbers.tolist() == [3, -1, -1, -3]:
        return ""
    if tuple(numbers.tolist()) in slips:
        return slips[tuple(numbers.tolist())]
    if len(numbers) != 4:
        return _("`dw` needs four numbers, one for each w; there are {count}.").format(
            count=len(numbers)
        )
    wrong = next(i for i in range(4) if numbers[i] != [3, -1, -1, -3][i])
    return _(
        "dw[{column}] is not {value:g}. w[{column}] stands in y[0, {column}] and in y[1, {column}]."
    ).format(column=wrong, value=numbers[wrong])


STEPS = (
    Step(
        "10-along-one",
        kind="numpy",
        entry_point="without_one",
        tries=(
            Try("four numbers", (In(_PUSH),), _PUSH - _PUSH.mean()),
            Try(
                "a push of 7 in every element, all of it along 1",
                (In(np.full(5, 7.0)),),
                np.zeros(5),
                within=1e-6,
            ),
        ),
        question=(
            "Four numbers add up to 5.5. You subtract the same number from each of them. Which one,"
            " so that 0 is left?"
        ),
        debrief=(
            "What is left adds up to 0: it stands at a right angle to 1. The number that you"
            " subtracted is the mean of the push."
        ),
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
        tries=(
            _without_xhat(np.array([1.0, -2, 0.5]), _ROW),
            _without_xhat(np.linspace(-1, 2, 8), _EIGHT),
        ),
        question=(
            "Let k be the number of xhats. `sum(xhat * (push - k * xhat))` has to be 0, and"
            " `sum(xhat * xhat)` is N. What is k?"
        ),
        debrief=(
            "What is left does not stretch the row. The number of xhats is the mean of `xhat *"
            " push`, one number for the whole row."
        ),
        slips=(
            Slip(
                "(xhat * push).mean()",
                "(xhat * push).sum()",
                "the sum stands where the mean belongs",
                "Take a push that is `xhat` itself: nothing should be left of it. What does your"
                " line leave?",
            ),
            Slip(
                "(xhat * push).mean()",
                "push.mean()",
                "the mean of push is taken for the number of xhats",
                "Take a push that is `xhat` itself: nothing should be left of it. What does your"
                " line leave?",
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
                "The number of xhats in a push is one number for the whole row. How many does your"
                " line have?",
            ),
        ),
    ),
    Step(
        "10-swap",
        kind="numpy",
        entry_point="what_x_gets",
        tries=(
            _without_both(np.array([1.0, -2, 0.5]), _ROW),
            _without_both(np.linspace(-1, 2, 8) ** 2, _EIGHT),
        ),
        question=(
            "Push x[0] alone, by 1, so that p is 1 in column 0 and 0 elsewhere. What is sum(wdy *"
            " arrive(p, xhat)) then? It is element 0 of your result."
        ),
        debrief=(
            "In each of the three products p and wdy can change places, and the number stays. So"
            " the line that carries a push to xhat carries a gradient back to x: two means per row,"
            " and no table."
        ),
        slips=(
            Slip(
                "wdy - wdy.mean() - xhat * (xhat * wdy).mean()",
                "wdy - wdy.mean()",
                "one of the three products is missing",
                "Which number does sum(wdy * xhat * mean(xhat * p)) have in it, once N * mean(xhat"
                " * p) is taken out?",
            ),
            Slip(
                "wdy - wdy.mean() - xhat * (xhat * wdy).mean()",
                "wdy - xhat * (xhat * wdy).mean()",
                "one of the three products is missing",
                "The sum of `wdy * mean(p)` is `N * mean(wdy) * mean(p)`. What does that leave in"
                " each element of your result?",
            ),
            Slip(
                "wdy - wdy.mean() - xhat * (xhat * wdy).mean()",
                "wdy - wdy.sum() - xhat * (xhat * wdy).sum()",
                "sums stand where the means belong",
                "`N * mean(wdy) * mean(p)` is `mean(wdy) * sum(p)`. What multiplies p there?",
            ),
            Slip(
                "wdy - wdy.mean() - xhat * (xhat * wdy).mean()",
                "(wdy * arrive(wdy, xhat)).sum()",
                "one number is returned",
                "A push has a number for each column. How many has what multiplies it?",
            ),
        ),
    ),
    Step(
        "10-weights",
        kind="value",
        entry_point="dw",
        accepts=_accept_weights,
        question=(
            "Raise w[1] by 1. By how much does y[0, 1] move, and by how much y[1, 1]? What does the"
            " loss make of each?"
        ),
        debrief=(
            "One term for each row that uses the same w. So these sums run down the columns, while"
            " every mean so far ran along a row."
        ),
        slips=(
            Slip("[3, -1, -1, -3]", "[3, 3, 1, 3]"),
            Slip("[3, -1, -1, -3]", "[-4, 2]"),
            Slip("[3, -1, -1, -3]", "[3, 1, -1, -3]"),
        ),
    ),
)
