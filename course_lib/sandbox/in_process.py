"""Jobs in this process, for a browser tab, which cannot start another process.

The browser itself keeps the whole tab away from the machine's files and from other sites, as the
sandbox of an operating system does elsewhere. This module adds the limits of time and output. They
are checked between the lines of the submission: each line may raise :class:`Stopped`. A long call
inside NumPy is not stopped: the reader has to reload the page.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import io
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from types import CodeType
from typing import Any

from course_lib.base.files import TemporaryFolder
from course_lib.sandbox.machine import Machine, MemoryExchange, ServerKind, Stopped
from course_lib.sandbox.stage import Stage

TIER = "browser tab"
_LOOK_SECONDS = 0.05  # interval between two readings of the clock
_LOG_TAIL = 64 << 10
_TOOL = 3  # a tool number for sys.monitoring that no debugger or profiler uses


@functools.cache
def make_machine(kind: ServerKind) -> Machine:
    """Return the machine of this kind. It is made once, as in a server."""
    module, function = kind.make.split(":")
    return getattr(importlib.import_module(module), function)(kind.argument)


def run(
    kind: ServerKind,
    job: Mapping[str, Any],
    inputs: Mapping[str, bytes],
    limits: Mapping[str, Any],
    on_begin: Callable[[dict[str, bytes]], None] | None = None,
) -> dict[str, Any]:
    """Do the job, with the arguments of :func:`course_lib.sandbox.jobs.run`.

    No case is left out: the plan for a tab has no cases that need more address space than a tab
    has. ``on_begin`` is called when a case begins, with the outputs since the last call; the result
    has the others.

    Returns: the fields of an :class:`~course_lib.sandbox.jobs.JobAnswer`.
    """
    machine = make_machine(kind)
    printed, ended = _Output(limits["log_bytes"]), "finished"
    plain = json.loads(json.dumps(job)) | {"tier": TIER, "left_out": []}
    modules = set(sys.modules)
    with TemporaryFolder("course-job-") as folder:
        exchange = MemoryExchange(inputs, folder, on_begin)
        with (
            contextlib.redirect_stdout(printed),
            contextlib.redirect_stderr(printed),
            _stopping(exchange, limits),
        ):
            try:
                machine.work(plain, exchange)
            except Stopped as stopped:
                ended = str(stopped)
    for name in set(sys.modules) - modules:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(folder)):
            # unload the submission: the next job imports its own under the same name
            del sys.modules[name]
    return {
        "tier": TIER, "ended": ended,
        "stage": Stage.RUNNING if exchange.begun else Stage.IMPORTING,
        "exit_code": 0 if ended == "finished" else None, "printed": printed.read_tail(),
        "refusals": {}, "left_out": frozenset(), "outputs": exchange.outputs,
        "folder": str(folder),
    }  # fmt: skip


class _Output(io.TextIOBase):
    """The output of a job. It raises Stopped after more than ``most`` characters."""

    def __init__(self, most: int):
        self._most, self._count, self._tail = most, 0, ""

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self._count += len(text)
        self._tail = (self._tail + text)[-_LOG_TAIL:]
        if self._count > self._most:
            raise Stopped("flooded")
        return len(text)

    def read_tail(self) -> str:
        return self._tail


@contextlib.contextmanager
def _stopping(exchange: MemoryExchange, limits: Mapping[str, Any]) -> Iterator[None]:
    """Make lines of files in the job's folder raise Stopped inside the block, when the time of the
    case or of all cases is over."""
    prefix = str(exchange.folder)
    started = looked = began = time.monotonic()
    cases = 0

    def look(*line: Any) -> None:
        nonlocal looked, began, cases
        now = time.monotonic()
        if now - looked > _LOOK_SECONDS:
            looked = now
            if exchange.begun != cases:
                cases, began = exchange.begun, now
            if now - began > limits["case"] or now - started > limits["total"]:
                raise Stopped("timed out")

    def begin(code: CodeType, offset: int) -> Any:
        if code.co_filename.startswith(prefix):
            monitoring.set_local_events(_TOOL, code, monitoring.events.LINE)
        return monitoring.DISABLE  # one event per function is enough

    monitoring: Any = getattr(sys, "monitoring")  # noqa: B009 - Python 3.11 has none, but no Pyodide is that old
    monitoring.use_tool_id(_TOOL, "course")
    monitoring.register_callback(_TOOL, monitoring.events.PY_START, begin)
    monitoring.register_callback(_TOOL, monitoring.events.LINE, look)
    monitoring.set_events(_TOOL, monitoring.events.PY_START)
    try:
        yield
    finally:
        monitoring.set_events(_TOOL, 0)
        monitoring.free_tool_id(_TOOL)
