"""The servers of this process: started when a job comes, kept warm, replaced when the course changes, never needed.

A warm server saves imports, nothing else: one that died, or belongs to an older state of the course's files, is replaced,
and costs the time of a cold start. Servers end with this process, also when it is killed.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from course_lib.base import paths
from course_lib.base.errors import EnvironmentFault
from course_lib.base.worker import Launch, Worker, WorkerFailure
from course_lib.sandbox.machine import ServerKind

SCRIPT = Path(__file__).with_name("server.py")
PACKAGE = paths.ROOT / "course_lib"
_START_SECONDS = 180.0  # importing PyTorch on a busy machine with a cold disk
_END_SECONDS = 8.0  # it ends its job first, if it has one, and whatever that job left behind
_GRACE_SECONDS = 15.0  # the server ends jobs itself; this long after their limit it is not believed to do so any more
_KEPT = (
    "PATH",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "LD_LIBRARY_PATH",
    "CC",
    "CUDA_HOME",
    "CUDA_PATH",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
)


class WarmServer(Worker):
    """One server process that waits for a job.

    Raises: EnvironmentFault if it cannot import what it needs, WorkerFailure if it does not start for another reason.
    """

    def __init__(self, kind: ServerKind, key: tuple):
        # ends itself when its input closes: its jobs are in process groups of their own, which only it can find and end
        super().__init__(lambda: _launch(kind), ready_seconds=_START_SECONDS, grace=_END_SECONDS, on_owner_death=None)
        self.key = key
        self.start()
        hello = json.loads(self.hello)
        if "broken" in hello:
            self.end()
            raise EnvironmentFault(hello["broken"])


def _launch(kind: ServerKind) -> Launch:
    # an environment of its own: what a person keeps in theirs (tokens, proxies) is no business of a submission
    environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
    # one thread: cases are far too small for more
    environment |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    environment["PYTHONHASHSEED"] = "0"
    if kind.device != "gpu":
        environment["CUDA_VISIBLE_DEVICES"] = ""  # PyTorch would look for a GPU that its process may not open, and warn
    # -P, not -I: that would ignore the hash seed too
    return Launch([sys.executable, "-P", "-s", "-u", str(SCRIPT), str(paths.ROOT), kind.to_json()], environment)


_idle: list[WarmServer] = []
_lock = threading.Lock()


def ask(
    kind: ServerKind, job: dict[str, Any], seconds: float, look: Callable[[], None] | None = None
) -> dict[str, Any]:
    """Have a server run the job; ``seconds`` is what it may take by its own limits, ``look`` is called some times a second meanwhile.

    Returns: the server's answer.

    Raises: EnvironmentFault or WorkerFailure if a server does not start, WorkerFailure if two in a row end over the job.
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
    """Start a server of this kind if none is waiting, so that the next check does not have to.

    Raises: EnvironmentFault or WorkerFailure if it does not start.
    """
    server = _take(kind)
    with _lock:
        _idle.append(server)


def stop_all() -> None:
    """End every waiting server. The next job starts another."""
    with _lock:
        servers, _idle[:] = _idle[:], []
    for server in servers:
        server.end()


def _take(kind: ServerKind) -> WarmServer:
    """A server that waits and is up to date, else a new one; those that are not are ended."""
    key = _key(kind)
    with _lock:
        stale = [server for server in _idle if not server.alive or (server.key != key and server.key[0] == kind)]
        taken = next((server for server in _idle if server.key == key and server not in stale), None)
        _idle[:] = [server for server in _idle if server is not taken and server not in stale]
    for server in stale:
        server.end()
    return taken or WarmServer(kind, key)


def _key(kind: ServerKind) -> tuple:
    """Changes with whatever a warm server has read that may read otherwise now."""
    files = []
    waiting = [str(PACKAGE)]
    for folder in waiting:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.endswith(".py"):
                    status = entry.stat()
                    files.append((entry.path, status.st_mtime_ns, status.st_size))
                elif entry.is_dir() and entry.name != "__pycache__":
                    waiting.append(entry.path)
    return kind, str(SCRIPT), sys.executable, tuple(os.environ.get(name) for name in _KEPT), tuple(sorted(files))
