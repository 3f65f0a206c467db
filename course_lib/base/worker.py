"""Child processes that answer questions: one line in, one line out, a time limit, and no process
left behind.

A worker is a child process in its own process group. It reads questions from stdin and writes
answers to stdout, one per line; its stderr is a log. If anything goes wrong (time limit, death,
interrupt), the whole group is killed before the caller sees the exception. A worker ends when this
process exits. If this process is killed, the kernel sends a signal to the group, and the worker
reads the end of its input.
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

# interval at which a silent worker is examined: has it ended, is its log too long?
_LOOK_SECONDS = 0.1
_LAST_SECONDS = 5.0  # time for a worker to finish an exit that has begun
_LOG_BYTES = 16 << 20  # a longer log is emptied
_TAIL_BYTES = 64 << 10


class WorkerFailure(Exception):
    """A worker that gave no answer and was killed. ``printed``: the end of its log since the last
    question."""

    def __init__(self, problem: str, printed: str):
        super().__init__(problem)
        self.printed = printed

    @property
    def last_line(self) -> str:
        """The last line of ``printed``; "" if it is empty."""
        return (self.printed.strip().splitlines() or [""])[-1].strip()


class WorkerTimeout(WorkerFailure):
    """A worker that did not answer in time."""


class WorkerDied(WorkerFailure):
    """A worker that ended by itself or was killed. ``code`` is negative for a signal, and None if
    the worker only closed its stdout."""

    def __init__(self, code: int | None, printed: str):
        self.code = code
        if code is None:
            ending = "closed its output"
        else:
            ending = (
                f"was ended by {_name_signal(-code)}"
                if code < 0
                else f"ended with exit code {code}"
            )
        super().__init__(ending, printed)


@dataclass(frozen=True)
class WorkerCommand:
    """The command that starts a worker, with its whole environment and its current folder.

    ``cwd`` None means the current folder of this process. A worker with a temporary folder starts
    in that one.
    """

    command: Sequence[str]
    environment: Mapping[str, str]
    cwd: str | Path | None = "/"


class Worker:
    """A child process that answers questions. The first question starts it; it stays for the next,
    and is started again if it has ended.

    Any thread may ask; one question waits for the other. A fork of the process that started the
    worker lets go of it and starts its own.

    Args:
        launch: called at each start, so that a worker gets the environment of that moment.
        ready_seconds: seconds from its start within which the worker must print a first line, kept
            as ``hello``; None: it prints none.
        grace: seconds in which the worker may end by itself after its input was closed; 0 kills it
            at once.
        on_owner_death: the signal that the kernel sends to the group when this process has ended,
            for whatever reason. A worker that has to clean up is sent a signal that it handles.
            None: the worker only reads the end of its input.
        temporary_folder: prefix of a folder that is made at each start as the worker's current
            folder and removed at its end; "" for none.
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
        self._asked_at = 0  # length of the log when the worker was last asked
        self._lifeline: int | None = None

    @property
    def pid(self) -> int | None:
        """The id of the process and of its group; None if there is no process."""
        return self.process.pid if self.process is not None else None

    @property
    def folder(self) -> Path | None:
        """The worker's temporary folder; None while it has none."""
        return self._folder.path if self._folder is not None else None

    @property
    def alive(self) -> bool:
        """True if the worker runs, and this process started it."""
        return self.process is not None and _exit_code(self.process) is None

    @property
    def ready(self) -> bool:
        """False while the worker has not printed the first line that it must print."""
        return self._ready_seconds is None or bool(self.hello)

    def start(self) -> None:
        """Start the worker, unless it is alive.

        Raises: WorkerFailure if it does not become ready; OSError if this machine cannot start a
        process.
        """
        with self._lock:
            if self.alive:
                return
            self.end()
            self.hello = b""
            launch = self._launch()
            try:
                self._start_process(launch)
                if self._ready_seconds is not None:
                    self.hello = self._read_line(
                        time.monotonic() + self._ready_seconds, self._ready_seconds
                    )
            except BaseException:
                self.end()
                raise

    def ask(self, question: str, seconds: float, look: Callable[[], None] | None = None) -> bytes:
        """Send a question of one line and return the answer of one line.

        A worker that is not alive is started first. Its start counts towards ``seconds``, unless it
        has ``ready_seconds``.

        Args:
            look: called several times per second until the answer begins.

        Raises: WorkerTimeout, WorkerDied, or the exception that interrupts the wait. In all three
        cases the worker has been killed, so that no later question reads the answer to this one.
        OSError if this machine cannot start a process.
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
        """Return the next line of a worker that writes without being asked.

        Raises: as :meth:`ask`.
        """
        with self._lock:
            try:
                return self._read_line(time.monotonic() + seconds, seconds)
            except BaseException:
                self.end()
                raise

    def end(self) -> None:
        """End the worker with its whole process group, and remove its folder. Do nothing if it does
        not run."""
        process = self.process
        if process is not None:
            stdin, stdout = _pipes(process)
            try:
                if self._grace:
                    stdin.close()
                    _wait(process, self._grace)
            finally:
                # The group's first process still exists, at least as a zombie, so the kernel has
                # not reused its id.
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                stdin.close()
                stdout.close()
                self.process = None
        self._release(TemporaryFolder.remove)
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
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed by end(); it has no name, so it needs no removal
        _append_only(self._log.fileno())
        inherited, self._lifeline = os.pipe() if self._on_owner_death is not None else (None, None)
        # The worker inherits the folder's lock: it uses the folder a moment longer than an owner
        # that is killed.
        lock = () if self._folder is None else (self._folder.lock,)
        try:
            self.process = subprocess.Popen(
                launch.command, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=self._log,
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
        """Write ``data``. If the worker has ended, return without an error: the read that follows
        reports how it ended."""
        stdin, unsent = _pipes(self._require_process())[0].fileno(), memoryview(data)
        with contextlib.suppress(BrokenPipeError):
            while unsent and self._wait_for(stdin, select.POLLOUT, deadline, seconds):
                # the pipe has less room than one write needs
                with contextlib.suppress(BlockingIOError):
                    unsent = unsent[os.write(stdin, unsent) :]

    def _read_line(
        self, deadline: float, seconds: float, look: Callable[[], None] | None = None
    ) -> bytes:
        stdout, searched = _pipes(self._require_process())[1].fileno(), 0
        while (end := self._received.find(b"\n", searched)) < 0:
            searched = len(self._received)
            ready = self._wait_for(stdout, select.POLLIN, deadline, seconds, look)
            data = os.read(stdout, 1 << 20) if ready else b""
            if not data:
                raise WorkerDied(_wait(self._require_process(), _LAST_SECONDS), self._log_tail())
            self._received += data
        line = bytes(self._received[:end])
        del self._received[: end + 1]
        return line

    def _wait_for(
        self,
        descriptor: int,
        event: int,
        deadline: float,
        seconds: float,
        look: Callable[[], None] | None = None,
    ) -> bool:
        """Wait until the pipe is ready and return True; return False if the worker has ended and
        only its children hold the pipe open.

        Raises: WorkerTimeout.
        """
        poll = select.poll()
        poll.register(descriptor, event)
        while True:
            exited = not self.alive  # read before the poll: output from before its end counts
            seconds_left = deadline - time.monotonic()
            if seconds_left <= 0 and not exited:  # also for a worker that writes without pause
                raise WorkerTimeout(f"gave no answer within {seconds:g} s", self._log_tail())
            if poll.poll(0 if exited else 1000 * min(seconds_left, _LOOK_SECONDS)):
                return True
            if exited:
                return False
            if look is not None:
                look()
            if self._log is not None and self._log_size() > _LOG_BYTES:
                os.ftruncate(self._log.fileno(), 0)

    def _has_unasked_output(self) -> bool:
        poll = select.poll()
        poll.register(_pipes(self._require_process())[1].fileno(), select.POLLIN)
        return bool(self._received or poll.poll(0))

    def _require_process(self) -> subprocess.Popen[bytes]:
        if self.process is None:
            raise RuntimeError("this worker has not been started, or was ended by another thread")
        return self.process

    # ---- the log

    def _log_size(self) -> int:
        return os.fstat(self._log.fileno()).st_size if self._log is not None else 0

    def _log_tail(self) -> str:
        size = self._log_size()
        start = max(self._asked_at if self._asked_at <= size else 0, size - _TAIL_BYTES)
        # pread, because the file position is shared with the worker
        return (
            os.pread(self._log.fileno(), size - start, start).decode("utf-8", "replace")
            if self._log is not None
            else ""
        )

    # ---- a fork

    def _forget(self) -> None:
        """Let go of the worker, in a fork of the process that started it, without ending it."""
        # the thread that held the old lock does not exist in the fork
        self._lock = threading.RLock()
        if self.process is not None:
            for pipe in _pipes(self.process):
                pipe.close()
            # it is not a child of this process, which must not wait for it
            self.process.returncode = 0
        self.process = None
        self._release(lambda folder: os.close(folder.lock))

    def _release(self, leave: Callable[[TemporaryFolder], None]) -> None:
        """Close what belongs to one process of the worker; ``leave`` ends the use of its folder."""
        if self._lifeline is not None:
            os.close(self._lifeline)
        if self._log is not None:
            self._log.close()
        if self._folder is not None:
            leave(self._folder)
        self._lifeline = self._log = self._folder = None
        self._received.clear()


def take_stdout() -> TextIO:
    """Return the file for a worker's answers, one per line; called in the worker. Everything
    printed afterwards goes to its log."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)
    return answers


_running: set[Worker] = set()


def _end_all() -> None:
    workers = list(_running)
    starting = [worker for worker in workers if not worker.ready]
    for worker in workers:  # all of them begin to end before the first one is waited for
        if worker.process is None:
            continue
        if worker in starting:  # it has had no question, so it is not asked to end by itself
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(worker.process.pid, signal.SIGKILL)
        else:
            _pipes(worker.process)[0].close()
    for worker in workers:
        # the thread that starts a worker holds its lock, and sees now that the process has ended
        with worker._lock if worker in starting else contextlib.nullcontext():
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
    """Return the exit code, negative for a signal; None while the process runs. It is not reaped,
    so that its group's id stays taken."""
    if process.returncode is not None or sys.platform != "linux":
        return process.poll()
    try:
        ended = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:  # another part of this process has reaped it
        return process.poll()
    if ended is None:
        return None
    return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status


def _wait(process: subprocess.Popen[bytes], seconds: float) -> int | None:
    """Return the exit code as soon as the process has ended; None if it still runs after
    ``seconds``."""
    deadline = time.monotonic() + seconds
    while (code := _exit_code(process)) is None and time.monotonic() < deadline:
        time.sleep(0.002)
    return code


def _append_only(descriptor: int) -> None:
    """Make each write go to the end of the file, even after the file was emptied."""
    # imported here: a system without fcntl still runs `course doctor`, which says what is missing
    import fcntl

    fcntl.fcntl(descriptor, fcntl.F_SETFL, fcntl.fcntl(descriptor, fcntl.F_GETFL) | os.O_APPEND)


def _signal_group_on_hangup(read_end: int, group: int, number: signal.Signals) -> None:
    """Have the kernel send the signal to the group when the pipe's last write end closes, that is,
    when this process has ended.

    PR_SET_PDEATHSIG would instead fire when the *thread* that started the worker ends, and would
    reach only the worker, not its children.
    """
    if sys.platform != "linux":
        return
    import fcntl

    # if the machine refuses, a worker ends when it reads the end of its input
    with contextlib.suppress(OSError):
        fcntl.fcntl(read_end, fcntl.F_SETOWN, -group)
        fcntl.fcntl(read_end, fcntl.F_SETSIG, number)
        fcntl.fcntl(read_end, fcntl.F_SETFL, fcntl.fcntl(read_end, fcntl.F_GETFL) | os.O_ASYNC)


def _name_signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
