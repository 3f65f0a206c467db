"""Measure backward passes: the designs of lessons 11 and 12, the course's choice, PyTorch, other
libraries, the floor.

Each row has op ("layer_norm_backward", "rms_norm_backward"), provider (one of PROVIDERS), M, N,
dtype, us (device time of one call: dx, dw and db), gbps (the least bytes that a backward pass can
move, 3 M N elements, over that time) and over_floor (time over that of the fastest elementwise pass
that reads two matrices and writes one, same run). "ours" is the course's choice.
"""

from __future__ import annotations

from course_lib.bench.forward import ALL_COLUMNS, COLUMNS, ELEMENTS
from course_lib.bench.grid import Grid, Sweep
from course_lib.bench.providers import PEERS
from course_lib.bench.tables import over_floor

KIND = "backward"
DESIGNS = ("persistent", "split", "two-stage", "locked", "columns")
PROVIDERS = ("ours", *DESIGNS, *PEERS)
GRID = Grid(
    KIND,
    ALL_COLUMNS,
    PROVIDERS,
    (Sweep(("layer_norm_backward", "rms_norm_backward"), ELEMENTS),),
    lesson_columns=COLUMNS,
    lesson_providers=(*DESIGNS, "torch"),
)
measure, latest, table = GRID.measure, GRID.latest, over_floor
