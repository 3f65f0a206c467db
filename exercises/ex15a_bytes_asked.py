"""Exercise 15a: account for the bytes of five kernels.

Each function stands for one way to compute a norm, and returns two whole numbers: the bytes that its kernels ask to read,
and the bytes that they ask to write. Lesson 15 shows the kernels; they stand in course_lib/lessons/lesson15/accounting.py.

Count what each lane of each program loads and stores. A lane that is masked off asks for nothing. What comes from a cache
counts like the rest. M and N are rows and columns, itemsize the bytes of a number of x, y, w, b and of all matrices. The
statistics mean and rstd, and partial sums, are fp32: 4 bytes, whatever itemsize is.

Your numbers are compared with a trace of the kernels. They have to be exact.

Check with the panel in lesson 15, or with `course check 15a` in a terminal.
"""

import math


def blocked_forward(M: int, N: int, itemsize: int) -> tuple[int, int]:
    """blocked_kernel: LayerNorm, one program a row, three loops over the row. Writes y, mean and rstd."""
    # YOUR CODE, about 4 lines: How often is x loaded? Which programs load w and b? What is stored beside y?


def resident_forward(M: int, N: int, itemsize: int, ROWS: int) -> tuple[int, int]:
    """resident_kernel: LayerNorm, ROWS rows per program, each loaded once. M need not be a multiple of ROWS."""
    # YOUR CODE, about 5 lines: As before, but now rows share a program. How many programs are there?


def add_then_rms_norm(M: int, N: int, itemsize: int) -> tuple[int, int]:
    """add_kernel, then rms_norm_kernel on its total: two launches. Both results are kept."""
    # YOUR CODE, about 4 lines: Count one launch after the other. RMSNorm has no mean and no b.


def add_rms_norm(M: int, N: int, itemsize: int) -> tuple[int, int]:
    """add_rms_norm_kernel: the same in one launch."""
    # YOUR CODE, about 4 lines: What does the one kernel not have to do?


def two_stage_backward(M: int, N: int, itemsize: int, rows_a_chunk: int, BLOCK_N: int) -> tuple[int, int]:
    """dx_kernel, partials_kernel, finish_kernel: dx, then partial sums of dw and db for each chunk of rows, then dw and db."""
    # YOUR CODE, about 10 lines: Three launches. In the second a program has one chunk of rows and BLOCK_N columns;
    # who loads mean and rstd there?
