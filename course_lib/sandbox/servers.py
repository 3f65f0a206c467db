"""The servers of this process. A job starts one if none is idle, and the server stays warm for the
next job.

A warm server only saves the time of the imports. A server that has died, or that was started with
other environment variables, is replaced, which costs a cold start. All servers end with this
process, even if it is killed.

A server has read the course's files once, like the process that started it. The next process sees
an author's edit: the next ``course check``, the next test run, a notebook's kernel after a restart.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from course_lib.base import background, paths
from course_lib.base.errors import EnvironmentFault
from course_lib.base.translation import VARIABLE
from course_lib.base.worker import Worker, WorkerCommand, WorkerFailure
from course_lib.sandbox.machine import ServerKind

SCRIPT = Path(__file__).with_name("server.py")
_START_SECONDS = 180.0  # enough to import PyTorch on a busy machine with a cold disk
_END_SECONDS = 8.0  # before it ends, a server ends its job and all processes that the job started
# A server ends a job at its limit. If it has not done so after this additional time, the server
# itself is killed.
_GRACE_SECONDS = 15.0
_KEPT = (
    "PATH",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    VARIABLE,
    "TZ",
    "LD_LIBRARY_PATH",
    "CC",
    "CUDA_HOME",
    "CUDA_PATH",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
)


class WarmServer(Worker):
    """A server process that waits for a job.

    Raises: EnvironmentFault if it cannot import a module that it needs; WorkerFailure if it does
    not start for another reason.
    """

    def __init__(self, kind: ServerKind, key: tuple):
        # The server ends itself when its input closes. Its jobs run in their own process groups,
        # which only the server can find and end.
        super().__init__(
            lambda: _launch(kind),
            ready_seconds=_START_SECONDS,
            grace=_END_SECONDS,
            on_owner_death=None,
        )
        self.key = key
        self.start()
        hello = json.loads(self.hello)
        if "broken" in hello:
            self.end()
            raise EnvironmentFault(hello["broken"])


def _launch(kind: ServerKind) -> WorkerCommand:
    # The server gets few environment variables: a submission must not see the tokens and proxies of
    # the user.
    environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
    # One thread is enough: the cases are small.
    environment |= dict.fromkeys(
        ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"
    )
    environment["PYTHONHASHSEED"] = "0"
    if kind.device != "gpu":
        # Otherwise PyTorch would look for a GPU that this process may not open, and warn.
        environment["CUDA_VISIBLE_DEVICES"] = ""
    # -P and not -I: -I would ignore the hash seed as well.
    return WorkerCommand(
        [sys.executable, "-P", "-s", "-u", str(SCRIPT), str(paths.ROOT), kind.to_json()],
        environment,
    )


_idle: list[WarmServer] = []
_starting: dict[tuple, list[Future[WarmServer]]] = {}  # by key; no job has asked for them yet
_lock = threading.Lock()
# a fork has no thread that would finish a start
os.register_at_fork(after_in_child=_starting.clear)


def ask(
    kind: ServerKind, job: dict[str, Any], seconds: float, look: Callable[[], None] | None = None
) -> dict[str, Any]:
    """Have a server run the job, and return the server's answer.

    Args:
        seconds: the time by the clock after which the server is taken for hung.
        look: called several times per second meanwhile.

    Raises: EnvironmentFault or WorkerFailure if a server does not start; WorkerFailure if two
    servers in a row end during the job.
    """
    question, limit = json.dumps(job), seconds + _GRACE_SECONDS
    server = _take(kind)
    try:
        answer = server.ask(question, limit, look)
    except WorkerFailure:
        server = _take(kind)
        answer = server.ask(question, limit, look)
    with _lock:
        _idle.append(server)
    return json.loads(answer)


def warm(kind: ServerKind) -> None:
    """Start a server of this kind if none is idle, so that the next check need not wait for one.

    Raises: EnvironmentFault or WorkerFailure if it does not start.
    """
    server = _take(kind)
    with _lock:
        _idle.append(server)


def prepare(kind: ServerKind) -> None:
    """Begin to start a server of this kind if none is idle. This call does not wait. The next job
    does; if the start failed, it starts a server itself, and raises the error if that fails."""
    key = _key(kind)
    with _lock:
        if not _starting.get(key) and not any(s.key == key and s.alive for s in _idle):
            _starting.setdefault(key, []).append(background.start(lambda: WarmServer(kind, key)))


def stop_all() -> None:
    """End every idle server. The next job starts a new one."""
    with _lock:
        servers, _idle[:] = _idle[:], []
        starting = [future for futures in _starting.values() for future in futures]
        _starting.clear()
    servers += [future.result() for future in starting if future.exception() is None]
    for server in servers:
        server.end()


def _take(kind: ServerKind) -> WarmServer:
    """Return an idle server that has the present environment, or the one that :func:`prepare`
    starts, otherwise a new one. Outdated servers are ended."""
    key = _key(kind)
    with _lock:
        stale = [
            server
            for server in _idle
            if not server.alive or (server.key != key and server.key[0] == kind)
        ]
        taken = next(
            (server for server in _idle if server.key == key and server not in stale), None
        )
        _idle[:] = [server for server in _idle if server is not taken and server not in stale]
        starting = _starting[key].pop() if taken is None and _starting.get(key) else None
    for server in stale:
        server.end()
    # A start that failed is tried again: its error may be of another time, and is mended by now.
    if starting is not None and starting.exception() is None:
        taken = starting.result()
    return taken or WarmServer(kind, key)


def _key(kind: ServerKind) -> tuple:
    """Return a key that changes when a variable changes that a warm server has read."""
    variables = tuple(os.environ.get(name) for name in _KEPT)
    return kind, str(SCRIPT), sys.executable, variables
