"""The steps of lesson 04: a weighted mean of two means, what lies between them, and merges with
an empty side."""

from __future__ import annotations

import numpy as np

from course_lib.lessons.steps.step import In, Slip, Step, Try

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
        "04-between",
        kind="numpy",
        entry_point="find_between",
        tries=(
            Try("three numbers and one, whose means are 4 apart", (3, 1, 4.0), 12.0),
            Try("four numbers and four, whose means are 10 apart", (4, 4, 10.0), 200.0),
            Try("two numbers and eight, d = -15", (2, 8, -15.0), 360.0),
        ),
        question="1 1 1 5 has the mean 2. How far is each of the two sides from it?",
        debrief="The larger side is nearer to the common mean. It has more numbers, and each of "
                "them adds less.",
        slips=(
            Slip("d * n_b / n, d * n_a / n", "d * n_a / n, d * n_b / n",
                "the two distances are exchanged",
                "1 1 1 5 has the mean 2. Which side is farther from it, the three numbers or the "
                "one?"),
            Slip("d * n_b / n, d * n_a / n", "d / 2, d / 2",
                "both sides are taken to be equally far from the common mean",
                "1 1 1 5 has the mean 2. How far is each of the two sides from it?"),
            Slip("d * n_b / n, d * n_a / n", "d, d",
                "the distances are those from the other side's mean",
                "The deviations are taken from the common mean. How far is it from mean_a?"),
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
