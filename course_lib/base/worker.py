"""The one way to run and talk to a child process: a line to it, a line from it, a time limit, and nothing left behind.

A worker is a child process in a process group of its own. Its stdin takes questions, one a line; its stdout gives answers,
one a line; its stderr is a log. Whatever goes wrong (time limit, death, interrupt), the whole group is ended before the
caller hears of it. It ends at exit, and when this process is killed: the kernel then sends a signal to the group, and the
worker sees its input end.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TextIO

from course_lib.base.files import TemporaryFolder

_LOOK_SECONDS = 0.1  # between two looks at a silent worker: has it ended, is its log too long?
_LAST_SECONDS = 5.0  # an exit that has begun is over by then
_LOG_BYTES = 16 << 20  # a longer log starts again from nothing
_TAIL_BYTES = 64 << 10


class WorkerFailure(Exception):
    """A worker gave no answer, and has been ended. ``printed``: the end of what it printed since it was last asked."""

    def __init__(self, what: str, printed: str):
        super().__init__(what)
        self.printed = printed

    @property
    def last_line(self) -> str:
        """The last line that it printed; "" if it printed none."""
        return (self.printed.strip().splitlines() or [""])[-1].strip()


class WorkerTimeout(WorkerFailure):
    """The worker did not answer in time."""


class WorkerDied(WorkerFailure):
    """The worker ended by itself, or was killed. ``code``: negative for a signal; None if it only closed its stdout."""

    def __init__(self, code: int | None, printed: str):
        self.code = code
        if code is None:
            what = "closed its output"
        else:
            what = f"was ended by {_name_signal(-code)}" if code < 0 else f"ended with exit code {code}"
        super().__init__(what, printed)


@dataclass(frozen=True)
class WorkerCommand:
    """How to start a worker: the command, the whole environment, and where: ``cwd`` None is where this process is.

    A worker with a folder of its own starts there.
    """

    command: Sequence[str]
    environment: Mapping[str, str]
    cwd: str | Path | None = "/"


class Worker:
    """A child process that answers questions: started by the first one, kept for the next, started again after it ended.

    Any thread may ask; questions wait for one another. A fork of the process that started it has no part in it, and starts
    its own.

    Args:
        launch: called at each start, so that a worker sees the environment as it is then.
        ready_seconds: the worker says a first line, kept as ``hello``, within this time of its start; None: it does not.
        grace: at its end, seconds in which it may end by itself after its input closed; 0 ends it at once.
        on_owner_death: what the kernel sends to the group when this process has ended, however it did. A worker that has
            something to clear away takes a signal that it handles; None: it only sees its input end.
        temporary_folder: the prefix of a folder that is the worker's cwd, is made at each start and removed at its end; "" for none.
    """

    def __init__(
        self,
        launch: Callable[[], WorkerCommand],
        *,
        ready_seconds: float | None = None,
        grace: float = 0.0,
        on_owner_death: signal.Signals | None = signal.SIGKILL,
        temporary_folder: str = "",
    ):
        self.process: subprocess.Popen[bytes] | None = None
        self._folder: TemporaryFolder | None = None
        self.hello = b""
        self._launch, self._ready_seconds, self._grace = launch, ready_seconds, grace
        self._on_owner_death, self._prefix = on_owner_death, temporary_folder
        self._lock = threading.RLock()
        self._received = bytearray()
        self._log: IO[bytes] | None = None
        self._asked_at = 0  # where the log stood when the worker was last asked
        self._lifeline: int | None = None

    @property
    def pid(self) -> int | None:
        """The process's id, which is its group's too; None if there is none."""
        return self.process.pid if self.process is not None else None

    @property
    def folder(self) -> Path | None:
        """Its temporary folder, while it has one."""
        return self._folder.path if self._folder is not None else None

    @property
    def alive(self) -> bool:
        """True if it runs, and this process started it."""
        return self.process is not None and _exit_code(self.process) is None

    def start(self) -> None:
        """Start it, unless it is alive.

        Raises: WorkerFailure if it does not become ready; OSError if this machine starts no process.
        """
        with self._lock:
            if self.alive:
                return
            self.end()
            launch = self._launch()
            try:
                self._start_process(launch)
                if self._ready_seconds is not None:
                    self.hello = self._read_line(time.monotonic() + self._ready_seconds, self._ready_seconds)
            except BaseException:
                self.end()
                raise

    def ask(self, question: str, seconds: float, look: Callable[[], None] | None = None) -> bytes:
        """Its answer to a question, both one line. ``look`` is called some times a second until the answer begins.

        A worker that is not alive is started first. Its start counts, too, unless it says when it is ready.

        Raises: WorkerTimeout, WorkerDied, or whatever interrupts the wait: the worker has been ended then, so that no
        later question reads the answer to this one. OSError if this machine starts no process.
        """
        with self._lock:
            deadline = time.monotonic() + seconds
            if self.process is not None and self._has_unasked_output():
                self.end()
            if not self.alive:
                self.start()
                if self._ready_seconds is not None:
                    deadline = time.monotonic() + seconds
            try:
                self._asked_at = self._log_size()
                self._send(question.encode() + b"\n", deadline, seconds)
                return self._read_line(deadline, seconds, look)
            except BaseException:
                self.end()
                raise

    def read_line(self, seconds: float) -> bytes:
        """The next line of a worker that speaks without being asked.

        Raises: as :meth:`ask`.
        """
        with self._lock:
            try:
                return self._read_line(time.monotonic() + seconds, seconds)
            except BaseException:
                self.end()
                raise

    def end(self) -> None:
        """End it with its whole process group, and remove its folder. Nothing happens if it does not run."""
        process = self.process
        if process is not None:
            stdin, stdout = _pipes(process)
            try:
                if self._grace:
                    stdin.close()
                    _wait(process, self._grace)
            finally:
                # its first process is still there, if only as a zombie, so the number is nobody else's
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                stdin.close()
                stdout.close()
                self.process = None
        if self._lifeline is not None:
            os.close(self._lifeline)
        if self._log is not None:
            self._log.close()
        if self._folder is not None:
            self._folder.remove()
        self._lifeline = self._log = self._folder = None
        self._received.clear()
        _running.discard(self)

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *raised: object) -> None:
        self.end()

    # ---- start

    def _start_process(self, launch: WorkerCommand) -> None:
        _running.add(self)
        self._asked_at = 0
        if self._prefix:
            self._folder = TemporaryFolder(self._prefix)
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed by end(); without a name, so that nobody has to remove it
        _append_only(self._log.fileno())
        inherited, self._lifeline = os.pipe() if self._on_owner_death is not None else (None, None)
        # it uses the folder for a moment longer than an owner that is killed
        lock = () if self._folder is None else (self._folder.lock,)
        try:
            self.process = subprocess.Popen(
                launch.command, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log,
                cwd=self.folder or launch.cwd, env=launch.environment, start_new_session=True,
                pass_fds=lock if inherited is None else (*lock, inherited),
            )  # fmt: skip
            if inherited is not None and self._on_owner_death is not None:
                _signal_group_on_hangup(inherited, self.process.pid, self._on_owner_death)
        finally:
            if inherited is not None:
                os.close(inherited)
        os.set_blocking(_pipes(self.process)[0].fileno(), False)

    # ---- a question and its answer

    def _send(self, data: bytes, deadline: float, seconds: float) -> None:
        """Write ``data``. A worker that has ended is no error here: reading from it tells how it ended."""
        stdin, rest = _pipes(self._started())[0].fileno(), memoryview(data)
        with contextlib.suppress(BrokenPipeError):
            while rest and self._wait_for(stdin, select.POLLOUT, deadline, seconds):
                with contextlib.suppress(BlockingIOError):  # less room than a piece of the pipe
                    rest = rest[os.write(stdin, rest) :]

    def _read_line(self, deadline: float, seconds: float, look: Callable[[], None] | None = None) -> bytes:
        stdout, searched = _pipes(self._started())[1].fileno(), 0
        while (end := self._received.find(b"\n", searched)) < 0:
            searched = len(self._received)
            ready = self._wait_for(stdout, select.POLLIN, deadline, seconds, look)
            data = os.read(stdout, 1 << 20) if ready else b""
            if not data:
                raise WorkerDied(_wait(self._started(), _LAST_SECONDS), self._log_tail())
            self._received += data
        line = bytes(self._received[:end])
        del self._received[: end + 1]
        return line

    def _wait_for(self, descriptor: int, event: int, deadline: float, seconds: float, look: Callable[[], None] | None = None) -> bool:
        """True when the pipe is ready; False when the worker has ended, and the pipe is only held open by what it started.

        Raises: WorkerTimeout.
        """
        poll = select.poll()
        poll.register(descriptor, event)
        while True:
            exited = not self.alive  # before the look at the pipe: what it wrote before its end counts
            left = deadline - time.monotonic()
            if left <= 0 and not exited:  # also of a worker that never stops talking
                raise WorkerTimeout(f"gave no answer within {seconds:g} s", self._log_tail())
            if poll.poll(0 if exited else 1000 * min(left, _LOOK_SECONDS)):
                return True
            if exited:
                return False
            if look is not None:
                look()
            if self._log is not None and self._log_size() > _LOG_BYTES:
                os.ftruncate(self._log.fileno(), 0)

    def _has_unasked_output(self) -> bool:
        poll = select.poll()
        poll.register(_pipes(self._started())[1].fileno(), select.POLLIN)
        return bool(self._received or poll.poll(0))

    def _started(self) -> subprocess.Popen[bytes]:
        if self.process is None:
            raise RuntimeError("this worker has not been started, or was ended by another thread")
        return self.process

    # ---- the log

    def _log_size(self) -> int:
        return os.fstat(self._log.fileno()).st_size if self._log is not None else 0

    def _log_tail(self) -> str:
        size = self._log_size()
        start = max(self._asked_at if self._asked_at <= size else 0, size - _TAIL_BYTES)
        # pread: its position is the worker's too
        return os.pread(self._log.fileno(), size - start, start).decode("utf-8", "replace") if self._log is not None else ""

    # ---- a fork

    def _forget(self) -> None:
        """In a fork of the process that started it: let go of it, and leave it alone."""
        self._lock = threading.RLock()  # a thread that held it is not here
        if self.process is not None:
            for pipe in _pipes(self.process):
                pipe.close()
            self.process.returncode = 0  # not a child of this process, which is not to wait for it
        if self._lifeline is not None:
            os.close(self._lifeline)
        if self._log is not None:
            self._log.close()
        if self._folder is not None:
            os.close(self._folder.lock)
        self.process = self._folder = self._log = self._lifeline = None
        self._received.clear()


def take_stdout() -> TextIO:
    """In a worker: the file for its answers, one a line. Whatever it prints from now on goes to its log."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)
    return answers


_running: set[Worker] = set()


def _end_all() -> None:
    for worker in list(_running):
        worker.end()


def _forget_all() -> None:
    for worker in _running:
        worker._forget()
    _running.clear()


atexit.register(_end_all)
os.register_at_fork(after_in_child=_forget_all)


def _pipes(process: subprocess.Popen[bytes]) -> tuple[IO[bytes], IO[bytes]]:
    assert process.stdin is not None and process.stdout is not None
    return process.stdin, process.stdout


def _exit_code(process: subprocess.Popen[bytes]) -> int | None:
    """Its exit code, negative for a signal, or None while it runs. It is not waited for, so that its number stays its group's."""
    if process.returncode is not None or sys.platform != "linux":
        return process.poll()
    try:
        ended = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:  # something else in this process waited for it
        return process.poll()
    if ended is None:
        return None
    return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status


def _wait(process: subprocess.Popen[bytes], seconds: float) -> int | None:
    """Its exit code, once it has ended; None if it runs on after that time."""
    deadline = time.monotonic() + seconds
    while (code := _exit_code(process)) is None and time.monotonic() < deadline:
        time.sleep(0.002)
    return code


def _append_only(descriptor: int) -> None:
    """Each write goes to the file's end, also after it was emptied."""
    import fcntl  # not on every system on which `course doctor` says what is missing

    fcntl.fcntl(descriptor, fcntl.F_SETFL, fcntl.fcntl(descriptor, fcntl.F_GETFL) | os.O_APPEND)


def _signal_group_on_hangup(read_end: int, group: int, number: signal.Signals) -> None:
    """Have the kernel send the signal to the group when the pipe's last write end closes: when this process has ended.

    PR_SET_PDEATHSIG would do it when the *thread* that started the worker ends, for the worker alone, and not below it.
    """
    if sys.platform != "linux":
        return
    import fcntl

    with contextlib.suppress(OSError):  # a machine that refuses: a worker then ends when it sees its input end
        fcntl.fcntl(read_end, fcntl.F_SETOWN, -group)
        fcntl.fcntl(read_end, fcntl.F_SETSIG, number)
        fcntl.fcntl(read_end, fcntl.F_SETFL, fcntl.fcntl(read_end, fcntl.F_GETFL) | os.O_ASYNC)


def _name_signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
