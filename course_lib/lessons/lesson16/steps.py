"""The steps of lesson 16: the columns of each chunk, one word for value and flag, a ticket, and a
fixed order of additions."""

from __future__ import annotations

import numpy as np

from course_lib.lessons.steps.step import In, Out, Slip, Step, Try

_PARTS = [
    [1, 10, 100],
    [2, 20, 200],
    [3, 30, 300],
    [4, 40, 400],
    [5, 50, 500],
    [6, 60, 600],
    [7, 70, 700],
    [8, 80, 800],
]
_LARGE = [1e8, 1.0, -1e8, 0.5]


def _add_in_order(parts: list[float]) -> float:
    """Add up the parts in fp32, from the first to the last."""
    return float(np.add.accumulate(np.array(parts, dtype=np.float32))[-1])


STEPS = (
    Step(
        "16-counts",
        kind="numpy",
        entry_point="count_columns",
        tries=(
            Try("10 columns in chunks of 4", arguments=(10, 4), expected=[4, 4, 2]),
            Try("8 columns in chunks of 4", arguments=(8, 4), expected=[4, 4]),
            Try("3 columns in chunks of 4", arguments=(3, 4), expected=[3]),
        ),
        question="At which column does each chunk begin? How many columns are there from it to "
                 "the end of the row, and when is that too many?",
        debrief="One word per chunk: a row of 262144 columns in chunks of 4096 has 64 words, 512 "
                "bytes beside 1 MB of x and y.",
        slips=(
            Slip("np.minimum(N - begins, length)", "np.full(len(begins), length)", "short_chunk"),
            Slip("np.minimum(N - begins, length)", "N - begins",
                "every chunk reaches to the end of the row",
                "10 columns in chunks of 4: how many columns may the first chunk have, and how "
                "many does your line give it?"),
            Slip("np.minimum(N - begins, length)", "np.minimum(N % length, length) + 0 * begins",
                "every chunk is as short as the last one",
                "10 columns in chunks of 4: how many columns has the first chunk, and how many "
                "does your line give it?"),
        ),
    ),
    Step(
        "16-word",
        kind="kernel",
        entry_point="exchange_kernel",
        tries=(
            Try(
                "a row of three chunks brings 1, 10 and 100",
                arguments={"part_ptr": In(_PARTS[0], "int32"), "total_ptr": Out((3,), "int32"),
                    "word_ptr": Out((3,), "int32", start=0)},
                grid=(3,),
                constexprs={"CHUNKS": 3},
                expected={"total_ptr": [111] * 3, "word_ptr": [-1, -10, -100]},
                orders=6,
            ),
            Try(
                "a row of one chunk",
                arguments={"part_ptr": In([7], "int32"), "total_ptr": Out((1,), "int32"),
                    "word_ptr": Out((1,), "int32", start=0)},
                constexprs={"CHUNKS": 1},
                expected={"total_ptr": [7], "word_ptr": [-7]},
                orders=2,
            ),
        ),
        question="What does a word hold before its program has come, and what afterwards? Does "
                 "your wait look at a word again until it has changed?",
        debrief="The value is its own flag, so there is nothing to order. The course's words have "
                "64 bits: a mean, and an M2 whose sign bit is the flag.",
        slips=(
            Slip("while word >= 0:\n            word = tl.load(word_ptr + k, volatile=True)",
                "pass", "a word is added before its program has come",
                "What does a word hold before its program has come, and does your loop look at it "
                "again?"),
            Slip("-part, sem", "part, sem", "deadlock",
                "For which word does the program wait? What stands in it by then, and for what "
                "does your loop go on waiting?"),
            Slip("total -= word", "total += word", "the sum has the wrong sign",
                "A word holds its part with the sign turned. What comes out if you add up words?"),
            Slip("while word >= 0:", "while word <= 0:", "deadlock",
                "For which word does the program wait? What stands in it by then, and for what "
                "does your loop go on waiting?"),
        ),
    ),
    Step(
        "16-ticket",
        kind="kernel",
        entry_point="split_kernel",
        tries=(
            Try(
                "eight rows of three chunks, and room for eight programs at a time",
                arguments={
                    "part_ptr": In(_PARTS, "int32"), "total_ptr": Out((8, 3), "int32"),
                    "word_ptr": Out((8, 3), "int32", start=0),
                    "ticket_ptr": Out((1,), "int32", start=0),
                },
                grid=(24,),
                constexprs={"CHUNKS": 3},
                expected={
                    "total_ptr": [[sum(row)] * 3 for row in _PARTS],
                    "word_ptr": [[-part for part in row] for row in _PARTS], "ticket_ptr": [24],
                },
                orders=6,
            ),
        ),
        question="Which number says how many programs have started before this one, whatever "
                 "their ids are? Who counts it?",
        debrief="Whoever starts first takes the first chunk. So a program waits only for programs "
                "that have started, and those with a smaller ticket have a place already.",
        slips=(
            Slip("tl.atomic_add(ticket_ptr, 1)",
                "tl.atomic_add(ticket_ptr, 1) * 0 + tl.program_id(0)", "deadlock",
                "A program waits for the words of its row. Has every program that should write "
                "one a place on the GPU already?"),
            Slip("tl.atomic_add(ticket_ptr, 1)", "tl.atomic_add(ticket_ptr, 1) + 1"),
            Slip("tl.atomic_add(ticket_ptr, 1)",
                "tl.load(ticket_ptr)\n    tl.store(ticket_ptr, place + 1)"),
        ),
    ),
    Step(
        "16-order",
        kind="kernel",
        entry_point="add_kernel",
        tries=(
            Try(
                "four parts: 1e8, 1, -1e8 and 0.5",
                arguments={"part_ptr": In(_LARGE), "total_ptr": Out((4,))},
                grid=(4,),
                constexprs={"CHUNKS": 4},
                expected={"total_ptr": [_add_in_order(_LARGE)] * 4},
            ),
            Try(
                "three parts: 1, 2 and 3",
                arguments={"part_ptr": In([1, 2, 3]), "total_ptr": Out((3,))},
                grid=(3,),
                constexprs={"CHUNKS": 3},
                expected={"total_ptr": [6] * 3},
            ),
        ),
        question="Which part does each program add first? Which number may decide that, if all "
                 "are to find the same bits?",
        debrief="The order may depend on the shape, and on nothing else. Then a row has the same "
                "bits in every run and in every batch.",
        slips=(
            Slip("tl.load(part_ptr + i)", "tl.load(part_ptr + (CHUNKS - 1 - i + chunk) % CHUNKS)",
                "each program adds in an order of its own",
                "Which part does each program add first? Which number decides that?"),
            Slip("tl.load(part_ptr + i)", "tl.load(part_ptr + chunk)",
                "one part is added again and again",
                "Which part does your loop load in its second turn?"),
        ),
    ),
)  # fmt: skip
