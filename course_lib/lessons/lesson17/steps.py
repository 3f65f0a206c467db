"""The steps of lesson 17: a row that one-pass gets wrong, a comparison that fails on NaN, a shape,
and a row whose bits depend on the order of its sum."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from course_lib.base.translation import gettext as _
from course_lib.lessons.statistics_rows import add_with_running_sums
from course_lib.lessons.steps.step import In, Slip, Step, Try, WrongForm
from course_lib.norms import specimens

_NAN = float("nan")
_LARGEST, _MOST_ELEMENTS = 10_000, 20_000_000
_COLUMNS = 2048  # of the row of room 4


def _accept_row(row: Any) -> str:
    try:
        x = torch.tensor([[float(number) for number in row]])
    except (TypeError, ValueError):
        raise WrongForm(_("`row` has to be a list of four numbers.")) from None
    if x.numel() != 4 or not x.isfinite().all() or x.abs().max() > _LARGEST:
        raise WrongForm(
            _("`row` has to be four numbers between -{largest:,} and {largest:,}.").format(
                largest=_LARGEST
            )
        )
    ones, zeros = torch.ones(4), torch.zeros(4)
    right = specimens.make_plain("right", backward=False)(x, ones, zeros, 1e-5)
    wrong = specimens.make_plain("one pass", backward=False)(x, ones, zeros, 1e-5)
    error = (wrong - right).abs().max().item()
    if not error <= 0.5:  # NaN is far off, too
        return ""
    return _("for this row y is off by {error:.1g}, and more than 0.5 is wanted.").format(
        error=error
    )


def _accept_shape(shape: Any) -> str:
    try:
        M, N = (int(size) for size in shape)
    except (TypeError, ValueError):
        raise WrongForm(_("`shape` has to be two numbers, M and N.")) from None
    if M < 1 or N < 1 or M * N > _MOST_ELEMENTS:
        raise WrongForm(
            _(
                "M and N have to be 1 or more, and M * N at most {largest:,}, so that the course"
                " can try it."
            ).format(largest=_MOST_ELEMENTS)
        )
    add = specimens.make_plain("partials of a large batch, floor", backward=True)
    db = add(torch.ones(M, N), torch.randn(M, N), torch.ones(N), 1e-5)[2]
    if not bool((db == M).all()):
        return ""
    return _("for this shape db is {M} everywhere, as it should be: no row is lost.").format(M=M)


def _accept_whole_row(row: Any) -> str:
    try:
        numbers = [float(number) for number in row]
    except (TypeError, ValueError):
        numbers = []
    if len(numbers) != _COLUMNS:
        raise WrongForm(
            _("`whole_row` has to be a list of {count} numbers.").format(count=_COLUMNS)
        )
    if not all(0 <= number <= 5000 and number.is_integer() for number in numbers):
        raise WrongForm(_("`whole_row` has to hold whole numbers between 0 and 5000."))
    squares = np.square(np.array(numbers, dtype=np.float32))
    alone, beside_299 = (
        1 / np.sqrt(add_with_running_sums(squares, sums) / np.float32(_COLUMNS) + np.float32(1e-5))
        for sums in (1024, 256)
    )
    if alone != beside_299:
        return ""
    return _(
        "rstd of this row is {rstd:.9g} with 1024 running sums and with 256: the bits are the same."
    ).format(rstd=alone)


def _try_near(description: str, actual: list[float], expected: list[float], near: bool) -> Try:
    return Try(
        description,
        arguments=(In(actual), In(expected)),
        expected=float(near),
        asked=any(map(math.isnan, actual)),
    )


STEPS = (
    Step(
        "17-row",
        kind="value",
        entry_point="row",
        accepts=_accept_row,
        question=(
            "fp32 has about seven digits. How large is the square of your numbers, and how large is"
            " what the variance has to keep of it?"
        ),
        debrief=(
            "The squares are so large that fp32 has no room left for the variance. Large numbers"
            " alone would not do: with the mean near 0 nothing cancels."
        ),
        slips=(
            Slip("[8000, 8001, 8002, 8003]", "[80, 81, 82, 83]"),
            Slip("[8000, 8001, 8002, 8003]", "[-10000, 10000, -10000, 10000]"),
            Slip("[8000, 8001, 8002, 8003]", "[80000, 80001, 80002, 80003]"),
            Slip("[8000, 8001, 8002, 8003]", "[8000, 8001]"),
        ),
    ),
    Step(
        "17-nan",
        kind="torch",
        entry_point="is_near",
        tries=(
            _try_near("a result that is right", [1.0, 2.0, 3.0], [1.0, 2.0, 3.0001], True),
            _try_near(
                "a result that is off by 0.5 in one place", [1.0, 2.5, 3.0], [1.0, 2.0, 3.0], False
            ),
            _try_near(
                "a result that is off by -0.5 in one place", [1.0, 1.5, 3.0], [1.0, 2.0, 3.0], False
            ),
            _try_near(
                "a result of which one number is NaN", [1.0, _NAN, 3.0], [1.0, 2.0, 3.0], False
            ),
        ),
        question=(
            "What is NaN > 0.001, and what is NaN <= 0.001? Which of the two should a test wait"
            " for?"
        ),
        debrief=(
            "Every comparison with NaN is False. So a test asks whether all is well, and not"
            " whether something is wrong. `torch.testing.assert_close` does it like that."
        ),
        slips=(
            Slip(
                "((got - want).abs() <= 0.001).all()",
                "(got - want).abs().max() < 100",
                "the limit is too wide",
                "How far may a number be off, and how far does your line let it be?",
            ),
            Slip(
                "((got - want).abs() <= 0.001).all()",
                "((got - want).abs() > 0.001).sum() == 0",
                "NaN passes",
                "What is NaN > 0.001? How many such places does your line count in a result with a"
                " NaN?",
            ),
            Slip(
                "((got - want).abs() <= 0.001).all()",
                "((got - want).abs() <= 0.001).any()",
                "one number that is near is enough",
                "How many of the numbers have to be near, and how many does your line ask for?",
            ),
            Slip(
                "((got - want).abs() <= 0.001).all()",
                "(got == want).all()",
                "a rounding error is refused",
                "3.0 and 3.0001 are near enough. What does your line say of them?",
            ),
        ),
    ),
    Step(
        "17-shape",
        kind="value",
        entry_point="shape",
        accepts=_accept_shape,
        question=(
            "Below 1024 rows, or from 64 columns on, a program takes one row. Where it takes eight,"
            " what is left over of your M?"
        ),
        debrief=(
            "All three conditions at once: a large batch, narrow rows, and a remainder. A test that"
            " draws its shapes from powers of two never comes here."
        ),
        slips=(
            Slip("(1027, 20)", "(4096, 20)"),
            Slip("(1027, 20)", "(1027, 64)"),
            Slip("(1027, 20)", "(37, 20)"),
            Slip("(1027, 20)", "(1032, 20)"),
        ),
    ),
    Step(
        "17-order",
        kind="value",
        entry_point="whole_row",
        accepts=_accept_whole_row,
        question=(
            "From which whole number on can fp32 no longer add 1? What may come before the ones in"
            " their running sum, so that it is that large?"
        ),
        debrief=(
            "4096 squared is 2^24, and there fp32 goes in steps of 2: each 1 that is added is lost,"
            " 7 of them in a running sum of 8 numbers, 1 in a running sum of 2. A random row shows"
            " the bug only if its two sums happen to round apart."
        ),
        slips=(
            Slip("[4096] + [1] * 2047", "[2] * 2048"),
            Slip("[4096] + [1] * 2047", "[4096] * 2048"),
            Slip("[4096] + [1] * 2047", "[4000] + [1] * 2047"),
            Slip("[4096] + [1] * 2047", "[6000] + [1] * 2047"),
        ),
    ),
)
