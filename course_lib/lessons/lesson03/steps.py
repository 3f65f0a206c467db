"""The steps of lesson 03: kappa, subtract before squaring, a column of means, fp32 first."""

from __future__ import annotations

from typing import Any

import numpy as np

from course_lib.base.translation import gettext as _
from course_lib.lessons.steps.step import In, Out, Slip, Step, Try, WrongForm

_SMALL = np.array([[0.25, -1.0, 0.5, 0.75, -0.5], [1.5, -0.25, 0.0, 0.25, -1.5]])
# A row has a number that is 0 and not its mean, so that no mask of the zeros is right by chance.
_MEANS = np.array([[1.0], [10.0]])
_LOUD = np.array([[300.0, -300.0, 280.0, -290.0], [1.0, 2.0, -1.0, -2.0]])
_SQUARE = np.array([[1.0, 2.0, 6.0], [10.0, 20.0, 30.0], [-5.0, 0.0, 2.0]])


def _find_variance(description: str, x: np.ndarray, block: int) -> Try:
    M, N = x.shape
    return Try(
        description,
        arguments={"x_ptr": In(x), "var_ptr": Out((M,)), "stride_x": N, "N": N},
        grid=(M,),
        constexprs={"BLOCK": block},
        expected={"var_ptr": x.var(axis=1)},
    )


def _subtract_mean(description: str, x: np.ndarray) -> Try:
    return Try(description, arguments=(In(x),), expected=x - x.mean(axis=1, keepdims=True))


def _mean_square(description: str, x: np.ndarray, dtype: str) -> Try:
    return Try(
        description,
        arguments=(In(x, dtype),),
        expected=(x**2).mean(axis=1),
        within=1e-3,
        asked=dtype == "fp16",
    )


def _is_half(value: Any) -> str:
    try:
        kappa = float(value)
    except (TypeError, ValueError):
        raise WrongForm(
            _("`kappa` has to be a number, and is {value!r}.").format(value=value)
        ) from None
    if abs(kappa - 64) < 1:
        return ""
    if abs(kappa - 4096) < 5:
        return _(
            "4096 is the square of kappa, 2.0**-12 / u. It is also the kappa at which all 24 digits"
            " are gone."
        )
    return _(
        "With kappa = {kappa:g}, u * kappa**2 is {product:.3g}. It has to be 2.0**-12, which is"
        " {wanted:.3g}."
    ).format(kappa=kappa, product=2.0**-24 * kappa**2, wanted=2.0**-12)


STEPS = (
    Step(
        "03-half",
        kind="value",
        entry_point="kappa",
        accepts=_is_half,
        question="Which number, squared and multiplied by 2**-24, gives 2**-12?",
        debrief=(
            "64. If the mean is 64 standard deviations, half of the variance's digits are gone. Do"
            " real rows have such means? That comes next."
        ),
        slips=(
            Slip("(2.0**-12 / u) ** 0.5", "2.0**-12 / u"),
            Slip("(2.0**-12 / u) ** 0.5", "(1 / u) ** 0.5"),
        ),
    ),
    Step(
        "03-mend",
        kind="kernel",
        entry_point="two_pass_kernel",
        tries=(
            _find_variance(
                "rows of five numbers in a block of eight, means 1 and 10", _SMALL + _MEANS, 8
            ),
            _find_variance(
                "rows of five numbers in a block of eight, mean 10,000", _SMALL + 10_000.0, 8
            ),
        ),
        question="What does `x - mean` hold in a lane that loaded 0, and what is its square?",
        debrief=(
            "One load, two sums over the lanes, and the digits are back. The same two lines stand"
            " in the LayerNorm kernel of lesson 01."
        ),
        slips=(
            Slip("tl.where(cols < N, x - mean, 0.0)", "x - mean", "padding_in_variance"),
            Slip(
                "tl.where(cols < N, x - mean, 0.0)",
                "x",
                "mean_not_subtracted",
                "Which number do you square: `x`, or its distance from the mean?",
            ),
            Slip(
                "tl.sum(deviation * deviation) / N",
                "tl.sum(x * x) / N - mean * mean",
                "cancellation",
            ),
            Slip(
                "tl.sum(deviation * deviation) / N",
                "tl.sum(deviation * deviation) / BLOCK",
                "divisor",
            ),
        ),
    ),
    Step(
        "03-column",
        kind="numpy",
        entry_point="subtract_mean",
        tries=(
            _subtract_mean("three rows of three columns", _SQUARE),
            _subtract_mean("two rows of two columns", np.array([[1.0, 3.0], [10.0, 30.0]])),
        ),
        question=(
            "`x` has the shape (M, N). Which shape must the means have, so that each stands in"
            " front of its row?"
        ),
        debrief=(
            "A test with as many rows as columns passes no error on to you, only wrong numbers."
            " Test with M and N that differ."
        ),
        slips=(
            Slip(
                "mean[:, None]",
                "mean[None, :]",
                "the means lie along the rows",
                "Which element of `mean` is subtracted from x[0, 1], and which should be?",
            ),
            Slip(
                "mean[:, None]",
                "mean.mean()",
                "one mean is taken of all rows",
                "How many means have two rows, and how many do you subtract?",
            ),
        ),
    ),
    Step(
        "03-widen",
        kind="numpy",
        entry_point="mean_square",
        tries=(
            _mean_square("fp16 numbers near 300, and a row of small ones", _LOUD, "fp16"),
            _mean_square("fp32 rows", _SMALL, "fp32"),
        ),
        question="In which dtype is `x * x` computed, and what is 300 * 300 there?",
        debrief="A kernel does the same with `.to(tl.float32)` at its load, as in lesson 02.",
        slips=(
            Slip("x = x.astype(np.float32)", "x = x.astype(np.float16)", "low_precision"),
            Slip(
                "np.mean(x * x, axis=1)",
                "np.mean(x * x)",
                "one mean is taken of all rows",
                "How many means have two rows, and how many do you return?",
            ),
        ),
    ),
)
