"""Start the processes of a check before they are needed."""

from __future__ import annotations

from course_lib.compiler import helper
from course_lib.grading.kind import find_kind, find_mode
from course_lib.grading.submission import reader
from course_lib.sandbox import jobs
from course_lib.sandbox.machine import ServerKind


def prepare(mode: str) -> None:
    """Begin to start the processes of a check. This call does not wait; if one of them does not
    start, the job that needs it says so."""
    for server in _list_servers(mode):
        jobs.prepare(server)


def warm(kind: str, mode: str) -> None:
    """Start the processes of a check of this kind, so that the first check does not wait for them.

    Raises: EnvironmentFault or WorkerFailure if one of them does not start.
    """
    mode = find_kind(kind).choose_mode(mode)
    prepare(mode)
    for server in _list_servers(mode):
        jobs.warm(server)


def _list_servers(mode: str) -> list[ServerKind]:
    """Return what reads a file, what runs it in ``mode``, and what compiles it, if a check asks
    for that."""
    way = find_mode(mode)
    return [reader.KIND, way.server, *([helper.KIND] if way.asks_compiler else [])]
