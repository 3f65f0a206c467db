"""Forward passes, with and without the residual addition in front: the course's kernels, PyTorch, other libraries, the floor.

    python -m course_lib.bench.forward        measures on this machine's GPU, saves, prints a table

Each row has op ("layer_norm", "rms_norm", "add_rms_norm", "add_layer_norm"), provider (one of PROVIDERS), M, N, dtype, us
(device time of one call), gbps (the least bytes the operation can move, over that time) and over_floor (time over the fastest
elementwise pass over as many bytes, same run). "ours" is what the course's functions choose; "blocked" and "resident" are the
designs of lessons 06 and 07, and "unfused" is the addition in a kernel of its own.
"""

from __future__ import annotations

from collections.abc import Iterable

import course_lib
from course_lib.bench import grid, measurement
from course_lib.bench.grid import Shape
from course_lib.bench.measurement import Measurement
from course_lib.bench.operations import OPERATIONS
from course_lib.bench.providers import PEERS
from course_lib.bench.tables import over_floor as table

KIND = "forward"
COLUMNS = (256, 1024, 2048, 4096, 8192, 16384, 32768)  # what the lessons show
AWKWARD = (4095, 4097, 5120)  # rows that do not start at 16 bytes, or are far from a power of two
ALL_COLUMNS = tuple(sorted(COLUMNS + AWKWARD))
PROVIDERS = ("ours", "blocked", "resident", "unfused", *PEERS)
_LESSONS = ("blocked", "resident", "torch", "unfused")
_OPS = tuple(OPERATIONS[name] for name in ("layer_norm", "rms_norm", "add_rms_norm", "add_layer_norm"))
_ELEMENTS = 2**25  # of x: 64 MB in fp16, more than the L2 cache of an H100


def latest(columns: tuple[int, ...] = COLUMNS) -> Measurement:
    """What lessons show: their own designs and PyTorch, measured now where there is a GPU; elsewhere the newest stored measurement.

    Raises: CourseError if nothing is stored.
    """
    if course_lib.MODE == "gpu":
        return measure(columns, providers=_LESSONS)
    return measurement.stored(KIND).only(COLUMNS, _LESSONS)


def measure(columns: Iterable[int] = ALL_COLUMNS, dtype: str = "fp16", providers: Iterable[str] | None = None) -> Measurement:
    """Time every provider at every row length, M x N = 2^25 elements.

    Args:
        columns: the row lengths.
        dtype: "fp16", "bf16" or "fp32".
        providers: names out of PROVIDERS; None is all of them.

    Raises: CourseError without a GPU, for an unknown dtype or provider.
    """
    columns = tuple(columns)
    result, timed = grid.begin(KIND, dtype, providers, PROVIDERS, whole=set(columns) >= set(ALL_COLUMNS))
    for N in columns:
        grid.measure_shape(result, _OPS, Shape(max(1, _ELEMENTS // N), N), dtype, timed)
    return result


if __name__ == "__main__":
    measurement.as_script(measure, table)
