"""Measure rows that are too long for one program, or too few to fill the device: the course's
designs, PyTorch, other libraries.

Each row has op (such as "layer_norm M=many", "rms_norm_backward M=many", "layer_norm M=16"),
provider (one of PROVIDERS), M, N, dtype, us (device time of one call), gbps (the least bytes that
the operation can move, over that time) and over_floor (time over that of the fastest elementwise
pass over as many bytes, same run; for a megabyte most of that pass is the launch).
"""

from __future__ import annotations

from course_lib.bench.grid import Grid, Sweep
from course_lib.bench.operations import OPERATIONS
from course_lib.bench.providers import PEERS
from course_lib.bench.tables import over_floor

KIND = "long_rows"
COLUMNS = (65536, 131072, 262144)
PROVIDERS = ("ours", "split", "few_rows", "blocked", "columns", "unfused", *PEERS)
_FEW_OPERATIONS = ("layer_norm", "rms_norm")
GRID = Grid(
    KIND,
    COLUMNS,
    PROVIDERS,
    (
        Sweep(tuple(OPERATIONS), elements=2**26, tag=" M=many"),
        # so few rows that one program per row would leave most of the device idle
        Sweep(_FEW_OPERATIONS, rows=16, columns=(262144,), tag=" M=16"),
        Sweep(_FEW_OPERATIONS, rows=1, columns=(262144,), tag=" M=1"),
    ),
)
measure, table = GRID.measure, over_floor
