"""The forward passes' times as a page asks for them: measured here where there is a GPU, else those of the stored H100."""

from __future__ import annotations

from dataclasses import dataclass

from course_lib.bench import forward, measurement
from course_lib.bench.measurement import Measurement


@dataclass(frozen=True)
class NormTimes:
    """``label`` says which device, and when. The matrices are fp16, M N = 2^25 elements: 8192 columns are 4096 rows."""

    measured: Measurement

    @property
    def label(self) -> str:
        return self.measured.label()

    @property
    def columns(self) -> list[int]:
        return sorted({row["N"] for row in self.measured.rows})

    def us(self, op: str, provider: str, N: int) -> float:
        """Microseconds of one call. op: "layer_norm", "rms_norm", "add_rms_norm"; provider: "resident", "blocked", "torch", "unfused".

        Raises: KeyError if that was not measured.
        """
        return self._find(op, provider, N)["us"]

    def copy_us(self, N: int) -> float:
        """Microseconds of a copy of the same matrix, from the same run."""
        resident = self._find("rms_norm", "resident", N)
        return resident["us"] / resident["over_floor"]

    def over_floor(self, op: str, provider: str, N: int) -> float:
        """Its time over that of an elementwise pass that moves as many bytes: of a copy, where x is read and y written."""
        return self._find(op, provider, N)["over_floor"]

    def _find(self, op: str, provider: str, N: int) -> dict:
        rows = {(row["op"], row["provider"], row["N"]): row for row in self.measured.rows}
        return rows[op, provider, N]


def norm_times(*columns: int) -> NormTimes:
    """Times for these row lengths: of this machine's GPU, measured now, or of the stored H100.

    Raises: CourseError if the stored ones cannot be read.
    """
    return NormTimes(forward.latest(columns).only(columns))


def stored_norm_times() -> NormTimes:
    """The stored H100's, on every machine: what a lesson's sentences speak of.

    Raises: CourseError if they cannot be read.
    """
    return NormTimes(measurement.stored(forward.KIND))
