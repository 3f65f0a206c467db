"""What was measured, as tables: for each class of devices the algorithm by row length, and the
launch of each algorithm.

A table is read from top to bottom, and the first line whose conditions hold is taken. A new GPU is
a new class in DEVICE_CLASSES, with lines of its own that stand before those of the class that it
extends.

The lines are fixed on purpose. A tuner that looks at M would compile again for a new batch size,
and two launches round differently: forward, the same row would get different bits in different
batches. Backward it may: above PERSISTENT_LIMIT columns, few rows take another algorithm than many.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch

# columns of any row: kernels count them in 32 bits, and the last block may begin just below N
MOST_COLUMNS = 2**31 - 2**15
RESIDENT_LIMIT = 32768  # columns; the registers of one program cannot hold a longer row
# columns; for longer rows a program cannot hold x, dy and its part of dw and db at once
PERSISTENT_LIMIT = 8192
_LONGEST_FP32_VECTORS = 512  # columns
# columns backward; longer rows would need two tiles of 8192, no better than a block of 16384
TWO_TILES_LIMIT = 12288


class Line(NamedTuple):
    """A line of a table: conditions on the rows (one that is None always holds), and what is
    launched if all of them hold."""

    above: int = 0  # columns; the row is longer
    longest: int = 1 << 62  # columns; the row has at most so many
    multiple: int = 1  # the row's columns are a multiple of this
    # rows are whole vectors of 16 bytes, and loaded in these; False: element by element
    aligned: bool | None = None
    power_of_two: bool | None = None
    dtype: torch.dtype | None = None
    itemsize: int | None = None  # bytes per element
    centred: bool | None = None  # LayerNorm; False: RMSNorm
    add: bool | None = None  # the kernel adds a residual
    # what is launched
    algorithm: str = ""
    rows: int = 1  # per tile
    block: int = 0  # columns of a chunk, where programs share a row; 0: half of the row
    num_warps: int = 0
    programs: int = 1  # per multiprocessor
    stages: int = 1  # tiles or rows in flight
    registers: int | None = None  # a thread has at most so many
    # where a tile's loop loads mean and rstd for the next tile: before dx's "store", "last", or ""
    # if not one tile ahead
    ahead: str = ""
    unmasked: bool = False  # LayerNorm, like RMSNorm, has no column mask if its chunks fill the row
    why: str = ""
    source: str = ""  # a section of docs/kernel-trials.md, or a file of course_lib/bench/results


def count_vector_columns(N: int, itemsize: int) -> int:
    """Return how many columns have to divide N so that rows of N columns are loaded in vectors of
    16 bytes.

    Longer fp32 rows are at the floor element by element: with vectors 1004 columns took 1.04 to
    1.07 times as long, and 100 columns 0.51 to 0.69 (docs/kernel-trials.md, "Forward"). There 16
    has to divide N, which Triton sees by itself.
    """
    return 16 if itemsize == 4 and N > _LONGEST_FP32_VECTORS else 16 // itemsize


def has_whole_vectors(N: int, dtype: torch.dtype | None) -> bool:
    """Return whether rows of N columns are loaded in vectors of 16 bytes. Without a dtype the
    answer holds for every dtype: 16 has to divide N."""
    return N % (16 if dtype is None else count_vector_columns(N, dtype.itemsize)) == 0


def find_line(
    table: tuple[Line, ...],
    N: int,
    dtype: torch.dtype | None = None,
    centred: bool | None = None,
    add: bool | None = None,
) -> Line:
    """Return the first line of a table that takes rows of N columns. ``dtype``, ``centred`` and
    ``add``: where its conditions need them.

    Raises: LookupError if there is none, which is a mistake in the table.
    """
    facts = (
        has_whole_vectors(N, dtype),
        N & (N - 1) == 0,
        dtype,
        dtype and dtype.itemsize,
        centred,
        add,
    )
    for line in table:
        wanted = line.aligned, line.power_of_two, line.dtype, line.itemsize, line.centred, line.add
        if (
            line.above < N <= line.longest
            and N % line.multiple == 0
            and all(w in (None, f) for w, f in zip(wanted, facts, strict=True))
        ):
            return line
    raise LookupError(
        f"no line of a launch table takes {N} columns, {dtype}; add one to"
        " course_lib/kernels/launch/device_classes.py"
    )


@dataclass(frozen=True, eq=False)
class DeviceClass:
    """The tables for devices whose memory has at least ``bandwidth``, and elements of ``itemsize``
    bytes (None: of any)."""

    name: str
    bandwidth: float  # GB/s per multiprocessor
    itemsize: int | None
    forward: tuple[Line, ...]  # the algorithm of a forward pass
    backward: tuple[Line, ...]  # the algorithm of a backward pass
    resident: tuple[Line, ...]
    two_tiles: tuple[Line, ...]
    persistent: tuple[Line, ...]
    ahead: tuple[Line, ...]  # where the persistent kernel loads mean and rstd
    two_tiles_backward: tuple[Line, ...]
    split: tuple[Line, ...]
    split_backward: tuple[Line, ...]
    # An x of at most so many bytes takes the algorithm for few rows instead of "split". That reads
    # x twice, the second time from L2.
    few_rows_bytes: int
    few_rows_backward_bytes: int
    # rows: the limit of the same, because a program by columns reads the rows one after another
    few_rows_backward: int

    def extend(self, **fields: Any) -> DeviceClass:
        """Return this class with other ``fields``; the lines of a table among them stand before the
        lines that this class has."""
        joined = {
            name: value + getattr(self, name) if isinstance(value, tuple) else value
            for name, value in fields.items()
        }
        return replace(self, **joined)


def make_lines(common: dict[str, Any], *lines: dict[str, Any]) -> tuple[Line, ...]:
    """Return lines with their columns and, where a line has not named a column, those that they
    have in common."""
    return tuple(Line(**(common | line)) for line in lines)


_FORWARD = "Forward"
_LONG_ROWS = "Long rows, split over programs"
_BACKWARD = "Backward"
_FAST_MEMORY = "Faster memory, and few rows: what an H200 changed"
_LINES = "Launch tables: lines, and what they were compared with"

H100 = DeviceClass(
    name="H100",
    bandwidth=0.0,  # every device: these lines serve those that have none of their own
    itemsize=None,
    forward=(
        *make_lines(dict(algorithm="few rows", above=RESIDENT_LIMIT, aligned=False, itemsize=2,
            source=_LINES),
            dict(centred=True, why="Loads of single elements do not hide the wait of an exchange. "
                                   "A second read of x costs less."),
            dict(add=True, why="The same holds for both norms with a residual."),
            dict(above=131072, why="RMSNorm without a residual gains only with longer rows.")),
        *make_lines(dict(algorithm="split", source=_LONG_ROWS),
            dict(above=RESIDENT_LIMIT, why="The registers of one program cannot hold the row."),
            dict(above=RESIDENT_LIMIT - 1, dtype=torch.float16, add=False,
                why="Alone, a row fills a multiprocessor: nothing overlaps."),
            dict(above=RESIDENT_LIMIT - 1, dtype=torch.bfloat16, add=False, centred=True,
                why="One program would spill with Triton 3.7.")),
        Line(algorithm="resident", power_of_two=True, why="No lane of one block is idle.",
            source=_FORWARD),
        *make_lines(dict(algorithm="two tiles", source=_LINES),
            dict(above=512, aligned=False, itemsize=2,
                why="Each idle lane of one block has a load of its own. Two tiles have fewer."),
            dict(above=512, aligned=False, centred=True, why="LayerNorm gains with any dtype."),
            dict(above=2048, why="A program has one row, and many lanes of one block are idle.")),
        Line(algorithm="resident",
            why="A program has several rows, and idle lanes are parts of vector loads.",
            source=_LINES),
    ),
    backward=(
        Line(algorithm="split", above=PERSISTENT_LIMIT, aligned=True,
            why="It reads x and dy once: 3 passes, not 5.", source=_BACKWARD),
        Line(algorithm="split", above=PERSISTENT_LIMIT, itemsize=2, centred=False,
            why="RMSNorm has registers for two programs.", source=_BACKWARD),
        Line(algorithm="columns", above=PERSISTENT_LIMIT,
            why="Loads of single elements do not hide a wait.", source=_FAST_MEMORY),
        *make_lines(dict(algorithm="two tiles", aligned=False, source=_BACKWARD),
            dict(above=2048, longest=3072,
                why="A quarter of one block's lanes or more would be idle, and each has a load of "
                    "its own."),
            dict(above=4096, longest=6144, why="The same holds in the next block.")),
        Line(algorithm="persistent", why="One block holds the row.", source=_BACKWARD),
    ),
    resident=make_lines(dict(source=_FORWARD),
        dict(longest=128, rows=32, num_warps=4,
            why="All lines: about 32 elements per thread, and at least 4 KB in flight per "
                "program."),
        dict(longest=256, rows=16, num_warps=4), dict(longest=512, rows=8, num_warps=4),
        dict(longest=1024, rows=4, num_warps=4), dict(longest=2048, rows=2, num_warps=4),
        dict(longest=4096, num_warps=8),
        *(dict(longest=longest, num_warps=16, registers=registers, aligned=True, centred=True,
            add=False, itemsize=2,
            why="Room for three programs, and for two. Triton 3.7 and newer take more registers "
                "per thread.")
          for longest, registers in ((8192, 40), (16384, 64))),
        dict(longest=16384, num_warps=16),
        dict(longest=32768, num_warps=32)),
    two_tiles=make_lines(dict(source=_FORWARD),
        *(dict(longest=longest, num_warps=num_warps, aligned=False, registers=128,
            why="Rows that are not aligned: up to 48 elements per thread, and room for four "
                "programs of 4 warps.")
          for longest, num_warps in ((3072, 2), (6144, 4), (12288, 8), (16384, 16))),
        dict(longest=8192, num_warps=4, why="Aligned rows: about 32 elements per thread."),
        dict(longest=16384, num_warps=8),
        dict(longest=32768, num_warps=32)),
    persistent=(
        *make_lines(dict(aligned=True, stages=3, source=_BACKWARD),
            dict(longest=128, rows=8, num_warps=2, programs=4, registers=255,
                why="All lines: the best with 4 to 32 elements of x per thread."),
            dict(longest=256, rows=4, num_warps=2, programs=4, registers=255,
                why="No limit, but without one the compiler takes fewer."),
            dict(longest=512, rows=4, num_warps=4, programs=3),
            dict(longest=1024, rows=2, num_warps=4, programs=3),
            dict(longest=2048, num_warps=8, programs=3), dict(longest=4096, rows=2, num_warps=8),
            dict(longest=6144, num_warps=8,
                why="A block with idle lanes is faster with fewer warps."),
            dict(longest=8192, num_warps=16)),
        *make_lines(dict(source=_BACKWARD),
            dict(longest=128, rows=8, num_warps=4, programs=6,
                why="One stage: only loads of 16 bytes can be in flight for several tiles."),
            dict(longest=256, rows=4, num_warps=4, programs=6),
            dict(longest=512, rows=2, num_warps=4, programs=6),
            dict(longest=1024, rows=2, num_warps=4, programs=4),
            dict(longest=2048, num_warps=8, programs=3),
            dict(longest=4096, num_warps=8, programs=2), dict(longest=8192, num_warps=8)),
    ),
    ahead=(
        *make_lines(dict(aligned=True, source=_BACKWARD),
            dict(longest=256, why="A program has a row per warp or more, and little to wait for."),
            dict(above=2048, longest=4096, power_of_two=True, centred=True, ahead="store"),
            dict(above=1024, itemsize=4, centred=True, ahead="last"),
            dict(centred=True, why="Elsewhere the compiler then reads x and dy of a tile one "
                                   "after another."),
            dict(above=1024, longest=2048, power_of_two=True, ahead="store",
                why="bf16 loses 0.13 with the load at the end."),
            dict(power_of_two=True, ahead="last"), dict(above=1024, ahead="store")),
        Line(source=_BACKWARD),
    ),
    two_tiles_backward=(
        *make_lines(dict(aligned=False, programs=2, source=_BACKWARD),
            dict(longest=4096, num_warps=4), dict(longest=8192, num_warps=8),
            dict(longest=12288, num_warps=16)),
        *make_lines(dict(stages=3, source=_FAST_MEMORY),
            dict(longest=4096, num_warps=4, programs=3),
            dict(longest=8192, num_warps=4, programs=2),
            dict(longest=10240, num_warps=8), dict(longest=12288, num_warps=16)),
    ),
    # The last line of each group is for rows of more than 64 chunks. All programs of a row have to
    # run at once, also on a GPU with few multiprocessors, so the chunks are as long as registers
    # allow.
    split=(
        *make_lines(dict(programs=4, source=_LINES),
            dict(longest=2049, num_warps=1,
                why="Short rows can be shared as well, although no table of algorithms asks for "
                    "it."),
            dict(longest=4096, num_warps=2)),
        *make_lines(dict(aligned=False, num_warps=4, source=_LONG_ROWS),
            dict(longest=131072, block=2048, programs=2, add=True,
                why="The addresses of single elements take registers."),
            dict(longest=131072, block=2048, programs=4, itemsize=2, centred=False,
                why="RMSNorm has no mean, and no b to load for each row."),
            dict(longest=131072, block=2048, programs=3),
            dict(block=8192, num_warps=16)),
        *make_lines(dict(itemsize=2, add=True, num_warps=4, source=_LONG_ROWS),
            dict(longest=262144, block=4096, programs=3, unmasked=True,
                why="The residual takes the registers of a fourth program."),
            dict(block=8192, num_warps=16)),
        *make_lines(dict(dtype=torch.bfloat16, num_warps=4, source=_LINES),
            dict(longest=131072, block=4096, programs=4, centred=False, power_of_two=True,
                why="Without mean and mask four have room."),
            dict(longest=131072, block=4096, programs=3,
                why="Conversions of bf16 take the registers of a fourth program."),
            dict(longest=262144, block=2048, programs=5, why="Longer chunks spill."),
            dict(block=8192, num_warps=16)),
        *make_lines(dict(dtype=torch.float16, num_warps=4, source=_LONG_ROWS),
            dict(longest=131072, block=4096, programs=4, unmasked=True,
                why="Registers hold three rows of a chunk in fp16 and one in fp32."),
            dict(longest=262144, block=4096, programs=4, unmasked=True, multiple=4096),
            dict(longest=262144, block=4096, programs=3,
                why="The column mask takes the registers of a fourth program."),
            dict(block=16384, num_warps=16)),
        *make_lines(dict(num_warps=4, source=_LONG_ROWS),
            dict(longest=131072, block=2048, programs=4,
                why="Elements are twice as large, so a chunk has half as many."),
            dict(block=8192, num_warps=16)),
    ),
    split_backward=make_lines(dict(num_warps=4, programs=2, source=_BACKWARD),
        dict(longest=2049, num_warps=1, why="As forward."),
        dict(longest=4096, num_warps=2),
        dict(block=2048, aligned=False, itemsize=2,
            why="The addresses of single elements take registers."),
        dict(block=2048, num_warps=8, aligned=False, why="Elements are twice as large."),
        dict(block=4096, itemsize=2, why="Registers hold three rows of x and dy, and dw and db."),
        dict(block=2048, why="Elements are twice as large, so a chunk has half as many.")),
    few_rows_bytes=4 << 20,
    few_rows_backward_bytes=2 << 20,
    few_rows_backward=32,
)  # fmt: skip

# By Little's law a multiprocessor with faster memory needs more bytes in flight, and so more
# programs, of half the size.
H200 = H100.extend(
    name="H200",
    bandwidth=30.0,
    itemsize=2,
    forward=make_lines(
        dict(algorithm="split", longest=32767, aligned=True, power_of_two=False,
            dtype=torch.float16, add=False, source=_FAST_MEMORY),
        dict(above=12287, centred=True,
            why="The programs that share a row are smaller than the one that would hold it."),
        dict(above=20480, centred=False, why="RMSNorm gains only with longer rows.")),
    backward=make_lines(dict(algorithm="two tiles", aligned=True, source=_LINES),
        dict(above=2048, longest=3072,
            why="The second tile is short, so a program is smaller than with one block."),
        dict(above=4096, longest=5120, why="The same holds in the next block."),
        dict(above=8192, longest=10240,
            why="Otherwise programs would share the row and wait for each other."),
        dict(above=8192, longest=TWO_TILES_LIMIT, centred=False,
            why="RMSNorm has no db, so its registers hold a longer second tile.")),
    resident=make_lines(dict(aligned=True, source=_LINES),
        dict(longest=128, rows=16, num_warps=2),
        dict(longest=256, rows=4, num_warps=1, centred=True, add=False,
            why="One warp waits for no other at the reductions."),
        dict(longest=256, rows=8, num_warps=2), dict(longest=512, rows=4, num_warps=2),
        dict(longest=1024, rows=2, num_warps=1), dict(longest=2048, num_warps=2),
        dict(longest=4096, rows=2, num_warps=8),
        dict(longest=8192, num_warps=8, centred=True,
            why="Fewer warps wait less at LayerNorm's two reductions.")),
    two_tiles=(Line(above=16384, longest=RESIDENT_LIMIT, num_warps=16, source=_LINES),),
    persistent=make_lines(dict(aligned=True, num_warps=2, stages=3, source=_FAST_MEMORY),
        dict(longest=64, rows=16, programs=6), dict(longest=128, rows=16, programs=4),
        dict(longest=256, rows=8, programs=4), dict(longest=512, rows=2, programs=6),
        dict(longest=1024, rows=2, programs=4), dict(longest=2048, num_warps=4, programs=3)),
    ahead=make_lines(dict(source=_FAST_MEMORY),
        dict(longest=2048, why="Its programs are others, and were not measured with it.")),
    # Two warps merge up to 64 chunks, one per lane. With more chunks they would add them in another
    # order than the warps of few_rows.py, and a row would get other bits in a small batch.
    split=make_lines(dict(aligned=True, add=False, num_warps=4, source=_FAST_MEMORY),
        dict(above=4096, longest=131072, block=2048, num_warps=2, programs=8, dtype=torch.float16,
            unmasked=True),
        dict(above=131072, longest=262144, block=4096, programs=3, dtype=torch.bfloat16,
            centred=True, multiple=4096, unmasked=True),
        dict(above=131072, longest=262144, block=2048, programs=6, dtype=torch.bfloat16,
            centred=False, multiple=2048)),
)  # fmt: skip

DEVICE_CLASSES = (H200, H100)  # a device gets the first one whose bandwidth it has
