"""Rows too long for one program, or too few to fill the device: the course's designs for them, PyTorch, other libraries.

    python -m course_lib.bench.long_rows       measures on this machine's GPU, saves, prints a table

Each row has op (such as "layer_norm M=many", "rms_norm_backward M=many", "layer_norm M=16"), provider (one of PROVIDERS), M, N,
dtype, us (device time of one call), gbps (the least bytes the operation can move, over that time) and over_floor (time over the
fastest elementwise pass over as many bytes, same run; for a megabyte that is mostly the launch).
"""

from __future__ import annotations

from collections.abc import Iterable

from course_lib.bench import grid, measurement
from course_lib.bench.grid import Shape
from course_lib.bench.measurement import Measurement
from course_lib.bench.operations import OPERATIONS
from course_lib.bench.providers import PEERS
from course_lib.bench.tables import over_floor as table

KIND = "long_rows"
COLUMNS = (65536, 131072, 262144)
FEW = {16: (262144,), 1: (262144,)}  # so few rows that one program a row would leave the device idle
PROVIDERS = ("ours", "split", "few_rows", "blocked", "columns", "unfused", *PEERS)
_ELEMENTS = 2**26
_FEW_OPS = tuple(OPERATIONS[name] for name in ("layer_norm", "rms_norm"))


def measure(columns: Iterable[int] = COLUMNS, dtype: str = "fp16", providers: Iterable[str] | None = None) -> Measurement:
    """Time every provider at every shape: M x N = 2^26 elements, forward and backward, and 16 rows and 1 row forward.

    Args:
        columns: the row lengths.
        dtype: "fp16", "bf16" or "fp32".
        providers: names out of PROVIDERS; None is all of them.

    Raises: CourseError without a GPU, for an unknown dtype or provider.
    """
    columns = tuple(columns)
    result, timed = grid.begin(KIND, dtype, providers, PROVIDERS, whole=set(columns) >= set(COLUMNS))
    for N in columns:
        grid.measure_shape(result, tuple(OPERATIONS.values()), Shape(max(1, _ELEMENTS // N), N, " M=many"), dtype, timed)
    for M, lengths in FEW.items():
        for N in lengths:
            if N in columns:
                grid.measure_shape(result, _FEW_OPS, Shape(M, N, f" M={M}"), dtype, timed)
    return result


if __name__ == "__main__":
    measurement.as_script(measure, table)
