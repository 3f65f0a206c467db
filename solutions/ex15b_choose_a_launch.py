"""Exercise 15b: launch a norm near the floor.

The kernel is right and stays as it is: the course's LayerNorm of lesson 08, which holds whole rows in registers
(`layer_norm_resident_kernel`, in course_lib/kernels/layer_norm.py). A program takes ROWS rows, in a tile of ROWS x BLOCK numbers, with
`num_warps` warps. The launch below is right for every shape, and slow. Repair it: return ROWS, BLOCK and num_warps for M rows of N
columns, x and y of `itemsize` bytes per number (2 or 4).

N is a power of two from 128 to 16384, or three quarters of one up to 3072. The launch is for an H100. A multiprocessor of it holds 64
warps, 32 programs and 65536 registers, and a thread has 255 registers at most. In fp32 each number of x takes one of them, whatever
itemsize is, and addresses, w and b take about 20 to 50 more. There are 132 multiprocessors. By Little's law each of them needs 15 KB
of x under way; aim at 30 KB, since a program loads for a part of its time only. Under way is what the programs that a multiprocessor
holds at a time have asked for together.

Checked everywhere: all columns are normalised, no lanes idle that need not, nothing spills, every multiprocessor has work, and 30 KB
are under way wherever x is large enough. The registers are what the compiler for an H100 gives. On a machine with a GPU five shapes are
timed as well, and have to reach 0.9 of the floor's bandwidth. Without a GPU nobody knows the time, and the verdict says so.

Check with the panel in lesson 15, or with `course check 15b` in a terminal.
"""

import math

MULTIPROCESSORS = 132


def choose_launch(M: int, N: int, itemsize: int) -> tuple[int, int, int]:
    """ROWS, BLOCK and num_warps: powers of two, with BLOCK at least N and 1 to 32 warps."""
    # BEGIN SOLUTION
    #: One launch for every shape. What do most lanes of a short row do, how many programs does a multiprocessor hold, and how many bytes have
    #: they asked for? Choose BLOCK from N, ROWS from BLOCK and M, then num_warps from the numbers that a thread is to hold.
    #| ROWS, BLOCK, num_warps = 1, 16384, 32
    BLOCK = 2 ** math.ceil(math.log2(N))
    ROWS = max(1, 4096 // BLOCK)  # 8 KB of fp16 a program
    while ROWS > 1 and M < ROWS * MULTIPROCESSORS:
        ROWS //= 2
    a_thread = 32  # leaves registers for 900 threads: 56 KB of fp16 under way
    num_warps = max(1, ROWS * BLOCK // (32 * a_thread))
    # END SOLUTION
    return ROWS, BLOCK, num_warps
