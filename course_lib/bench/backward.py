"""Backward passes alone: the designs of lessons 08 and 09, what the course chooses, PyTorch, other libraries, the floor.

    python -m course_lib.bench.backward       measures on this machine's GPU, saves, prints a table

Each row has op ("layer_norm_backward", "rms_norm_backward"), provider (one of PROVIDERS), M, N, dtype, us (device time of one
call: dx, dw and db), gbps (the least bytes a backward pass can move, 3 M N elements, over that time) and over_floor (time over
the fastest elementwise pass that reads two matrices and writes one, same run). "ours" is what the course's functions choose.
"""

from __future__ import annotations

from collections.abc import Iterable

import course_lib
from course_lib.bench import grid, measurement
from course_lib.bench.forward import ALL_COLUMNS, COLUMNS
from course_lib.bench.grid import Shape
from course_lib.bench.measurement import Measurement
from course_lib.bench.operations import OPERATIONS
from course_lib.bench.providers import PEERS
from course_lib.bench.tables import over_floor as table

KIND = "backward"
DESIGNS = ("persistent", "split", "two-stage", "locked", "columns")
PROVIDERS = ("ours", *DESIGNS, *PEERS)
_LESSONS = (*DESIGNS, "torch")
_OPS = tuple(OPERATIONS[name] for name in ("layer_norm_backward", "rms_norm_backward"))
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
