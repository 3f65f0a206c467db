"""Start the processes of a check before they are needed."""

from __future__ import annotations

from course_lib.compiler import helper
from course_lib.grading.kind import find_mode
from course_lib.grading.submission import reader
from course_lib.sandbox import jobs


def prepare(mode: str) -> None:
    """Begin to start the processes that read a file, run it in ``mode`` and compile it. This call
    does not wait; if one of them does not start, the job that needs it says so."""
    jobs.prepare(reader.KIND)
    jobs.prepare(find_mode(mode).server)
    if find_mode(mode).asks_compiler:
        jobs.prepare(helper.KIND)
