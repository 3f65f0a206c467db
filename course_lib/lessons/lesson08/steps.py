"""The steps of lesson 08: a tile of rows, means that are subtracted from their own rows, rows that
do not exist."""

from __future__ import annotations

import numpy as np

from course_lib.lessons.steps.step import In, Out, Slip, Step, Try

_NUMBERS = np.array(
    [
        [2.0, -1, 3, 0.5, -0.5, 1.5],
        [-2, 1, 4, -3, 2.5, 1],
        [-1.5, 0, -0.5, 2, 6, 7],
        [8, 9, 1, 1, 2, 3],
    ]
)
_STEEP = np.array([[1.0, -1, 2, -2], [11, 9, 12, 8], [21, 19, 22, 18], [31, 29, 32, 28]])


def _add_rows(description: str, x: np.ndarray, rows: int, block: int, stride: int = 0) -> Try:
    """Try the sum of each row; M is a multiple of ROWS."""
    M, N = x.shape
    arguments = {"x_ptr": In(x, stride=stride), "sum_ptr": Out((M,)), "stride": stride or N, "N": N}
    return Try(
        description,
        arguments,
        {"sum_ptr": x.sum(axis=1)},
        grid=(M // rows,),
        constexprs={"ROWS": rows, "BLOCK": block},
    )


def _centre_rows(description: str, x: np.ndarray) -> Try:
    """Try one tile that holds all of x."""
    arguments = {"x_ptr": In(x), "y_ptr": Out(x.shape)}
    want = x - x.mean(axis=1, keepdims=True)
    return Try(
        description,
        arguments,
        {"y_ptr": want},
        constexprs={"ROWS": x.shape[0], "BLOCK": x.shape[1]},
        asked=x.shape[0] > 1,
    )


def _average_rows(description: str, x: np.ndarray, rows: int, block: int) -> Try:
    """Try the mean of each row; the last program may have rows that do not exist."""
    M, N = x.shape
    arguments = {"x_ptr": In(x), "mean_ptr": Out((M,)), "M": M, "N": N}
    constexprs = {"ROWS": rows, "BLOCK": block}
    return Try(
        description,
        arguments,
        {"mean_ptr": x.mean(axis=1)},
        grid=(-(-M // rows),),
        constexprs=constexprs,
        asked=M % rows > 0,
    )


STEPS = (
    Step(
        "08-tile",
        kind="kernel",
        entry_point="sum_kernel",
        tries=(
            _add_rows("four rows of four columns, two rows per program", _STEEP, rows=2, block=4),
            _add_rows("four rows of six columns in a block of eight", _NUMBERS, rows=2, block=8),
            _add_rows(
                "the same rows, cut from a matrix of nine columns",
                _NUMBERS,
                rows=4,
                block=8,
                stride=9,
            ),
        ),
        question=(
            "What is the offset of row `rows[i]`, column `cols[j]`? Which of the two has to become"
            " a column, and which a row?"
        ),
        debrief=(
            "One `tl.load` brings ROWS rows, and one `tl.sum` adds up all of them, each along its"
            " own columns."
        ),
        slips=(
            Slip(
                "rows[:, None] * stride + cols[None, :]",
                "rows[:, None] + cols[None, :] * stride",
                "stride_ignored",
            ),
            Slip("rows[:, None] * stride", "rows[:, None] * N", "stride_ignored"),
            Slip("rows[:, None] * stride", "rows[:, None] * BLOCK", "stride_ignored"),
            Slip(
                "mask=(cols < N)[None, :], other=0.0",
                "mask=(cols < BLOCK)[None, :], other=0.0",
                "columns past column N take part",
                "Which columns has a row, and which of them does your mask let through?",
            ),
        ),
    ),
    Step(
        "08-broadcast",
        kind="kernel",
        entry_point="centre_kernel",
        tries=(
            _centre_rows("a tile of 4 x 4", _STEEP),
            _centre_rows("a tile of 2 x 2", _STEEP[1:3, 1:3]),
            _centre_rows("a tile of 1 x 4", _STEEP[:1]),
        ),
        question=(
            "`mean` has one number per row. Which shape must it have to stand as a column beside"
            " the tile?"
        ),
        debrief=(
            "With ROWS = BLOCK this slip is no error, and with ROWS = 1 it is not even wrong."
            " FlagGems met it when its LayerNorm first took several rows per program (the review of"
            " pull request 59, June 2024)."
        ),
        slips=(
            Slip(
                "mean[:, None]",
                "mean[None, :]",
                "the means lie along the columns",
                "Which element of `mean` is subtracted from x[0, 1], and which should be?",
            ),
            Slip(
                "mean[:, None]",
                "mean",
                "the means lie along the columns",
                "Which element of `mean` is subtracted from x[0, 1], and which should be?",
            ),
            Slip(
                "x - mean[:, None]",
                "x - tl.sum(mean, axis=0) / ROWS",
                "one mean is taken of all rows",
                "How many means has the tile, and how many does your line subtract?",
            ),
        ),
    ),
    Step(
        "08-rows",
        kind="kernel",
        entry_point="mean_kernel",
        tries=(
            _average_rows("three rows, two per program", _NUMBERS[:3], rows=2, block=8),
            _average_rows("one row, four per program", _NUMBERS[:1], rows=4, block=8),
            _average_rows("four rows, four per program", _STEEP, rows=4, block=4),
        ),
        question="Which rows does the last program have, and which of them exist?",
        debrief=(
            "Two masks: the tile needs row and column, what has one number per row needs the row"
            " alone."
        ),
        slips=(
            Slip("row_mask = rows < M", "row_mask = rows <= M"),
            Slip("row_mask = rows < M", "row_mask = rows >= 0"),
            Slip(
                "(rows < M)[:, None] & (cols < N)[None, :]",
                "(rows < M)[:, None]",
                "columns past column N take part",
                "What lies in memory after the last column of a row, and which part of your mask"
                " keeps it out?",
            ),
        ),
    ),
)
