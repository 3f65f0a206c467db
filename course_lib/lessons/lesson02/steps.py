"""The steps of lesson 02: fp32 at the load, a check without a reference, a row that shows the
position of eps, one number per row."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from course_lib.base.translation import gettext as _
from course_lib.lessons.pictures.block_stepper.model import EXAMPLE
from course_lib.lessons.steps.step import In, Out, Slip, Step, Try, WrongForm

_EPS = 1e-5


def _try_mean_squares(description: str, y: Any) -> Try:
    return Try(
        description,
        arguments=(In(y),),
        expected=(np.asarray(y, dtype=np.float64) ** 2).mean(axis=1),
    )


def accept_quiet_row(row: Any) -> str:
    """Return why ``row`` does not distinguish eps inside the root from eps outside; "" if it
    does."""
    try:
        numbers = np.asarray(row, dtype=np.float64)
    except (TypeError, ValueError):
        raise WrongForm(
            _("`row` should be a list of four numbers, such as [2, -1, 3, 0.5].")
        ) from None
    if numbers.shape != (4,) or not np.isfinite(numbers).all():
        raise WrongForm(
            _("`row` should be a list of four finite numbers, such as [2, -1, 3, 0.5].")
        )
    mean_square = float((numbers**2).mean())
    if mean_square == 0:
        return _("On a row of zeros both results are 0, so it tells nothing about `y`.")
    factor = math.sqrt(mean_square + _EPS) / (math.sqrt(mean_square) + _EPS)
    if factor < 2:
        return _(
            "The rms of your row is {rms:.3g}. There the two results differ by a factor of"
            " {factor:.5g}."
        ).format(rms=math.sqrt(mean_square), factor=factor)
    return ""


def _try_half(description: str, x: list[float], w: list[float], block: int) -> Try:
    rounded = np.array(w).astype(np.float16).astype(np.float64)
    return Try(
        description,
        arguments={
            "x_ptr": In(x, "fp16"),
            "w_ptr": In(w, "fp16"),
            "y_ptr": Out((len(x),), "fp16"),
            "N": len(x),
        },
        constexprs={"BLOCK": block},
        expected={"y_ptr": np.array(x) ** 2 * rounded},
        within=1e-3,
    )


def _try_peak(description: str, x: list[list[float]], stride: int) -> Try:
    rows = np.array(x)
    return Try(
        description,
        arguments={
            "x_ptr": In(rows, stride=stride),
            "peak_ptr": Out((len(rows),)),
            "stride_x": stride,
            "N": rows.shape[1],
        },
        grid=(len(rows),),
        constexprs={"BLOCK": 8},
        expected={"peak_ptr": np.abs(rows).max(axis=1)},
        within=0,
    )


STEPS = (
    Step(
        "02-half",
        kind="kernel",
        entry_point="square_scale_kernel",
        tries=(
            _try_half("x = 300, w = 0.001, fp16", [300, 1, 2, -300], [0.001, 1, 1, 0.001], 4),
            _try_half(
                "five numbers in a block of 8", [1, 2, 3, 400, 250], [1, 2, 0.5, 0.002, 0.25], 8
            ),
        ),
        question="In which dtype is `x * x` computed, if `x` is fp16?",
        debrief=(
            "A conversion after the product comes too late: the infinity is there already. At the"
            " load nothing is lost, because every fp16 number is an fp32 number, too."
        ),
        slips=(
            Slip(
                "x = tl.load(x_ptr + cols, mask=mask, other=0.0).to(tl.float32)",
                "x = tl.load(x_ptr + cols, mask=mask, other=0.0)",
                "low_precision",
            ),
            Slip(".to(tl.float32)", ".to(tl.float16)", "low_precision"),
        ),
    ),
    Step(
        "02-check",
        kind="numpy",
        entry_point="mean_squares",
        tries=(
            _try_mean_squares("two rows of three", [[1, 2, 3], [-4, 0, 4]]),
            _try_mean_squares("three rows of eight", EXAMPLE),
            _try_mean_squares("a square array", [[3, 4], [0, 1]]),
        ),
        question="Square first, then the mean. Which axis runs along a row?",
        debrief=(
            "Any result of a norm can be checked so, before `w` is applied. It tells that a row has"
            " the wrong size. It does not tell that the row is right."
        ),
        slips=(
            Slip(
                "axis=1",
                "axis=0",
                "the mean is taken down the columns",
                "Which axis runs along a row, 0 or 1? How many numbers should come out?",
            ),
            Slip(
                "(y * y).mean(axis=1)",
                "(y * y).mean()",
                "one mean is taken of all rows",
                "How many means have two rows, and how many do you return?",
            ),
            Slip(
                "(y * y).mean(axis=1)",
                "y.mean(axis=1) ** 2",
                "the mean is taken before the square",
                "For the row 1, -1: what is the mean of the squares, and what is the square of the"
                " mean?",
            ),
            Slip(
                "(y * y).mean(axis=1)",
                "np.sqrt((y * y).mean(axis=1))",
                "a root is taken of the mean",
                "The function returns the mean of the squares. Which of your operations comes after"
                " the mean?",
            ),
            Slip(
                ".mean(axis=1)",
                ".sum(axis=1)",
                "the sum of the squares is not divided",
                "For the row 3, 4 the squares are 9 and 16. What is their mean, and what does your"
                " line give?",
            ),
        ),
    ),
    Step(
        "02-quiet",
        kind="value",
        entry_point="row",
        accepts=accept_quiet_row,
        question="How large are the squares of a row beside which 1e-5 is not small?",
        debrief=(
            "A test that should catch eps in the wrong place needs such a row. On numbers from"
            " `torch.randn` both formulas pass."
        ),
        slips=(
            Slip("[0.001, -0.001, 0.001, 0.001]", "[2, -1, 3, 0.5]"),
            Slip("[0.001, -0.001, 0.001, 0.001]", "[0.1, 0.1, -0.1, 0.1]"),
            Slip("[0.001, -0.001, 0.001, 0.001]", "[0, 0, 0, 0]"),
            Slip("[0.001, -0.001, 0.001, 0.001]", "0.001"),
        ),
    ),
    Step(
        "02-save",
        kind="kernel",
        entry_point="peak_kernel",
        tries=(
            _try_peak(
                "three rows of five", [[1, 2, 3, 4, 5], [-9, 0, 1, 2, 3], [0, -0.5, 0.25, 0, 0]], 5
            ),
            _try_peak("two rows of three, 8 elements apart", [[1, -2, 0], [0, 7, 5]], 8),
        ),
        question="Program 2 has one number to store. At which address, seen from peak_ptr?",
        debrief=(
            "No mask is needed: there is one number and one address, and each program has its own."
        ),
        slips=(
            Slip(
                "peak_ptr + row",
                "peak_ptr",
                "every program stores to the same address",
                "Three programs store one number each. To how many addresses do yours store?",
            ),
            Slip(
                "tl.max(tl.abs(x), axis=0)",
                "tl.max(x, axis=0)",
                "negative numbers count with their sign",
                "The largest of -9, 0 and 1 without their signs is 9. What does your line give?",
            ),
            Slip("peak_ptr + row", "peak_ptr + row * stride_x"),
        ),
    ),
)
