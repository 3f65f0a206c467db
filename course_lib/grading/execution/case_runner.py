"""The base class of the objects that run cases, and the names of what a job gets and leaves."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

from course_lib.grading.cases.plan import CaseLaunch
from course_lib.grading.submission.source import Unreadable
from course_lib.launching.faults import Misuse

CODE = "kernels.py"
IMPORT_ERROR = "import.error"
# names the kernel under test of each case; the learner's tests must not read it
KERNEL_NAMES = "kernels.json"


def name_input(number: int) -> str:
    """Return the name of the memory of a case before it runs."""
    return f"{number:02}.in"


def name_output(number: int) -> str:
    """Return the name of the memory of a case afterwards."""
    return f"{number:02}.out"


def name_error(number: int) -> str:
    """Return the name of the exception or the fault of a case."""
    return f"{number:02}.error"


def name_counts(number: int) -> str:
    """Return the name of what a case counted."""
    return f"{number:02}.counts"


class CaseRunner:
    """Runs the cases of one kind of exercise. ``misuse`` is that of the last case that finished.
    ``refusal`` is set when a case does what the exercise refuses; then no further case is run."""

    misuse: Misuse | None = None
    counts: dict[str, int] | None = None  # of the last case that finished, if its plan is counted
    refusal: Unreadable | None = None

    def attend(self, confine: Callable[[], None]) -> None:
        """Start the process that runs in parallel with the submission, if there is one.

        Nothing is confined yet; ``confine`` confines the process that calls it.
        """

    def open_device(self) -> None:
        """Open the device that a submission may use, after the process is confined and before it
        reads the job."""

    def begin(
        self,
        module: types.ModuleType,
        code: types.CodeType,
        cases: list[CaseLaunch],
        rules: dict[str, Any] | None,
    ) -> None:
        """Prepare the cases of a job. ``module`` is the file that was imported, ``code`` its code,
        ``rules`` those of its :class:`Kernels`."""

    def run(self, function: Any, case: CaseLaunch, data: bytes) -> bytes:
        """Run one case on the bytes of its memory. Returns the bytes of the same memory
        afterwards."""
        raise NotImplementedError

    def lost(self, error: BaseException) -> bool:
        """Return True if no further case can be run after ``error``."""
        return not isinstance(error, Exception)


def require_mode(mode: str) -> None:
    """Raise RuntimeError unless this process is in ``mode``: "cpu", with the mended interpreter, or
    "gpu"."""
    import course_lib

    chosen = course_lib.MODE
    if chosen != mode:
        raise RuntimeError(f"this process is in {chosen} mode")
