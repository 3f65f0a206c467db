"""Measure the course's kernels beside every peer that is installed, on a short grid, in each dtype.

Each row has op (LayerNorm and RMSNorm, forward and backward, and an addition with RMSNorm for few
rows, such as "add_rms_norm M=64"), provider ("ours" or one of PEERS), M, N, dtype, us (device time
of one call), gbps and over_floor (time over that of the fastest elementwise pass over as many
bytes, same run; for few rows most of that pass is the launch).
"""

from __future__ import annotations

import sys
from functools import partial

from course_lib.authoring.bench import run_as_script
from course_lib.bench import measurement
from course_lib.bench.forward import ELEMENTS
from course_lib.bench.grid import Grid, Sweep, of_dtype
from course_lib.bench.operations import DTYPES
from course_lib.bench.providers import PEERS
from course_lib.bench.tables import over_floor

KIND = "field"
COLUMNS = (256, 1024, 4096, 8192, 16384, 65536)
ROWS = (1, 8, 64, 512)  # rows of a language model that generates text: one per sequence
GRID = Grid(
    KIND,
    COLUMNS,
    ("ours", *PEERS),
    (
        Sweep(("layer_norm", "rms_norm", "layer_norm_backward", "rms_norm_backward"), ELEMENTS),
        *(Sweep(("add_rms_norm",), rows=M, columns=(4096, 8192), tag=f" M={M}") for M in ROWS),
    ),
)
measure, table = GRID.measure, over_floor

if __name__ == "__main__":
    if sys.argv[1:] == ["--stored"]:
        for result in measurement.read_all([KIND]):
            print(f"{result.kind}: {table(result)}\n")
    else:
        for dtype in DTYPES:
            run_as_script(of_dtype(KIND, dtype), partial(measure, dtype=dtype), table)
