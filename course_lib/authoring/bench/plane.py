"""Measure the course's kernels over the plane of M and N, to find cliffs: shapes that cost much
more than neighbouring shapes.

Each row has op (LayerNorm and RMSNorm, forward and backward), provider ("ours"), M, N, dtype, us
(device time of one call), gbps and over_floor (time over that of the fastest elementwise pass over
as many bytes, same run). The row lengths are powers of two, numbers next to them, primes and round
numbers; the row counts go from one to more than any device has multiprocessors.
"""

from __future__ import annotations

import statistics

from course_lib.authoring.bench import run_as_script
from course_lib.bench import tables
from course_lib.bench.grid import Grid, Sweep
from course_lib.bench.measurement import Measurement

KIND = "plane"
COLUMNS = (
    *(1, 3, 17, 64, 257, 1000, 1024, 2047, 4096, 4099, 8192, 8200, 12289, 16384, 32768, 32771),
    *(65536, 100003, 262144, 262147, 500001, 1000003, 2**20, 2**21),
)
ROWS = (1, 3, 16, 128, 2048, 65536)
ELEMENTS = 2**27  # elements of x at most: 256 MB in fp16
PROVIDERS = ("ours",)
CLIFF = 1.5  # a cliff costs more than this many times its neighbouring shapes
_OPERATIONS = ("layer_norm", "rms_norm", "layer_norm_backward", "rms_norm_backward")
GRID = Grid(
    KIND,
    COLUMNS,
    PROVIDERS,
    tuple(
        Sweep(_OPERATIONS, rows=M, columns=tuple(N for N in COLUMNS if M * N <= ELEMENTS))
        for M in ROWS
    ),
)
measure = GRID.measure


def find_cliffs(result: Measurement) -> list[tuple[dict, float]]:
    """Find the rows whose shape costs more than CLIFF times its neighbours, with the ratio, worst
    first.

    A shape's cost is its time over the floor of its own size, so that size alone does not make a
    shape expensive. Its neighbours are the next row lengths at its row count and the next row
    counts at its row length; the ratio is taken to the median of their costs.
    """
    costs = {(row["op"], row["M"], row["N"]): row["over_floor"] for row in result.rows}
    rows, columns = (sorted({row[axis] for row in result.rows}) for axis in ("M", "N"))
    cliffs = []
    for row in result.rows:
        op, M, N = row["op"], row["M"], row["N"]
        beside = [(op, M, n) for n in _next_to(columns, N)] + [
            (op, m, N) for m in _next_to(rows, M)
        ]
        neighbour_costs = [costs[shape] for shape in beside if shape in costs]
        if neighbour_costs and row["over_floor"] > CLIFF * statistics.median(neighbour_costs):
            cliffs.append((row, row["over_floor"] / statistics.median(neighbour_costs)))
    return sorted(cliffs, key=lambda entry: -entry[1])


def _next_to(values: list[int], value: int) -> list[int]:
    at = values.index(value)
    return values[max(0, at - 1) : at] + values[at + 1 : at + 2]


def table(result: Measurement, width: int = tables.WIDTH) -> str:
    """Write a table with the most expensive row count of each row length, and list every cliff."""
    worst: dict[tuple[str, int], dict] = {}
    for row in result.rows:
        key = row["op"], row["N"]
        worst[key] = max(worst.get(key, row), row, key=lambda r: r["over_floor"])
    lines = tables.cells(
        (((row["op"],), row["N"], f"{row['over_floor']:.2f}") for row in worst.values()),
        (),
        "time over floor of the dearest row count, N =",
        width,
    )
    cliffs = [
        f"{row['op']} {row['M']} x {row['N']}: {row['over_floor']:.2f} of the floor, {times:.2f}"
        " times the shapes beside it"
        for row, times in find_cliffs(result)
    ]
    return "\n".join(
        [result.label(), *lines, "", count_cliffs(result), *cliffs, *tables.notes(result, width)]
    )


def count_cliffs(result: Measurement) -> str:
    """Write how many shapes were timed, and how many of them are cliffs."""
    return (
        f"{len(result.rows)} shapes, {len(find_cliffs(result))} cost over {CLIFF} times the shapes"
        " beside them"
    )


if __name__ == "__main__":
    run_as_script(KIND, measure, table)
