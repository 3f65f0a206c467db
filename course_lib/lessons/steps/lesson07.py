"""The steps of lesson 07: a third loop, two strides, fp32 at the load, 64 bits in front of the product."""

from __future__ import annotations

import numpy as np

from course_lib.lessons.steps.step import In, Out, Slip, Step, Try
from course_lib.norms.reference import layer_norm

_EPS = 1e-5
_FIVE = np.array([8.0, 11, 12, 9, 10])
_LONG = np.array([2.0, -1, 3, 0.5, -0.5, 1.5, -2, 1, 4, -3, 2.5])
_LARGE = np.array([9984.0, 10000, 10016, 10000, 9984, 10000, 10016, 10000])
_PLAIN = np.array([2.0, -1, 3, 0.5, -0.5])
_ROWS = 10.0 * np.arange(3)[:, None] + np.arange(4)


def _normalise_long_row(what: str, row: np.ndarray, block: int) -> Try:
    """Try only the third loop: mean and rstd are given."""
    want = layer_norm(row[None], eps=_EPS)
    given = {"mean": float(want.mean[0]), "rstd": float(want.rstd[0])}
    arguments = {"x_ptr": In(row), "y_ptr": Out(row.shape), **given, "N": row.size}
    return Try(what, arguments, {"y_ptr": want.y[0]}, constexprs={"BLOCK": block})


def _move_rows(what: str, stride_x: int, stride_y: int) -> Try:
    """Copy three rows of four columns."""
    tensors = {"x_ptr": In(_ROWS, stride=stride_x), "y_ptr": Out(_ROWS.shape, stride=stride_y)}
    arguments = tensors | {"stride_x": stride_x, "stride_y": stride_y, "N": 4}
    return Try(what, arguments, {"y_ptr": _ROWS}, grid=(3,), constexprs={"BLOCK": 4}, within=0)


def _normalise_row(what: str, row: np.ndarray, dtype: str, within: float) -> Try:
    """Try one row in one block; ``within`` allows the error of rounding y to ``dtype``."""
    arguments = {"x_ptr": In(row, dtype=dtype), "y_ptr": Out(row.shape, dtype=dtype), "N": row.size, "eps": _EPS}
    return Try(
        what, arguments, {"y_ptr": layer_norm(row[None], eps=_EPS).y[0]}, constexprs={"BLOCK": 8}, within=within, asked=dtype == "fp16"
    )


def _find_rows(what: str, stride: int, programs: int) -> Try:
    """Compute the offset of each row. fp32 holds the offsets exactly, because the strides are powers of two."""
    arguments = {"offset_ptr": Out((programs,)), "stride": stride}
    return Try(
        what, arguments, {"offset_ptr": np.arange(programs) * float(stride)}, grid=(programs,), within=0, asked=stride * programs > 2**31
    )


STEPS = (
    Step(
        "07-loop",
        kind="kernel",
        entry_point="normalise_kernel",
        tries=(
            _normalise_long_row("five numbers in blocks of four", _FIVE, 4),
            _normalise_long_row("eleven numbers in blocks of four", _LONG, 4),
            _normalise_long_row("five numbers in one block of eight", _FIVE, 8),
        ),
        question="In the second turn of the loop `start` is BLOCK. Which columns do the lanes take then, and which of them exist?",
        debrief="Three loops, three reads of the row: mean, variance, `y`. With `other=0.0` a lane past column N holds `-mean * rstd` here, and the mask of the store keeps it out of memory.",
        slips=(
            Slip(
                "cols = start + tl.arange(0, BLOCK)",
                "cols = tl.arange(0, BLOCK)",
                "every turn takes the first block",
                "In the second turn `start` is BLOCK. Which columns do your lanes take then?",
            ),
            Slip(
                "(x - mean) * rstd",
                "x - mean * rstd",
                "rstd multiplies the mean alone",
                "Which numbers does `rstd` multiply in your line, and which should it?",
            ),
            Slip(
                "(x - mean) * rstd",
                "(x - mean) / rstd",
                "rstd divides where it should multiply",
                "Spread the row ten times as wide: `y` should stay as it is. What does yours do?",
            ),
            Slip("(x - mean) * rstd, mask=cols < N)", "(x - mean) * rstd, mask=cols < BLOCK)"),
        ),
    ),
    Step(
        "07-strides",
        kind="kernel",
        entry_point="copy_kernel",
        tries=(
            _move_rows("x cut from a wider matrix: strides 6 and 4", 6, 4),
            _move_rows("y cut from a wider matrix: strides 4 and 7", 4, 7),
            _move_rows("x and y packed: both strides are 4", 4, 4),
        ),
        question="How many elements lie between the start of one row and the start of the next, in `x`, and in `y`?",
        debrief="Each tensor has its own stride. The tutorial that most LayerNorm kernels in Triton began as has one for `x` and `y` together.",
        slips=(
            Slip("y_ptr += row * stride_y", "y_ptr += row * stride_x", "stride_ignored"),
            Slip("x_ptr += row * stride_x", "x_ptr += row * stride_y", "stride_ignored"),
            Slip("y_ptr += row * stride_y", "y_ptr += row * N", "stride_ignored"),
        ),
    ),
    Step(
        "07-half",
        kind="kernel",
        entry_point="norm_kernel",
        tries=(
            _normalise_row("eight fp16 numbers near 10000, which add up to 80000", _LARGE, "fp16", 1e-3),
            _normalise_row("the same numbers in fp32", _LARGE, "fp32", 1e-4),
            _normalise_row("five fp16 numbers near 0", _PLAIN, "fp16", 1e-3),
        ),
        question="In which dtype does `tl.sum` add, if `x` is a block of fp16 numbers?",
        debrief="One conversion, right behind the load, and everything after it is fp32. The store rounds once, to what `y_ptr` points at.",
        slips=(
            Slip(".to(tl.float32)", ".to(tl.float16)", "low_precision"),
            Slip(".to(tl.float32)", ".to(x_ptr.dtype.element_ty)", "low_precision"),
        ),
    ),
    Step(
        "07-far",
        kind="kernel",
        entry_point="offset_kernel",
        tries=(_find_rows("four rows, 2^30 elements apart", 2**30, 4), _find_rows("three rows, 8 elements apart", 8, 3)),
        question="The product is computed first, and widened then. How many bits does it have at that moment?",
        debrief="One cast, before the product. In your exercise it stands in the first line: `row = tl.program_id(0).to(tl.int64)`.",
        slips=(
            Slip(
                "row.to(tl.int64) * stride",
                "(row * stride).to(tl.int64)",
                "offset_32_bit",
                "The product passes 2^31 here. How many bits does it have at the moment when it is computed?",
            ),
            Slip(
                "row.to(tl.int64) * stride",
                "row * stride",
                "offset_32_bit",
                "The product passes 2^31 here. How many bits does it have at the moment when it is computed?",
            ),
        ),
    ),
)
