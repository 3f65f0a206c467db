"""Measure forward passes, with and without a residual addition: the course's kernels, PyTorch,
other libraries, the floor.

Each row has op ("layer_norm", "rms_norm", "add_rms_norm", "add_layer_norm"), provider (one of
PROVIDERS), M, N, dtype, us (device time of one call), gbps (the least bytes that the operation can
move, over that time) and over_floor (time over that of the fastest elementwise pass over as many
bytes, same run). "ours" is the choice of the course's functions; "blocked" and "resident" are the
designs of lessons 07 and 09; "unfused" does the addition in a separate kernel.
"""

from __future__ import annotations

from course_lib.bench.grid import Grid, Sweep
from course_lib.bench.providers import PEERS
from course_lib.bench.tables import over_floor

KIND = "forward"
COLUMNS = (256, 1024, 2048, 4096, 8192, 16384, 32768)  # row lengths that the lessons show
# rows that do not begin at multiples of 16 bytes, or are far from a power of two
AWKWARD = (4095, 4097, 5120)
ALL_COLUMNS = tuple(sorted(COLUMNS + AWKWARD))
ELEMENTS = 2**25  # elements of x: 64 MB in fp16, more than the L2 cache of an H100
PROVIDERS = ("ours", "blocked", "resident", "unfused", *PEERS)
GRID = Grid(
    KIND,
    ALL_COLUMNS,
    PROVIDERS,
    (Sweep(("layer_norm", "rms_norm", "add_rms_norm", "add_layer_norm"), ELEMENTS),),
    lesson_columns=COLUMNS,
    lesson_providers=("blocked", "resident", "torch", "unfused"),
)
measure, latest, table = GRID.measure, GRID.latest, over_floor
