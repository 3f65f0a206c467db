"""The server. It imports the modules for its jobs once, then forks a process for each job and
confines it.

``servers.py`` starts it as a script, ``python -P -s server.py ROOT KIND``; KIND is a ServerKind as
JSON, or "probe". It reads one job per line from stdin and writes one answer per line to the
original stdout; both are JSON. It ends when its stdin closes, when the process that started it
ends, or after ``_IDLE_SECONDS`` without a job. It never reads a submission itself. Its answer
(tier, exit code, how the job ended) can therefore be trusted; the files in the job's folder cannot.

The chain of processes of a job: server -> keeper (enters namespaces) -> init (first process of the
PID namespace) -> runner (is confined, does the job). When init ends, the kernel ends every other
process of the namespace. Without namespaces the keeper starts the runner itself; processes that the
runner leaves behind become children of the server, and the server ends them.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import gc
import importlib
import json
import linecache
import os
import pkgutil
import resource
import select
import signal
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

if __name__ == "__main__":  # the first argument of the script is the folder of the course
    sys.path.insert(0, sys.argv[1])
    os.environ["COURSE_DEFER_CHOICE"] = "1"

from course_lib.base import paths, runtime
from course_lib.base.files import remove_tree
from course_lib.base.installation import environment_fault
from course_lib.base.translation import choose_language, read_catalog
from course_lib.base.worker import take_stdout
from course_lib.sandbox import isolation
from course_lib.sandbox.isolation import Needs
from course_lib.sandbox.machine import FolderExchange, Machine, ServerKind
from course_lib.sandbox.stage import STOP, Stage

_IDLE_SECONDS = 900.0
_POLL_SECONDS = 0.01
# interval between two measurements of processor time, memory, processes and files
_LOOK_SECONDS = 0.05
_MOST_LISTED = 1000  # processes of a job that are looked at: far more than any limit allows
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_END_SECONDS = 5.0  # a killed process disappears quickly, unless the kernel itself hangs
_LOG_TAIL = 64 << 10
# The number of starts for a chain that ends before it is ready. Its end says nothing about the
# tier: something killed it.
_STARTS = 3
_SHORT_OF = (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.EINTR)
# The reports of a runner before it reads the job. Later reports are ignored, because the submission
# could forge them.
_CONFINED, _READY, _REFUSED = b"c", b"r", b"n"


def main(root: str, kind: str) -> None:
    answers = take_stdout()
    isolation.adopt_orphans()
    if kind == "probe":
        server = JobServer(root, None)
        tier, why = server.try_tiers()
        print(json.dumps({"tier": tier, "why": why}), file=answers)
        return
    server = JobServer(root, ServerKind.from_json(kind))
    try:
        server.load()
    except Exception as error:
        fault = environment_fault(error)
        if fault is None:
            raise
        print(json.dumps({"broken": str(fault)}), file=answers)
        return
    print('{"ready": true}', file=answers)
    while (line := server.read_job()) is not None:
        print(json.dumps(server.run(json.loads(line))), file=answers)


class Moment(NamedTuple):
    """A moment of a job.

    Args:
        clock: seconds of the monotonic clock.
        processor: processor seconds that all processes of the job have used.
        queued: seconds for which threads of the job could have run and waited for a processor.
    """

    clock: float
    processor: float = 0.0
    queued: float = 0.0


@dataclass
class JobOutcome:
    """The end of one job, as the server saw it.

    Args:
        ended: as in :class:`course_lib.sandbox.jobs.JobAnswer`.
        case: the number of the last case that has begun; None before the first.
        begin: the moment at which the job began; after Stage.STARTING, the moment at which
            Stage.IMPORTING began.
        since: the moment at which the current stage or case began.
    """

    ended: str = "finished"
    stage: Stage = Stage.STARTING
    case: int | None = None
    status: bytes = b""
    log: bytearray = field(default_factory=bytearray)
    logged: int = 0
    begin: Moment = field(default_factory=lambda: Moment(time.monotonic()))
    since: Moment = field(default_factory=lambda: Moment(time.monotonic()))

    @property
    def next_case(self) -> int:
        return 0 if self.case is None else self.case + 1

    @property
    def confined(self) -> bool:
        return self.status.startswith(_CONFINED)

    @property
    def refused(self) -> bool:
        """True if this machine does not permit the tier. That is the only reason to try a lower
        one."""
        return _REFUSED in self.status

    @property
    def exit_code(self) -> int | None:
        text = self.status.lstrip(_CONFINED + _READY + _REFUSED)
        return int(text) if text else None

    def note_ready(self, now: Moment) -> None:
        if self.stage is Stage.STARTING and _READY in self.status:
            self.stage, self.begin, self.since = Stage.IMPORTING, now, now

    def note_cases(self, folder: Path, count: int, now: Moment) -> None:
        """Record the last of the ``count`` cases that the runner has begun."""
        while (
            self.stage is not Stage.STARTING
            and self.next_case < count
            and os.path.lexists(folder / f"{self.next_case:02}.begin")
        ):
            self.stage, self.case, self.since = Stage.RUNNING, self.next_case, now

    def find_passed_time(self, folder: Path, limits: dict[str, Any], now: Moment) -> str:
        """Return how the job ends if a time is over or if the job's folder has a STOP file; "" if
        neither is so.

        The limits of a case and of the job count processor time, which does not grow while other
        programs have the processor. Only a job that waits or sleeps is ended by the clock, without
        the time in which it waited for a processor.
        """
        # if STOP ended this stage, it would look as if this machine could start no chain
        if self.stage is Stage.STARTING:
            return "timed out" if now.clock - self.since.clock > limits["start"] else ""
        of_stage = limits["case"] if self.case is not None else limits["load"] or limits["case"]
        for limit, start in ((of_stage, self.since), (limits["total"], self.begin)):
            processor = now.processor - start.processor
            if processor > limit:
                return "timed out"
            if (
                now.clock - start.clock - processor - (now.queued - start.queued)
                > limits["patience"] * limit
            ):
                return "waited"
        return "timed out" if os.path.lexists(folder / STOP) else ""

    def is_flooded(self, limits: dict[str, Any]) -> bool:
        return self.logged > limits.get("log_bytes", 1 << 62)

    @property
    def last_words(self) -> str:
        lines = bytes(self.log).decode("utf-8", "replace").strip().splitlines() or [
            "it ended without a word"
        ]
        return lines[-1].removeprefix("OSError: ")


class JobServer:
    """A server that runs one job at a time, each in its own chain of processes.

    With ``kind`` None it has no machine, and only tries the isolation.
    """

    def __init__(self, root: str, kind: ServerKind | None):
        self.root, self.kind = root, kind
        self.needs = kind.needs if kind else Needs.NOTHING
        self.owner = os.getppid()
        self.machine: Machine | None = None
        self.received = bytearray()

    def load(self) -> None:
        """Make the machine: do all imports, but nothing that does not survive a fork."""
        assert self.kind is not None
        if self.kind.device:
            os.environ["COURSE_DEVICE"] = self.kind.device
        if self.kind.device == "cpu":  # this must be set before Triton is imported
            runtime.current()
        os.environ["TRITON_CACHE_DIR"] = "/nonexistent"  # each job sets its own folder
        self.machine = pkgutil.resolve_name(self.kind.make)(self.kind.argument)
        read_catalog(choose_language(), "interface")  # the confined process can no longer read it
        with contextlib.suppress(ImportError, OSError):
            # Every fork inherits the package, and the C library that the package looks for.
            importlib.import_module("landlockpy").supported()
        for module in list(sys.modules.values()):
            file = getattr(module, "__file__", None) or ""
            if file.startswith(str(paths.PACKAGE)) and file.endswith(".py"):
                # Triton reads the source of a kernel at the first launch. By then the confined
                # process can no longer read the course.
                linecache.getlines(file)
        gc.collect()
        # otherwise a fork's garbage collector would write to every page, and so copy it
        gc.freeze()

    def try_tiers(self) -> tuple[str, dict[str, str]]:
        """Try the tiers, the best one first. Return the first that works, and the reason against
        each better tier."""
        refusals: dict[str, str] = {}
        folder = Path("/dev/null")  # any path will do
        limits = dict.fromkeys(("file_bytes", "open_files", "address_bytes", "memory_bytes"), 0)
        limits |= {"start": 20, "load": 20, "case": 20, "total": 20, "patience": 1}
        for tier in isolation.TIERS:
            outcome = self.try_start({"limits": limits, "count": 0}, folder, tier)
            if outcome.confined and outcome.exit_code == 0:
                return tier, refusals
            refusals[tier] = outcome.last_words
        return isolation.TIERS[-1], refusals

    def read_job(self) -> bytes | None:
        """Return the next job; None if no more can come."""
        end = time.monotonic() + _IDLE_SECONDS
        while b"\n" not in self.received:
            if os.getppid() != self.owner or time.monotonic() > end:
                return None
            if select.select([0], [], [], 1.0)[0]:
                data = os.read(0, 1 << 20)
                if not data:
                    return None
                self.received += data
        line, _, rest = bytes(self.received).partition(b"\n")
        self.received = bytearray(rest)
        return line

    def run(self, job: dict[str, Any]) -> dict[str, Any]:
        """Run the job in the best tier that this machine permits. Return the outcome for
        ``jobs.py``."""
        folder = Path(job["folder"])
        job["left_out"] = [
            int(number) for number, size in job["reserve"].items() if not _has_room_for(size)
        ]
        tiers = isolation.TIERS[
            isolation.TIERS.index(job["best_tier"]) : isolation.TIERS.index(job["lowest_tier"]) + 1
        ]
        tier, outcome, refusals = job["lowest_tier"], JobOutcome(), {}
        # each job begins with the best tier: the reason of an earlier refusal may have passed
        for tier in tiers:
            outcome = self.try_start(job, folder, tier)
            if not outcome.refused:
                break
            refusals[tier] = outcome.last_words
        if outcome.ended == "abandoned":  # the process that would have removed the folder has ended
            remove_tree(folder)
        return {
            "tier": tier, "ended": outcome.ended, "stage": outcome.stage, "exit": outcome.exit_code,
            "refusals": refusals,
            "printed": bytes(outcome.log).decode("utf-8", "replace"), "left_out": job["left_out"],
        }  # fmt: skip

    def try_start(self, job: dict[str, Any], folder: Path, tier: str) -> JobOutcome:
        """Run the job in one tier. If its chain of processes ends before it is ready, and the
        machine has refused nothing, start the chain again.
        """
        outcome = JobOutcome()
        for _ in range(_STARTS):
            outcome = self.watch(self.start(job, folder, tier), folder, job["count"], job["limits"])
            if (
                outcome.stage is not Stage.STARTING
                or outcome.ended != "finished"
                or outcome.refused
            ):
                break
            if job["count"] == 0 and outcome.exit_code == 0:
                break
        return outcome

    # ----------------------------------------------------------------------------------------------
    # the chain

    def start(self, job: dict[str, Any], folder: Path, tier: str) -> tuple[int, int, int]:
        """Fork the chain. Return the pid of the keeper, and the read ends of the log and status
        pipes."""
        log_read, log = os.pipe()
        status_read, status = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        keeper = os.fork()
        if keeper == 0:
            code = 70
            try:
                self.keep(job, folder, tier, log, status)
                code = 0
            except BaseException as error:
                with contextlib.suppress(OSError):
                    os.write(log, f"{error}\n".encode())
            finally:
                os._exit(code)
        os.close(log)
        os.close(status)
        return keeper, log_read, status_read

    def keep(self, job: dict[str, Any], folder: Path, tier: str, log: int, status: int) -> None:
        """Do the work of the keeper, and of its descendants init and runner. Only keeper and init
        return."""
        isolation.die_with_parent()
        os.setsid()
        if tier == isolation.NAMESPACES:
            try:
                isolation.enter_namespaces(self.needs)
            except OSError as error:
                _say_refused(error, status)
                raise
            isolation.die_with_parent()  # once more: the change of credentials has cleared it
            init = os.fork()
            if init:
                os.close(log)
                os.close(status)
                os.waitpid(init, 0)
                return
            isolation.die_with_parent()
            if self.needs is Needs.GPU:
                try:
                    isolation.mount_own_proc()
                except OSError as error:
                    _say_refused(error, status)
                    raise
        runner = os.fork()
        if runner == 0:
            self.run_confined(job, folder, tier, log, status)
        os.close(log)
        _, ended = os.waitpid(runner, 0)
        os.write(status, str(os.waitstatus_to_exitcode(ended)).encode())

    def run_confined(
        self, job: dict[str, Any], folder: Path, tier: str, log: int, status: int
    ) -> None:
        """Do the work of the runner: confine this process, then do the job. Does not return."""
        code = 70
        try:
            isolation.die_with_parent()
            nothing = os.open("/dev/null", os.O_RDONLY)
            for descriptor, standard in ((nothing, 0), (log, 1), (log, 2)):
                os.dup2(descriptor, standard)
            if folder.is_dir():
                os.chdir(folder)
                os.environ |= dict.fromkeys(("TMPDIR", "HOME", "XDG_CACHE_HOME"), str(folder))
                os.environ["TRITON_CACHE_DIR"] = str(folder / "cache")
                # the fork inherited the server's temporary folder, which the confined process
                # cannot use
                tempfile.tempdir = str(folder)
            try:
                reserved = sum(job.get("reserve", {}).values())
                confine = functools.partial(
                    isolation.enter,
                    tier,
                    folder,
                    job["limits"] | {"reserved_bytes": reserved},
                    self.needs,
                )
                if self.machine is not None:
                    self.machine.attend(confine)
                confine()
                os.write(status, _CONFINED)
                if self.machine is not None:
                    # Close them before the machine starts: from then on the driver of a GPU has
                    # open files of its own.
                    os.closerange(3, status)
                    os.closerange(status + 1, 1 << 20)
                    self.machine.start()
            except Exception as error:
                _say_refused(error, status)
                print(f"{type(error).__name__}: {error}", flush=True)
                os._exit(code)
            if self.machine is not None:
                os.write(status, _READY)
                os.close(status)
                # an installed course lies among the packages that a submission may import
                if not paths.is_installed():
                    sys.path[:] = [entry for entry in sys.path if entry != self.root]
                sys.argv[:] = [""]
                plain = json.loads((folder / "job.json").read_bytes())
                job_with_tier = plain | {"left_out": job["left_out"], "tier": tier}
                self.machine.work(job_with_tier, FolderExchange(folder))
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            with contextlib.suppress(BaseException):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(code)

    # ----------------------------------------------------------------------------------------------
    # the watch

    def watch(
        self, started: tuple[int, int, int], folder: Path, count: int, limits: dict[str, Any]
    ) -> JobOutcome:
        """Watch the chain until it ends or breaks a limit, then kill everything that is left of
        it."""
        keeper, log, status = started
        outcome = JobOutcome()
        looked = Moment(time.monotonic())
        poll = select.poll()
        for descriptor in (log, status, *(() if self.kind is None else (0,))):
            poll.register(descriptor, select.POLLIN)
        try:
            while self.take_ready(poll, log, status, outcome):
                family: list[int] = []
                if time.monotonic() - looked.clock > _LOOK_SECONDS:
                    family = _list_family()
                    looked = _measure_moment(family)
                now = looked._replace(clock=time.monotonic())
                outcome.note_ready(now)
                outcome.note_cases(folder, count, now)
                passed = outcome.find_passed_time(folder, limits, now)
                if not passed and family and count:
                    passed = _find_passed_limit(family, folder, limits)
                if passed:
                    outcome.ended = passed
                    break
                if outcome.is_flooded(limits):
                    break
        finally:
            _end_chain(keeper)
            while self.take_log(log, outcome):
                pass
            os.close(log)
            os.close(status)
        # the runner may have become ready after the last look
        outcome.note_ready(Moment(time.monotonic()))
        if outcome.is_flooded(limits):
            outcome.ended = "flooded"
        return outcome

    def take_ready(self, poll: select.poll, log: int, status: int, outcome: JobOutcome) -> bool:
        """Wait a moment for the pipes, and take what they hold. Return False if the chain or the
        process that sent the job has ended."""
        ready = {descriptor for descriptor, _ in poll.poll(_POLL_SECONDS * 1000)}
        if log in ready and not self.take_log(log, outcome):
            poll.unregister(log)
        if status in ready:
            data = os.read(status, 64)
            outcome.status += data
            if not data:
                return False
        if 0 in ready and not self.more_input():
            outcome.ended = "abandoned"
            return False
        return True

    def take_log(self, log: int, outcome: JobOutcome) -> bool:
        data = os.read(log, 1 << 20)
        outcome.logged += len(data)
        outcome.log += data
        del outcome.log[:-_LOG_TAIL]
        return bool(data)

    def more_input(self) -> bool:
        """Return False if the process that sent the job has ended: its answer is no longer
        needed."""
        data = os.read(0, 1 << 20)
        self.received += data
        return bool(data)


def _say_refused(error: Exception, status: int) -> None:
    """Report that this machine does not permit the tier, unless the reason is a shortage that may
    pass."""
    if not isinstance(error, OSError) or error.errno not in _SHORT_OF:
        os.write(status, _REFUSED)


def _has_room_for(size: int) -> bool:
    """Return False if the machine does not have ``size`` bytes of address space. The server tries
    it itself, as a runner could forge a report.
    """
    try:
        isolation.reserve(size).close()
    except OSError:
        return False
    return True


def _list_family() -> list[int]:
    """Return the processes of the running job: the keeper, its descendants, and those of them that
    lost their parents."""
    family = _find_children(os.getpid())
    for process in family:
        family += _find_children(process)
        if len(family) > _MOST_LISTED:
            break
    return family


def _find_passed_limit(family: list[int], folder: Path, limits: dict[str, Any]) -> str:
    """Return the first exceeded limit among those that the kernel does not enforce; "" if there is
    none.

    Args:
        family: the processes of the job, the keeper first.
    """
    if (
        len(family) > limits["processes"] + 2
        or sum(map(_count_threads, family)) > limits["threads"]
    ):
        return "too many processes"
    if sum(_resident_bytes(process) for process in family[1:]) > limits["resident_bytes"]:
        return "too much memory"
    nameless: dict[int, int] = {}
    for process in family[1:]:
        nameless |= _find_nameless_files(process, str(folder))
    size, files, waiting = sum(nameless.values()), 0, [str(folder)]
    while waiting:  # in Python 3.11 os.walk is recursive, and would fail in very deep folders
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    files += 1
                    with contextlib.suppress(FileNotFoundError):
                        size += entry.stat(follow_symlinks=False).st_blocks * 512
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    if size > limits["disk_bytes"] or files > limits["files"]:
                        return "too many files"
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError:  # the folder cannot be listed or lies too deep, so its size is unknown
            return "too many files"
    return "too many files" if size > limits["disk_bytes"] else ""


def _find_nameless_files(process: int, folder: str) -> dict[int, int]:
    """Return the sizes, by inode, of the process's open files that were deleted from ``folder``. No
    walk through the folder finds them."""
    sizes = {}
    with contextlib.suppress(OSError):  # the process has ended, or its descriptor was closed
        for line in Path(f"/proc/{process}/maps").read_text(errors="replace").splitlines():
            if f" {folder}/" in line and line.endswith(" (deleted)"):
                start, end = line.split(" ", 1)[0].split("-")
                sizes[int(line.split()[4])] = int(end, 16) - int(start, 16)
        for number in os.listdir(f"/proc/{process}/fd"):
            with contextlib.suppress(FileNotFoundError):
                status = os.stat(f"/proc/{process}/fd/{number}")
                if not status.st_nlink and os.readlink(f"/proc/{process}/fd/{number}").startswith(
                    f"{folder}/"
                ):
                    sizes[status.st_ino] = status.st_blocks * 512
    return sizes


def _end_chain(keeper: int) -> None:
    """Kill the chain, and wait until all of its processes have ended.

    Raises: TimeoutError if a process does not end.
    """
    with contextlib.suppress(ProcessLookupError):
        os.kill(keeper, signal.SIGKILL)
    deadline = time.monotonic() + _END_SECONDS
    while True:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        for process in _find_children(os.getpid()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        if time.monotonic() > deadline:
            raise TimeoutError("a process of a job cannot be ended")
        time.sleep(0.001)


def _find_children(process: int) -> list[int]:
    try:
        tasks = os.listdir(f"/proc/{process}/task")
    except OSError:
        return []
    children = []
    for task in tasks:
        with contextlib.suppress(OSError):
            children += map(int, Path(f"/proc/{process}/task/{task}/children").read_text().split())
    return children


def _count_threads(process: int) -> int:
    try:
        return os.stat(f"/proc/{process}/task").st_nlink - 2  # /proc has a folder per thread
    except OSError:
        return 0


def _measure_moment(family: list[int]) -> Moment:
    return Moment(
        time.monotonic(),
        sum(map(_measure_processor_seconds, family)),
        sum(map(_measure_queued_seconds, family)),
    )


def _measure_queued_seconds(process: int) -> float:
    """Return how long the threads of a process could have run and waited for a processor; 0 on a
    kernel that does not count it."""
    nanoseconds = 0
    # the process or a thread has ended, or the kernel does not count
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{process}/task"):
            nanoseconds += int(
                Path(f"/proc/{process}/task/{thread}/schedstat").read_bytes().split()[1]
            )
    return nanoseconds / 1e9


def _measure_processor_seconds(process: int) -> float:
    """Return the processor time of a process, and of its children that it has reaped."""
    try:
        fields = Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / _TICKS_PER_SECOND


def _resident_bytes(process: int) -> int:
    try:
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * resource.getpagesize()
    except (OSError, IndexError, ValueError):
        return 0


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
    sys.stderr.flush()
    os._exit(0)  # Python's own end would first free all that was imported
