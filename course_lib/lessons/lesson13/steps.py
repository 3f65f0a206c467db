"""The steps of lesson 13: a separate place for each program's sum, the rows of a chunk, and a loop
over every P-th row."""

from __future__ import annotations

import numpy as np

from course_lib.lessons.steps.step import In, Out, Slip, Step, Try

_NUMBERS = np.random.default_rng(13)
# sums of small integers are exact
_DY, _XHAT = (_NUMBERS.integers(-8, 9, size=(5, 4)).astype(float) for _ in range(2))
_ROWS = _NUMBERS.integers(-8, 9, size=(10, 4)).astype(float)
_WIDE_ROWS = _NUMBERS.integers(-8, 9, size=(10, 8)).astype(
    float
)  # more columns than rows per step, so that no mask of the wrong axis fits by chance


def _add_chunks(rows: np.ndarray, rows_a_chunk: int) -> np.ndarray:
    return np.stack(
        [
            rows[first_row : first_row + rows_a_chunk].sum(axis=0)
            for first_row in range(0, len(rows), rows_a_chunk)
        ]
    )


def _try_chunks(description: str, M: int, rows_a_chunk: int, BLOCK_M: int) -> Try:
    expected = _add_chunks(_WIDE_ROWS[:M], rows_a_chunk)
    return Try(
        description,
        arguments={
            "dy_ptr": In(_WIDE_ROWS[:M]),
            "db_ptr": Out(expected.shape),
            "M": M,
            "rows_a_chunk": rows_a_chunk,
        },
        grid=(len(expected),),
        constexprs={"BLOCK_M": BLOCK_M, "BLOCK_N": 8},
        expected={"db_ptr": expected},
    )


def _try_walk(description: str, M: int, P: int) -> Try:
    expected = np.stack([_ROWS[:M][program::P].sum(axis=0) for program in range(P)])
    return Try(
        description,
        arguments={"dy_ptr": In(_ROWS[:M]), "partial_ptr": Out(expected.shape), "M": M},
        grid=(P,),
        constexprs={"BLOCK": 4},
        expected={"partial_ptr": expected},
    )


STEPS = (
    Step(
        "13-slot",
        kind="kernel",
        entry_point="own_place_kernel",
        tries=(
            Try(
                "five rows of four columns",
                arguments={"dy_ptr": In(_DY), "xhat_ptr": In(_XHAT), "partial_ptr": Out((5, 4))},
                grid=(5,),
                constexprs={"BLOCK": 4},
                expected={"partial_ptr": _DY * _XHAT},
                orders=3,
            ),
        ),
        question=(
            "Which number tells this program from the others, and how many elements lie between two"
            " rows?"
        ),
        debrief=(
            "Each row of partial sums has one writer. Where nobody shares a place, no order can"
            " matter."
        ),
        slips=(
            Slip(
                "partial_ptr + row * BLOCK + cols, part)",
                "partial_ptr + row + cols, part)",
                "programs_overlap",
            ),
            Slip(
                "partial_ptr + row * BLOCK + cols, part)",
                "partial_ptr + cols, part)",
                "programs_overlap",
            ),
        ),
    ),
    Step(
        "13-chunk",
        kind="kernel",
        entry_point="chunk_kernel",
        tries=(
            _try_chunks("10 rows in chunks of 5, 4 rows per step", 10, 5, 4),
            _try_chunks("9 rows in chunks of 5: the last chunk is short", 9, 5, 4),
            _try_chunks("3 rows in one chunk of 8", 3, 8, 4),
        ),
        question=(
            "A row counts if it exists and if it belongs to this chunk. Which part of your mask"
            " says the one, and which the other?"
        ),
        debrief=(
            "With chunks of 4 or 8 rows the line that you mended would have been right: tests with"
            " round numbers never see it."
        ),
        slips=(
            Slip("(rows < M) & (within < rows_a_chunk)", "(within < rows_a_chunk)"),
            Slip(
                "(rows < M) & (within < rows_a_chunk)",
                "rows < M",
                "rows are counted by two chunks",
                "A chunk of 5 rows takes 4 rows in a step. Which rows does its second step take,"
                " and to which chunk do they belong?",
            ),
            Slip(
                "(rows < M) & (within < rows_a_chunk)",
                "(rows < M) & (within < BLOCK_M)",
                "rows after the first step are left out",
                "In the second step `within` begins at BLOCK_M. Which rows does your mask let"
                " through then?",
            ),
        ),
    ),
    Step(
        "13-walk",
        kind="kernel",
        entry_point="persistent_db_kernel",
        tries=(
            _try_walk("7 rows, 3 programs", 7, 3),
            _try_walk("10 rows, 1 program", 10, 1),
            _try_walk("2 rows, 5 programs: three have none", 2, 5),
        ),
        question="Program 1 of 3 takes rows 1, 4, 7, ...: what are the three numbers of `range`?",
        debrief=(
            "The grid no longer depends on M. A program without a row never enters the loop, and"
            " stores zeros."
        ),
        slips=(
            Slip(
                "range(program, M, tl.num_programs(0))",
                "range(0, M, tl.num_programs(0))",
                "every program begins at row 0",
                "Program 1 of 3 takes rows 1, 4, 7, ... With which row does yours begin?",
            ),
            Slip(
                "range(program, M, tl.num_programs(0))",
                "range(program, M)",
                "a row is counted by several programs",
                "Program 0 of 3 takes row 0. Which row does yours take next, and to which program"
                " does that row belong?",
            ),
            Slip(
                "range(program, M, tl.num_programs(0))",
                "range(program, tl.num_programs(0))",
                "the walk ends before the last row",
                "Where should the walk end, and where does yours?",
            ),
        ),
    ),
)
