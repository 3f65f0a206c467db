"""The steps of lesson 04: a weighted mean of two means, Welford's update, many rows column by
column, and merges with an empty side."""

from __future__ import annotations

import numpy as np

from course_lib.lessons.steps.step import In, Slip, Step, Try

_ROW = np.array([2.0, 4.0, 9.0, -3.0, 0.5])
_ROWS = np.array([[2.0, -1.0, 3.0, 0.5], [-4.0, -3.0, -2.5, -1.0], [0.25, 7.0, 7.0, -7.0]])
_COUNTS = np.array([[3.0, 1.0], [0.0, 1.0], [5.0, 0.0], [0.0, 0.0], [8.0, 8.0]])

STEPS = (
    Step(
        "04-share",
        kind="numpy",
        entry_point="mean_of_both",
        tries=(
            Try("three numbers with mean 1 and one number, 5", (3, 1.0, 1, 5.0), 2.0),
            Try("four numbers with mean 1 and four with mean 5", (4, 1.0, 4, 5.0), 3.0),
            Try("two numbers with mean 10 and eight with mean -5", (2, 10.0, 8, -5.0), -2.0),
        ),
        question="b has n_b of how many numbers in all?",
        debrief="This line works for parts of any size, and for a part of one number. The rest of "
                "the lesson is built on it.",
        slips=(
            Slip("n_b / (n_a + n_b)", "n_a / (n_a + n_b)", "merge_weights"),
            Slip("n_b / (n_a + n_b)", "n_b / n_a", "merge_weights"),
        ),
    ),
    Step(
        "04-stream",
        kind="numpy",
        entry_point="list_running_means",
        tries=(
            Try("the numbers 2, 4, 9, -3, 0.5", (In(_ROW),), np.cumsum(_ROW) / np.arange(1, 6)),
            Try("one number, 7", (In([7.0]),), np.array([7.0])),
        ),
        question="Before the first number `count` is 0. How many numbers are in `mean` after it?",
        debrief="The first number moves the mean all the way, by 1/1. So it does not matter that "
                "mean was 0 before.",
        slips=(
            Slip("(count + 1)", "max(count, 1)", "the divisor is one too small",
                "How many numbers are in `mean` after the second one? By how many does your line "
                "divide then?"),
            Slip("(count + 1)", "len(x)", "each step divides by the number of all elements",
                "How many numbers are in `mean` after the second one?"),
            Slip("mean + (x[count] - mean)", "(x[count] - mean)",
                "what the mean was before is lost",
                "Each step moves the mean a little. From which number does your line start?"),
        ),
    ),
    Step(
        "04-columns",
        kind="numpy",
        entry_point="find_largest",
        tries=(
            Try("three rows of four numbers", (In(_ROWS),), _ROWS.max(axis=1)),
            Try("one row of one number, -7", (In([[-7.0]]),), np.array([-7.0])),
        ),
        question="Which array holds one number per row, and which slice of x is one column?",
        debrief="Welford has the same shape: a state of no numbers, one update per column, all "
                "rows side by side.",
        slips=(
            Slip("np.full(M, -np.inf, np.float32)", "np.zeros(M, np.float32)",
                "the largest number so far begins at 0",
                "A row holds the number -7 alone. Which is larger: -7, or what `known` holds at "
                "the beginning?"),
            Slip("range(N)", "range(M)", "elements_skipped"),
        ),
    ),
    Step(
        "04-empty-sides",
        kind="numpy",
        entry_point="find_share",
        tries=(
            Try("five merges: 3 and 1 numbers, 0 and 1, 5 and 0, 0 and 0, 8 and 8",
                (In(_COUNTS[:, 0]), In(_COUNTS[:, 1])),
                np.array([0.25, 1.0, 0.0, 0.0, 0.5]), within=1e-7),
        ),
        question="Where n is 0 the divisor must be another number. Where n is 1 or more, which "
                 "number must it be?",
        debrief="In a kernel it reads `tl.maximum(n, 1.0)`. Lanes past the end of a row are such "
                "empty sides.",
        slips=(
            Slip("np.maximum(n, 1)", "(n + 1)", "the divisor is too large where there are numbers",
                "For 3 and 1 numbers: by which number does your line divide, and by which should "
                "it?"),
            Slip("np.maximum(n, 1)", "np.maximum(n, 2)",
                "the divisor is wrong where there is one number",
                "0 numbers and 1 number make n = 1. By which number does your line divide?"),
            Slip("np.maximum(n, 1)", "(n + 1e-6)",
                "the divisor is a little too large where there are numbers",
                "0 numbers and 1 number, whose mean is 10000: which mean does your share give both "
                "together?"),
            Slip("n_b / np.maximum(n, 1)", "np.where(n > 0, 0.5, 0.0)",
                "every merge is given the same share",
                "Of 8 and 8 numbers b has one half. Which share has it of 3 and 1 numbers?"),
        ),
    ),
)  # fmt: skip
