"""The steps of lesson 06: a tree of additions, sums per lane, and the time of sweeps over
memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from course_lib.lessons.steps.step import In, Out, Slip, Step, Try


def _sum_lanes(row: Sequence[float], block: int) -> np.ndarray:
    """Return the sum of each lane after it has added up its columns of ``row``."""
    padded = np.zeros(-(-len(row) // block) * block)
    padded[: len(row)] = row
    return padded.reshape(-1, block).sum(axis=0)


_TEN = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]

STEPS = (
    Step(
        "06-tree",
        kind="numpy",
        entry_point="add_in_a_tree",
        tries=(
            Try("the numbers 1 to 16 in 16 threads", arguments=(In(range(1, 17)),), expected=136.0),
            Try("two threads", arguments=(In([2.5, -0.25]),), expected=2.25),
            Try("eight threads, one of which holds something",
                arguments=(In([0, 0, 0, 0, 0, 7, 0, 0]),), expected=7.0),
        ),
        question="With stride 4, what do threads 0 to 3 add?",
        debrief="Four rounds for 16 threads, ten for 1024. The GPU does the same, with registers "
                "in the place of slices.",
        slips=(
            Slip("held[:stride] + held[stride : 2 * stride]", "held[:stride] + held[stride]",
                "one element is added to all others",
                "With stride 4, which element does each of threads 0 to 3 add? Are they four "
                "different ones?"),
            Slip("held[:stride] + held[stride : 2 * stride]",
                "held[:stride] + held[1 : stride + 1]", "elements side by side are added",
                "With stride 4, which element does thread 0 add, and how far is it from thread "
                "0's own?"),
            Slip("held[:stride] + held[stride : 2 * stride]", "held[:stride]",
                "half of the elements is dropped",
                "Which elements of `held` does your line never add?"),
        ),
    ),
    Step(
        "06-lanes",
        kind="kernel",
        entry_point="lane_sums_kernel",
        tries=(
            Try(
                "a row of 10 in blocks of 4",
                arguments={"x_ptr": In(_TEN), "sums_ptr": Out((4,)), "N": 10},
                constexprs={"BLOCK": 4},
                expected={"sums_ptr": _sum_lanes(_TEN, 4)},
            ),
            Try(
                "a row of 8 in blocks of 4: no lane is past the end",
                arguments={"x_ptr": In(_TEN[:8]), "sums_ptr": Out((4,)), "N": 8},
                constexprs={"BLOCK": 4},
                expected={"sums_ptr": _sum_lanes(_TEN[:8], 4)},
            ),
            Try(
                "a row of 3 in a block of 4",
                arguments={"x_ptr": In([5, -1, 2]), "sums_ptr": Out((4,)), "N": 3},
                constexprs={"BLOCK": 4},
                expected={"sums_ptr": _sum_lanes([5, -1, 2], 4)},
            ),
        ),
        question="Ten columns in blocks of 4: which columns does lane 1 add up, and which lanes "
                 "load nothing in the last block?",
        debrief="After the loop one tl.sum over these lanes is the sum of the row. The exercise "
                "at the end of this page does that.",
        slips=(
            Slip("total += tl.load(x_ptr + cols, mask=cols < N, other=0.0)",
                "total = tl.load(x_ptr + cols, mask=cols < N, other=0.0)", "block_not_accumulated"),
            Slip("other=0.0)", "other=1.0)", "a lane without an element adds a number",
                "What does a lane add whose mask is false?"),
            Slip("tl.load(x_ptr + cols, mask=cols < N, other=0.0)",
                "tl.sum(tl.load(x_ptr + cols, mask=cols < N, other=0.0), axis=0)",
                "every lane adds the whole block",
                "The sum of a block is one number. What does lane 1 hold after your line, and "
                "what should it hold?"),
        ),
    ),
    Step(
        "06-floor",
        kind="numpy",
        entry_point="fewest_microseconds",
        tries=(
            Try("a copy of 4096 x 8192 in fp16 at 2810 GB/s", arguments=(4096, 8192, 2, 2, 2810),
                expected=47.7637125),
            Try("three sweeps over 1000 x 1000 in fp32 at 1000 GB/s",
                arguments=(1000, 1000, 4, 3, 1000), expected=12.0),
        ),
        question="How many bytes are moved? How many seconds do they take at gbps * 10**9 bytes "
                 "per second, and how many microseconds is that?",
        debrief="48 µs for LayerNorm of 4096 x 8192, before anybody has written it. A measured "
                "time means something beside this number.",
        slips=(
            Slip("sweeps * M * N * itemsize", "sweeps * M * N", "numbers_for_bytes"),
            Slip("sweeps * M * N * itemsize", "M * N * itemsize", "the sweeps are not counted",
                "Three sweeps over a matrix: how often is each of its numbers moved?"),
            Slip("moved / (gbps * 1e9) * 1e6", "moved / gbps * 1e3",
                "the unit is not the microsecond",
                "gbps * 10**9 bytes take one second. How many microseconds is that, and what does "
                "your line give for so many bytes?"),
            Slip("moved / (gbps * 1e9) * 1e6", "moved / (gbps * 1e9)", "the result is in seconds",
                "How many microseconds has a second?"),
        ),
    ),
)  # fmt: skip
