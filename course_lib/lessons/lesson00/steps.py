"""The steps of lesson 00: offsets with gaps between them, a mask with two conditions, an `other`
for a minimum."""

from __future__ import annotations

import numpy as np

from course_lib.lessons.steps.step import In, Out, Slip, Step, Try


def _try_deal(programs: int, block: int) -> Try:
    elements = np.arange(programs * block)
    return Try(
        f"{programs} programs of {block} lanes",
        arguments={"who_ptr": Out((programs * block,), "int32"), "programs": programs},
        grid=(programs,),
        constexprs={"BLOCK": block},
        expected={"who_ptr": elements % programs},
        within=0,
    )


def _try_slice(start: int, stop: int) -> Try:
    x = np.arange(10.0, 30.0)
    inside = (np.arange(20) >= start) & (np.arange(20) < stop)
    return Try(
        f"start = {start}, stop = {stop}, 20 numbers, BLOCK = 8",
        arguments={"x_ptr": In(x), "y_ptr": Out((20,), start=-1.0), "start": start, "stop": stop},
        grid=(3,),
        constexprs={"BLOCK": 8},
        expected={"y_ptr": np.where(inside, 2 * x, -1.0)},
        within=0,
    )


def _try_smallest(*numbers: float) -> Try:
    return Try(
        f"{len(numbers)} numbers in a block of 8",
        arguments={"x_ptr": In(numbers), "smallest_ptr": Out((1,)), "n": len(numbers)},
        constexprs={"BLOCK": 8},
        expected={"smallest_ptr": [min(numbers)]},
        within=0,
        asked=len(numbers) < 8,
    )


STEPS = (
    Step(
        "00-deal",
        kind="kernel",
        entry_point="deal_kernel",
        tries=(_try_deal(3, 4), _try_deal(4, 2)),
        question=(
            "Lane 0 of program 1 writes element 1. Which element does lane 1 of program 1 write?"
        ),
        debrief=(
            "An offset is any whole number that you can compute from the program and the lane."
            " Later lessons choose it with care: on a GPU, lanes side by side are fast when they"
            " read elements side by side."
        ),
        slips=(
            Slip(
                "lanes * programs + program",
                "program * BLOCK + lanes",
                "each program takes elements that lie side by side",
                "Lane 0 of program 1 should write element 1. Which element does yours write?",
            ),
            Slip("lanes * programs + program", "lanes * BLOCK + program"),
            Slip("lanes * programs + program", "lanes + program", "programs_overlap"),
        ),
    ),
    Step(
        "00-slice",
        kind="kernel",
        entry_point="double_slice_kernel",
        tries=(_try_slice(3, 13), _try_slice(0, 20), _try_slice(9, 10)),
        question=(
            "Is the element `start` in the slice? Is the element `stop`? The page says which sign"
            " joins two conditions."
        ),
        debrief=(
            "The store of a masked lane never happens, so the other elements keep what they held."
            " Kernels write `&`, as NumPy does for arrays. Triton 3.7 takes `and` between two"
            " blocks, too, and warns that this is deprecated."
        ),
        slips=(
            Slip(
                "(offsets >= start) & (offsets < stop)",
                "(offsets > start) & (offsets < stop)",
                "the element `start` is left out",
                "A slice begins with the element `start`. What does your condition say of it?",
            ),
            Slip(
                "(offsets >= start) & (offsets < stop)",
                "(offsets >= start) & (offsets <= stop)",
                "the element `stop` is written, too",
                "A slice ends before the element `stop`. What does your condition say of it?",
            ),
            Slip(
                "(offsets >= start) & (offsets < stop)",
                "offsets < stop",
                "elements before `start` are written",
                "A slice has two ends. Which of them does your condition look at?",
            ),
            Slip(
                "(offsets >= start) & (offsets < stop)",
                "(offsets >= start) | (offsets < stop)",
                "every lane passes the mask",
                "Take an offset before `start`: which of your two conditions lets it through?",
            ),
        ),
    ),
    Step(
        "00-smallest",
        kind="kernel",
        entry_point="smallest_kernel",
        tries=(
            _try_smallest(7, 3, 9, 4, 8),
            _try_smallest(2.0**102, 2.0**100, 2.0**101),
            _try_smallest(-1, 4, -6, 2, 2, 8, 3, 1),
        ),
        question=(
            "Three lanes have no number. Which value could they hold so that the smallest of all"
            " lanes is still a number of the row?"
        ),
        debrief=(
            '`float("inf")` is the value that never wins a minimum, as 0 is the value that changes'
            " no sum. Such a value is called the neutral element of an operation."
        ),
        slips=(
            Slip(
                'float("inf")',
                'float("-inf")',
                "a lane past the end wins the minimum",
                "What do the three lanes past the end hold? Which of two numbers does `tl.min`"
                " keep?",
            ),
            Slip(
                'float("inf")',
                "1000.0",
                "what the lanes past the end hold is not large enough for every row",
                "Take a row whose numbers are all larger than what your lanes past the end hold."
                " What does `tl.min` give?",
            ),
            Slip(
                'other=float("inf")',
                "other=0.0",
                "a lane past the end wins the minimum",
                "What do the three lanes past the end hold? Which of two numbers does `tl.min`"
                " keep?",
            ),
        ),
    ),
)
