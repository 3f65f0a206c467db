"""The servers of this process: started when a job comes, kept warm, replaced when the course changes, never needed.

A warm server saves imports, nothing else: one that died, or belongs to an older state of the course's files, is replaced,
and costs the time of a cold start. Servers end with this process, also when it is killed.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from course_lib.base import paths
from course_lib.base.errors import EnvironmentFault

SCRIPT = Path(__file__).with_name("server.py")
PACKAGE = paths.ROOT / "course_lib"
_START_SECONDS = 180.0  # importing PyTorch on a busy machine with a cold disk
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


class Died(Exception):
    """The server ended, or fell silent: ``str()`` is the end of what it printed."""


class Server:
    """One server process. Not for two threads at a time.

    Raises: EnvironmentFault if it cannot import what it needs, Died if it does not start for another reason.
    """

    def __init__(self, mode: str, key: tuple):
        self.key = key
        self.owner = os.getpid()
        self.received = bytearray()
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed by stop()
        # an environment of its own: what a person keeps in theirs (tokens, proxies) is no business of a submission
        environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
        environment |= dict.fromkeys(
            ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"
        )  # cases are far too small for more
        environment["PYTHONHASHSEED"] = "0"
        # -P, not -I: that would ignore the hash seed too
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-s", "-u", str(SCRIPT), str(paths.ROOT), mode],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, cwd="/", env=environment, start_new_session=True,
        )  # fmt: skip
        try:
            self.hello = self.receive(_START_SECONDS)
            if "broken" in self.hello:
                raise EnvironmentFault(self.hello["broken"])
        except BaseException:
            self.stop()
            raise

    def ask(self, job: dict, seconds: float) -> dict:
        """The answer to a job.

        Raises: Died.
        """
        try:
            self.process.stdin.write(json.dumps(job).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise Died(self.printed()) from None
        return self.receive(seconds)

    def receive(self, seconds: float) -> dict:
        end, out = time.monotonic() + seconds, self.process.stdout.fileno()
        while b"\n" not in self.received:
            left = end - time.monotonic()
            data = os.read(out, 1 << 20) if left > 0 and select.select([out], [], [], left)[0] else b""
            if not data:
                raise Died(self.printed())
            self.received += data
        line, _, rest = bytes(self.received).partition(b"\n")
        self.received = bytearray(rest)
        return json.loads(line)

    def printed(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=1)  # its last words come before its end
        size = self.errors.seek(0, os.SEEK_END)
        self.errors.seek(max(size - 4000, 0))
        return self.errors.read().decode("utf-8", "replace")

    @property
    def alive(self) -> bool:
        return self.owner == os.getpid() and self.process.poll() is None

    def stop(self) -> None:
        """End it: it ends its job, if it has one, and leaves when its input closes."""
        if self.owner != os.getpid():
            return  # a fork of the process that started it
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        try:
            self.process.wait(timeout=8)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.process.stdout.close()
        self.errors.close()


_idle: list[Server] = []
_lock = threading.Lock()


def ask(mode: str, job: dict, seconds: float) -> dict:
    """Have a server run the job; ``seconds`` is what it may take by its own limits.

    Returns: the server's answer.

    Raises: EnvironmentFault or Died if a server does not start, Died if two in a row die over the job.
    """
    for attempt in (1, 2):
        server = _take(mode)
        try:
            answer = server.ask(job, seconds + _GRACE_SECONDS)
        except Died:
            server.stop()
            if attempt == 2:
                raise
        except BaseException:  # an interrupt: what the server still works on is no answer to the next job
            server.stop()
            raise
        else:
            if mode == "gpu":
                server.stop()  # a fresh process for each submission
            else:
                with _lock:
                    _idle.append(server)
            return answer
    raise AssertionError


def warm(mode: str) -> None:
    """Start a server for ``mode`` if none is waiting, so that the next check does not have to.

    Raises: EnvironmentFault or Died if it does not start.
    """
    server = _take(mode)
    with _lock:
        _idle.append(server)


def stop_all() -> None:
    """End every waiting server. The next job starts another."""
    with _lock:
        servers, _idle[:] = _idle[:], []
    for server in servers:
        server.stop()


def _take(mode: str) -> Server:
    key = _key(mode)
    with _lock:
        stale = [server for server in _idle if not server.alive or (server.key != key and server.key[0] == mode)]
        taken = next((server for server in _idle if server.key == key and server not in stale), None)
        _idle[:] = [server for server in _idle if server is not taken and server not in stale]
    for server in stale:
        server.stop()
    return taken or Server(mode, key)


def _key(mode: str) -> tuple:
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
    return mode, str(SCRIPT), sys.executable, tuple(os.environ.get(name) for name in _KEPT), tuple(sorted(files))


atexit.register(stop_all)
