"""The helper process that compiles (``server.py``), from the side that asks: started by the first report, kept for the next."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from course_lib.base.errors import CourseError
from course_lib.base.worker import Launch, Worker, WorkerDied, WorkerFailure, WorkerTimeout

_SERVER = Path(__file__).with_name("server.py")
_START_SECONDS = 60.0
_LOG_CHARACTERS = 2000


class CompilerCrash(Exception):
    """The helper did not survive the job; ``cause`` is "crash" or "timeout"."""

    def __init__(self, cause: str, sentence: str):
        super().__init__(sentence)
        self.cause = cause


def ask(job: dict[str, Any], limit: float) -> dict[str, Any]:
    """The helper's answer to a job. ``limit``: seconds for the job alone.

    Raises: CompilerCrash; CourseError if the helper does not start.
    """
    warm()
    try:
        return json.loads(worker.ask(json.dumps(job), limit))
    except WorkerTimeout:
        raise CompilerCrash(
            "timeout",
            f"compiling takes longer than {limit:g} seconds, and was ended; does `tl.static_range` unroll too much, "
            "or BLOCK hold too many elements",
        ) from None
    except WorkerDied as died:
        how = _describe_end(died.code)
        raise CompilerCrash(
            "crash", f"the compiler itself crashed on this kernel ({how}); change the lines you wrote last"
        ) from None


def warm() -> None:
    """Start the helper process now, so that the first report need not wait for it.

    Raises: CourseError if it does not start.
    """
    try:
        worker.start()
    except (WorkerFailure, OSError) as failed:
        how, printed = str(failed), ""
        if isinstance(failed, WorkerFailure):
            how, printed = f"it {failed}", failed.printed.strip()[-_LOG_CHARACTERS:]
        raise CourseError(
            f"the compiler's helper process does not start ({how}). Is Triton installed in {sys.executable}? "
            f"`course doctor` looks. It said:\n{printed}"
        ) from None


def _launch() -> Launch:
    environment = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
    # -P: beside the script lie modules of the course with names that the standard library may have
    return Launch([sys.executable, "-P", str(_SERVER)], environment)


def _describe_end(code: int | None) -> str:
    if code is None or code >= 0:
        return f"exit code {code}"
    known: dict[int, str] = {
        signal.SIGSEGV: "segmentation fault",
        signal.SIGABRT: "it aborted",
        signal.SIGKILL: "killed, most often for lack of memory",
    }
    return known.get(-code, f"signal {-code}")


# SIGURG: ignored until the server handles it, and then it removes its folder
worker = Worker(
    _launch, ready_seconds=_START_SECONDS, on_owner_death=signal.SIGURG, temporary_folder="course-compile-"
)  # fmt: skip
