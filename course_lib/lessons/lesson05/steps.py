"""The steps of lesson 05: a loop over blocks, 64 bits and fp32, lanes without an element, a
function for ``tl.reduce``."""

from __future__ import annotations

import numpy as np

from course_lib.lessons.steps.step import In, Out, Slip, Step, Try

_ROWS = np.array([[2.0, -1.0, 3.0, 0.5, -0.5], [1.0, 4.0, -2.0, 0.25, 6.0]])
_LONG = np.arange(1.0, 12.0)
_FAR = 2**30


def _mean_square(description: str, x: np.ndarray, block: int, stride: int = 0) -> Try:
    M, N = x.shape
    return Try(
        description,
        arguments={
            "x_ptr": In(x, stride=stride),
            "out_ptr": Out((M,)),
            "stride_x": stride or N,
            "N": N,
        },
        grid=(M,),
        constexprs={"BLOCK": block},
        expected={"out_ptr": (x**2).mean(axis=1)},
    )


def _square(description: str, x: np.ndarray, dtype: str, stride: int) -> Try:
    M = len(x)
    return Try(
        description,
        arguments={
            "x_ptr": In(x, dtype),
            "square_ptr": Out((M,)),
            "begin_ptr": Out((M,)),
            "stride_x": stride,
        },
        grid=(M,),
        expected={"square_ptr": x**2, "begin_ptr": np.arange(M) * float(stride)},
    )


def _lanes(description: str, x: np.ndarray, block: int) -> Try:
    lane_values = [x[lane::block] for lane in range(block)]
    return Try(
        description,
        arguments={
            "x_ptr": In(x),
            "count_ptr": Out((block,)),
            "mean_ptr": Out((block,)),
            "N": len(x),
        },
        constexprs={"BLOCK": block},
        expected={
            "count_ptr": np.array([float(len(values)) for values in lane_values]),
            "mean_ptr": np.array([values.mean() if len(values) else 0.0 for values in lane_values]),
        },
    )


def _range(description: str, x: np.ndarray) -> Try:
    return Try(
        description,
        arguments={"x_ptr": In(x), "low_ptr": Out((1,)), "high_ptr": Out((1,))},
        constexprs={"BLOCK": len(x)},
        expected={"low_ptr": np.array([x.min()]), "high_ptr": np.array([x.max()])},
    )


STEPS = (
    Step(
        "05-loop",
        kind="kernel",
        entry_point="mean_square_kernel",
        tries=(
            _mean_square("rows of five numbers, BLOCK = 4", _ROWS, 4),
            _mean_square("one row of eleven numbers, BLOCK = 4", _LONG[None], 4),
            _mean_square(
                "rows of five numbers that lie eight apart, BLOCK = 2", _ROWS, 2, stride=8
            ),
        ),
        question=(
            "At which column does the second block begin, and what must be left of the first block"
            " then?"
        ),
        debrief=(
            "This loop is the skeleton of every kernel for long rows. In exercise 05a it stands"
            " twice."
        ),
        slips=(
            Slip("squares += x * x", "squares = x * x", "block_not_accumulated"),
            Slip("cols = start + tl.arange(0, BLOCK)", "cols = tl.arange(0, BLOCK)", "same_block"),
            Slip("range(0, N, BLOCK)", "range(0, N - BLOCK, BLOCK)", "tail_left_out"),
            Slip("row * stride_x + cols", "row * N + cols", "stride_ignored"),
        ),
    ),
    Step(
        "05-wide",
        kind="kernel",
        entry_point="square_kernel",
        tries=(
            _square("fp16 numbers near 300", np.array([300.0, -290.0, 1.5, 2.0]), "fp16", 4),
            _square("rows 2**30 elements apart", np.array([1.0, 2.0, 3.0, 4.0]), "fp32", _FAR),
        ),
        question=(
            "How many bits has `tl.program_id(0)`, and which dtype does `x` have when it is"
            " squared?"
        ),
        debrief=(
            "Both lines cost nothing that you can measure. Put them into every kernel from now on,"
            " as this course does."
        ),
        slips=(
            Slip("tl.program_id(0).to(tl.int64)", "tl.program_id(0).to(tl.int32)", "offset_32_bit"),
            Slip(
                "tl.load(x_ptr + row).to(tl.float32)",
                "tl.load(x_ptr + row).to(tl.float16)",
                "low_precision",
            ),
        ),
    ),
    Step(
        "05-count",
        kind="kernel",
        entry_point="lanes_kernel",
        tries=(
            _lanes("eleven numbers, BLOCK = 4", _LONG, 4),
            _lanes("five numbers, BLOCK = 8: three lanes never have an element", _ROWS[0], 8),
        ),
        question=(
            "What do `count` and `x - mean` become in a lane that loaded 0 because its mask is"
            " false?"
        ),
        debrief=(
            "Two masks for two values: `tl.where` keeps the mean, and `mask.to(tl.float32)` keeps"
            " the count. One of them is not enough."
        ),
        slips=(
            Slip("count += mask.to(tl.float32)", "count += 1.0", "lane_counts"),
            Slip(
                "tl.where(mask, x - mean, 0.0)",
                "(x - mean)",
                "a lane without an element moves its mean",
                "Where the mask is false, `x` is 0. To which number does your line move the mean of"
                " such a lane?",
            ),
            Slip("tl.maximum(count, 1.0)", "count", "empty_lane"),
        ),
    ),
    Step(
        "05-reduce",
        kind="kernel",
        entry_point="range_kernel",
        tries=(
            _range("eight numbers", np.array([2.0, -1.0, 3.0, 0.5, -0.5, 1.5, -2.0, 1.0])),
            _range("sixteen numbers, all above 0", np.arange(3.0, 19.0)[::-1].copy()),
        ),
        question=(
            "`combine` gets low and high of one side first, then of the other. Which two of the"
            " four make the new low?"
        ),
        debrief=(
            "Two results from one tree. Welford's merge has three, so it takes six values and"
            " returns three."
        ),
        slips=(
            Slip(
                "tl.minimum(low_a, low_b)",
                "tl.minimum(low_a, high_a)",
                "the smallest number of one side is left out",
                "Four numbers come in, two from each side. Which of them does your `low` never"
                " look at?",
            ),
            Slip(
                "tl.maximum(high_a, high_b)",
                "high_a",
                "the largest number of one side is left out",
                "Four numbers come in, two from each side. Which of them does your `high` never"
                " look at?",
            ),
            Slip(
                "tl.minimum(low_a, low_b), tl.maximum(high_a, high_b)",
                "tl.maximum(low_a, low_b), tl.minimum(high_a, high_b)",
                "smallest and largest have changed places",
                "Which of two numbers does `tl.minimum` keep, and which one does `low` need?",
            ),
        ),
    ),
)
