"""The steps of lesson 01: keep lanes past the end out of the variance, add eps, apply w and b, one
program per row."""

from __future__ import annotations

import numpy as np

from course_lib.lessons.steps.step import In, Out, Slip, Step, Try


def _try_row(description: str, row: list[float], block: int) -> Try:
    return Try(
        description,
        arguments={"x_ptr": In(row), "y_ptr": Out((len(row),)), "N": len(row)},
        constexprs={"BLOCK": block},
        expected={"y_ptr": (np.array(row) - np.mean(row)) / np.std(row)},  # np.std divides by N
        asked=len(row) < block,
    )


def _try_variances(description: str, var: list[float], eps: float) -> Try:
    return Try(
        description,
        arguments={"var_ptr": In(var), "rstd_ptr": Out((len(var),)), "eps": eps},
        constexprs={"BLOCK": len(var)},
        expected={"rstd_ptr": 1 / np.sqrt(np.array(var) + eps)},
    )


def _try_columns(description: str, n: int, block: int) -> Try:
    columns = np.arange(n)
    xhat, w, b = np.cos(columns), 1 + columns / 2, 3 - columns
    return Try(
        description,
        arguments={
            "xhat_ptr": In(xhat),
            "y_ptr": Out((n,)),
            "w_ptr": In(w),
            "b_ptr": In(b),
            "N": n,
        },
        constexprs={"BLOCK": block},
        expected={"y_ptr": xhat * w + b},
    )


def _try_rows(description: str, stride_x: int, stride_y: int) -> Try:
    x = np.array([[1.0, 2, 3, 4, 10], [7, 7, 8, 7, 6], [-3, 0, 0, 9, 4]])
    return Try(
        description,
        arguments={
            "x_ptr": In(x, stride=stride_x),
            "y_ptr": Out(x.shape, stride=stride_y),
            "stride_x": stride_x,
            "stride_y": stride_y,
            "N": 5,
        },
        grid=(3,),
        constexprs={"BLOCK": 8},
        expected={"y_ptr": x - x.mean(axis=1, keepdims=True)},
    )


STEPS = (
    Step(
        "01-mend",
        kind="kernel",
        entry_point="mended_kernel",
        tries=(
            _try_row("the row 11 12 14 15 16 in a block of 8", [11, 12, 14, 15, 16], 8),
            _try_row("three numbers around -20 in a block of 16", [-21, -20, -18], 16),
            _try_row("eight numbers in a block of 8", [2, 4, 4, 4, 5, 5, 7, 9], 8),
        ),
        question=(
            "A lane past the end loaded 0. What does `x - mean` hold there, and what should `d`"
            " hold?"
        ),
        debrief=(
            "A mask stops a load or a store. It does not stop arithmetic: after every operation,"
            " ask what the lanes past the end hold now."
        ),
        slips=(
            Slip(
                "tl.where(mask, x - mean, 0.0)",
                "x - mean",
                "padding_in_variance",
                "What does `d` hold in a lane past the end, and what is its square?",
            ),
            Slip("tl.where(mask, x - mean, 0.0)", "tl.where(mask, x, 0.0)", "mean_not_subtracted"),
            Slip(
                "tl.where(mask, x - mean, 0.0)",
                "tl.where(mask, x - mean, mean)",
                "padding_in_variance",
                "What does `d` hold in a lane past the end, and what is its square?",
            ),
            Slip(
                "tl.where(mask, x - mean, 0.0)",
                "tl.where(mask, 0.0, x - mean)",
                "the two values of `tl.where` have changed places",
                "Which of its two values does `tl.where` give to a lane whose mask is true?",
            ),
        ),
    ),
    Step(
        "01-eps",
        kind="kernel",
        entry_point="rstd_kernel",
        tries=(
            _try_variances("ordinary variances, eps = 1e-5", [1, 2, 3, 4, 5, 6, 7, 100], 1e-5),
            _try_variances("a variance of 0, eps = 0.01", [0, 0.01, 0.02, 0.04, 0, 1, 2, 3], 0.01),
        ),
        question=(
            "For a variance of 0 and eps = 0.01, the formula says 1 over the root of 0.01. Is that"
            " what your line computes?"
        ),
        debrief=(
            "A row of equal numbers now gives 0: each deviation is 0, and `rstd` is finite. Lesson"
            " 02 shows what changes when eps stands outside the root."
        ),
        slips=(
            Slip("tl.rsqrt(var + eps)", "tl.rsqrt(var)", "eps_missing"),
            Slip(
                "tl.rsqrt(var + eps)",
                "tl.rsqrt(var) + eps",
                "eps is added to the reciprocal root",
                "For a variance of 0, what is `tl.rsqrt(var)` before eps is added to it?",
            ),
            Slip("tl.rsqrt(var + eps)", "1 / (tl.sqrt(var) + eps)", "eps_outside"),
            Slip(
                "tl.rsqrt(var + eps)",
                "tl.sqrt(var + eps)",
                "the root multiplies where it should divide",
                "`rstd` multiplies each deviation. Which of the two does your line compute: the"
                " standard deviation, or 1 over it?",
            ),
        ),
    ),
    Step(
        "01-columns",
        kind="kernel",
        entry_point="scale_shift_kernel",
        tries=(
            _try_columns("five columns in a block of 8", 5, 8),
            _try_columns("sixteen columns in a block of 16", 16, 16),
        ),
        question=(
            "Column j of y is xhat[j] * w[j] + b[j]. Which lanes may read w and b, and which may"
            " write y?"
        ),
        debrief=(
            "Every program reads all of `w` and `b`, once for its row. `x` and `y` are different:"
            " each of their numbers belongs to one program."
        ),
        slips=(
            Slip("xhat * w + b, mask=mask", "xhat * w + b"),
            Slip("xhat * w + b", "xhat * b + w", "w_and_b_swapped"),
            Slip("xhat * w + b", "(xhat + b) * w", "b_misapplied"),
            Slip(
                "b = tl.load(b_ptr + cols, mask=mask, other=0.0)",
                "b = tl.load(b_ptr)",
                "every column is given the first b",
                "Column 3 needs b[3]. Which address does each of your lanes read?",
            ),
        ),
    ),
    Step(
        "01-rows",
        kind="kernel",
        entry_point="centre_kernel",
        tries=(
            _try_rows("three rows of 5, without gaps", 5, 5),
            _try_rows("rows of x 8 elements apart, rows of y 6", 8, 6),
        ),
        question=(
            "Row 2 of x begins 2 * stride_x elements after x_ptr. Where does row 2 of y begin?"
        ),
        debrief=(
            "The kernel of Triton's tutorial uses one stride for x and y. It is right until"
            " somebody sends a slice."
        ),
        slips=(
            Slip("row * stride_x", "row * N", "stride_ignored"),
            Slip("row * stride_y", "row * stride_x", "stride_ignored"),
            Slip(
                "y_ptr + row * stride_y + cols",
                "y_ptr + cols",
                "every program writes to row 0 of y",
                "Where does row 2 of y begin, and which program should write it?",
            ),
            Slip(
                "x_ptr + row * stride_x + cols",
                "x_ptr + row + cols",
                "rows of x begin one element apart",
                "How many elements lie between the start of row 0 of x and the start of row 1?",
            ),
        ),
    ),
)
