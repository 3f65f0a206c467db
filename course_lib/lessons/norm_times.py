"""Times of the forward passes for a lesson: measured on this machine's GPU if it has one, else the
stored ones of an H100."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from course_lib.bench import forward, measurement
from course_lib.bench.measurement import Measurement
from course_lib.compiler import Pointer, compile_report
from course_lib.kernels.launch import tables
from course_lib.kernels.layer_norm import layer_norm_resident_kernel


@dataclass(frozen=True)
class NormTimes:
    """Measured times. ``label`` names the device and the date. The matrices are fp16 with M N =
    2^25 elements: N = 8192 means M = 4096."""

    measured: Measurement

    @property
    def label(self) -> str:
        return self.measured.label()

    @property
    def columns(self) -> list[int]:
        return sorted({row["N"] for row in self.measured.rows})

    def us(self, op: str, provider: str, N: int) -> float:
        """Return the microseconds of one call.

        Args:
            op: "layer_norm", "rms_norm" or "add_rms_norm".
            provider: "resident", "blocked", "torch" or "unfused".

        Raises: KeyError if there is no such measurement.
        """
        return self._find(op, provider, N)["us"]

    def copy_us(self, N: int) -> float:
        """Return the microseconds of a copy of the same matrix, from the same run."""
        resident = self._find("rms_norm", "resident", N)
        return resident["us"] / resident["over_floor"]

    def over_floor(self, op: str, provider: str, N: int) -> float:
        """Return the time divided by that of an elementwise pass over as many bytes; that pass is a
        copy for an op that reads x and writes y."""
        return self._find(op, provider, N)["over_floor"]

    def _find(self, op: str, provider: str, N: int) -> dict:
        rows = {(row["op"], row["provider"], row["N"]): row for row in self.measured.rows}
        return rows[op, provider, N]


def norm_times(*columns: int) -> NormTimes:
    """Return times for these row lengths, measured now on this machine's GPU, or the stored ones of
    an H100.

    Raises: CourseError if the stored times cannot be read.
    """
    return NormTimes(forward.latest(columns))


def stored_norm_times() -> NormTimes:
    """Return the stored times of the H100, on every machine. A lesson's text refers to these.

    Raises: CourseError if the stored times cannot be read.
    """
    return NormTimes(measurement.stored(forward.KIND))


@cache
def count_loads_per_row(N: int) -> int:
    """Count the load instructions that all threads of a row execute in the course's resident
    LayerNorm: fp16, packed rows, compiled for an H100.

    The launch is the one of the course's tables, which gives one row to a program.
    """
    half, single, launch = Pointer("fp16"), Pointer("fp32"), tables.resident(N)
    arguments = [half, half, half, half, single, single, N, 1, N, 1, 2**25 // N, N, 1e-5]
    constants = {"HAS_W": True, "HAS_B": True, "ROWS": 1, "BLOCK": launch.block}
    report = compile_report(
        layer_norm_resident_kernel, arguments, constants, num_warps=launch.num_warps, arch="sm_90"
    )
    return sum((report.loads or {}).values()) * 32 * launch.num_warps
