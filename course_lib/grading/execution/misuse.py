"""The misuse that a case can show besides its outputs, and the base class of the objects that run cases."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

from course_lib.grading.cases.raised import FaultKind
from course_lib.grading.submission.source import Unreadable

# the file of a job that names the kernel under test of each case; the learner's tests must not read it
KERNEL_NAMES = "kernels.json"


class Misuse(Exception):
    """A fault of a case that its outputs may not show. ``tensor`` is the name of the tensor, or "" if there is none.

    A minor fault is usually not raised: the case goes on, and its values are judged as well.
    """

    def __init__(self, kind: FaultKind, message: str, tensor: str = "", line: int | None = None):
        super().__init__(message)
        self.kind, self.tensor, self.row, self.line = kind, tensor, None, line


def find_worst(*found: Misuse | None) -> Misuse | None:
    """Return the one whose kind comes first in :class:`FaultKind`."""
    order = list(FaultKind)
    return min((misuse for misuse in found if misuse is not None), key=lambda m: order.index(m.kind), default=None)


def describe_line(line: int | None) -> str:
    return "" if line is None else f" at line {line}"


class CaseRunner:
    """Runs the cases of one kind of exercise. ``misuse`` is that of the last case that finished. ``refusal`` is set when a case
    does what the exercise refuses; then no further case is run."""

    misuse: Misuse | None = None
    refusal: Unreadable | None = None

    def attend(self, confine: Callable[[], None]) -> None:
        """Start the process that runs in parallel with the submission, if there is one.

        Nothing is confined yet; ``confine`` confines the process that calls it.
        """

    def open_device(self) -> None:
        """Open the device that a submission may use, after the process is confined and before it reads the job."""

    def begin(self, module: types.ModuleType, code: types.CodeType, job: dict[str, Any]) -> None:
        """Prepare the cases of a job. ``module`` is the file that was imported, ``code`` its code."""

    def run(self, function: Any, case: dict[str, Any], data: bytes) -> bytes:
        """Run one case on the bytes of its buffers. Returns the bytes of the same buffers afterwards."""
        raise NotImplementedError

    def lost(self, error: BaseException) -> bool:
        """Return True if no further case can be run after ``error``."""
        return not isinstance(error, Exception)


def require_mode(mode: str) -> None:
    """Raise RuntimeError unless this process is in ``mode``: "cpu", with the mended interpreter, or "gpu"."""
    import course_lib

    chosen = course_lib.MODE
    if chosen != mode:
        raise RuntimeError(f"this process is in {chosen} mode")
