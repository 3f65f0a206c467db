"""The server: imports once what running a learner's code takes, then forks for each job and confines each fork.

Started as a script, ``python -P -s server.py ROOT MODE``, by ``servers.py``. One job a line on stdin, one answer a line on
what was stdout, both JSON. It ends with its stdin, with the process that started it, or after a quarter of an hour
without a job. It never runs a learner's code itself, so what it answers (tier, exit code, how the job ended) may be
believed; what lies in the job's folder may not.

The chain of a job: server -> keeper (enters namespaces) -> init (first process of the PID namespace) -> runner (confined,
runs the learner's code). When init ends, the kernel ends all that is left in the namespace. Without namespaces the
keeper starts the runner itself, and what a runner leaves behind becomes the server's own child and is ended.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import linecache
import os
import resource
import select
import signal
import sys
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

if __name__ == "__main__":  # a script, whose first argument says where the course is
    sys.path.insert(0, sys.argv[1])
    os.environ["COURSE_DEFER_CHOICE"] = "1"

from course_lib.base.errors import environment_fault
from course_lib.base.worker import take_stdout
from course_lib.grading.sandbox import child, isolation
from course_lib.grading.sandbox.stage import Stage

_IDLE_SECONDS = 900.0
_POLL_SECONDS = 0.01
_LOOK_SECONDS = 0.05  # between two looks at memory, processes and files
_END_SECONDS = 5.0  # what was killed is gone within milliseconds, unless the kernel itself hangs
_LOG_TAIL = 64 << 10
_CONFINED, _READY = b"c", b"r"  # what a runner says before it sees the learner's code; after that it is not listened to


def main(root: str, mode: str) -> None:
    answers = take_stdout()
    isolation.adopt_orphans()
    server = JobServer(root, mode)
    if mode == "probe":
        why = server.try_tiers()
        print(json.dumps({"tier": server.tier, "why": why}), file=answers)
        return
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


@dataclass
class Outcome:
    """What the server saw of one job. ``ended`` is "finished", "timed out", "flooded", "too much memory", "too many files",
    "too many processes" or "abandoned"; ``case`` is the number of the last case begun, None before the first."""

    ended: str = "finished"
    stage: Stage = Stage.STARTING
    case: int | None = None
    status: bytes = b""
    log: bytearray = field(default_factory=bytearray)
    logged: int = 0

    @property
    def next_case(self) -> int:
        return 0 if self.case is None else self.case + 1

    @property
    def confined(self) -> bool:
        return self.status.startswith(_CONFINED)

    @property
    def exit_code(self) -> int | None:
        text = self.status.lstrip(_CONFINED + _READY)
        return int(text) if text else None


class JobServer:
    """Runs one job at a time, each in a chain of processes of its own.

    ``tier`` is the best isolation that has worked here; ``machine`` what runs cases, made before the forks (not on a GPU).
    """

    def __init__(self, root: str, mode: str):
        self.root, self.mode, self.gpu = root, mode, mode == "gpu"
        self.owner = os.getppid()
        self.tier = isolation.TIERS[0]
        self.machine = None
        self.received = bytearray()

    def load(self) -> None:
        """Import, without touching a GPU: CUDA does not survive a fork."""
        os.environ["COURSE_DEVICE"] = "gpu" if self.gpu else "cpu"
        if self.gpu:
            os.environ["TRITON_CACHE_DIR"] = "/nonexistent"  # each job gets its own
            for name in ("torch", "triton.language"):
                importlib.import_module(name)
        else:
            self.machine = child.machine(self.mode)
        with contextlib.suppress(ImportError, OSError):
            # the fork then has it, with the C library that it looks for
            importlib.import_module("landlockpy").supported()
        for module in list(sys.modules.values()):
            file = getattr(module, "__file__", None) or ""
            if file.startswith(self.root) and file.endswith(".py"):
                # Triton reads a kernel's source at its first launch, when the course can no longer be read
                linecache.getlines(file)
        gc.collect()
        gc.freeze()  # a collection in a fork would copy every page

    def try_tiers(self) -> dict[str, str]:
        """Try the tiers from the best one; ``tier`` becomes the first that works. Returns why the others do not."""
        why = {}
        folder = Path("/dev/null")  # any path will do
        limits = dict.fromkeys(("file_bytes", "open_files", "address_bytes", "memory_bytes"), 0) | {"total": 60}
        for tier in isolation.TIERS:
            chain = self.start({"limits": limits, "cases": None}, folder, tier)
            outcome = self.watch(chain, folder, 0, {"start": 20, "case": 20, "total": 20})
            if outcome.confined and outcome.exit_code == 0:
                self.tier = tier
                break
            said = bytes(outcome.log).decode("utf-8", "replace").strip().splitlines() or ["it ended without a word"]
            why[tier] = said[-1].removeprefix("OSError: ")
        return why

    def read_job(self) -> bytes | None:
        """The next job, or None when nobody is there to ask for one."""
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
        """Run the job in the best tier that this machine permits. Returns what happened, for ``runner.py``."""
        folder, limits = Path(job["folder"]), job["limits"]
        for case in job["cases"]:
            case["left_out"] = not self.gpu and not _has_room_for(case)
        tier, outcome = self.tier, Outcome()
        for tier in isolation.TIERS[max(map(isolation.TIERS.index, (self.tier, job["tier"]))) :]:
            outcome = self.watch(self.start(job, folder, tier), folder, len(job["cases"]), limits)
            if outcome.stage is not Stage.STARTING:
                if job["tier"] == isolation.TIERS[0]:
                    self.tier = tier
                break
            if outcome.ended != "finished":
                break
            # it did not get as far as the learner's code: this machine may not permit so much
        return {
            "tier": tier, "ended": outcome.ended, "stage": outcome.stage, "exit": outcome.exit_code,
            "printed": bytes(outcome.log).decode("utf-8", "replace"),
            "left_out": [number for number, case in enumerate(job["cases"]) if case["left_out"]],
        }  # fmt: skip

    # ------------------------------------------------------------------------------------------------------------------
    # the chain

    def start(self, job: dict[str, Any], folder: Path, tier: str) -> tuple[int, int, int]:
        """Fork the chain. Returns the keeper's pid and the ends to read of the log and of the status."""
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
        """The keeper and its descendants; only keeper and init return."""
        isolation.die_with_parent()
        os.setsid()
        if tier == isolation.NAMESPACES:
            isolation.enter_namespaces()
            isolation.die_with_parent()  # a change of credentials forgets it
            init = os.fork()
            if init:
                os.close(log)
                os.close(status)
                os.waitpid(init, 0)
                return
            isolation.die_with_parent()
        runner = os.fork()
        if runner == 0:
            self.run_confined(job, folder, tier, log, status)
        os.close(log)
        _, ended = os.waitpid(runner, 0)
        os.write(status, str(os.waitstatus_to_exitcode(ended)).encode())

    def run_confined(self, job: dict[str, Any], folder: Path, tier: str, log: int, status: int) -> None:
        """The runner: confined first, then the work. Does not return."""
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
            isolation.enter(tier, folder, job["limits"], self.gpu)
            os.write(status, _CONFINED)
            if job["cases"] is not None:
                # before a machine is made: a GPU's driver has files of its own open from then on
                os.closerange(3, status)
                os.closerange(status + 1, 1 << 20)
                machine = self.machine or child.machine(self.mode)
                os.write(status, _READY)
                os.close(status)
                sys.path[:] = [entry for entry in sys.path if entry != self.root]
                sys.argv[:] = [""]
                child.work(job, folder, machine)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            with contextlib.suppress(BaseException):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(code)

    # ------------------------------------------------------------------------------------------------------------------
    # the watch

    def watch(self, started: tuple[int, int, int], folder: Path, count: int, limits: dict[str, Any]) -> Outcome:
        """Until the chain has ended or has to be: then nothing of it is left."""
        keeper, log, status = started
        outcome = Outcome()
        begin = since = looked = time.monotonic()
        poll = select.poll()
        for descriptor in (log, status, *(() if self.mode == "probe" else (0,))):
            poll.register(descriptor, select.POLLIN)
        try:
            while True:
                ready = {descriptor for descriptor, _ in poll.poll(_POLL_SECONDS * 1000)}
                if log in ready and not self.take_log(log, outcome):
                    poll.unregister(log)
                if status in ready:
                    data = os.read(status, 64)
                    outcome.status += data
                    if not data:
                        break
                if 0 in ready and not self.more_input():
                    poll.unregister(0)
                    outcome.ended = "abandoned"
                    break
                now = time.monotonic()
                if outcome.stage is Stage.STARTING and _READY in outcome.status:
                    outcome.stage, begin, since = Stage.IMPORTING, now, now
                starting = outcome.stage is Stage.STARTING
                while (
                    not starting and outcome.next_case < count and (folder / f"{outcome.next_case:02}.begin").exists()
                ):
                    outcome.stage, outcome.case, since = Stage.RUNNING, outcome.next_case, now
                if now - since > limits["start" if starting else "case"] or (
                    not starting and now - begin > limits["total"]
                ):
                    outcome.ended = "timed out"
                    break
                if outcome.logged > limits.get("log_bytes", 1 << 62):
                    outcome.ended = "flooded"
                    break
                if now - looked > _LOOK_SECONDS and count:
                    looked = now
                    if passed := _find_passed_limit(keeper, folder, limits):
                        outcome.ended = passed
                        break
        finally:
            _end_chain(keeper)
            while self.take_log(log, outcome):
                pass
            os.close(log)
            os.close(status)
        if outcome.stage is Stage.STARTING and _READY in outcome.status:
            outcome.stage = Stage.IMPORTING  # it ended before the next look
        if outcome.logged > limits.get("log_bytes", 1 << 62):
            outcome.ended = "flooded"
        return outcome

    def take_log(self, log: int, outcome: Outcome) -> bool:
        data = os.read(log, 1 << 20)
        outcome.logged += len(data)
        outcome.log += data
        del outcome.log[:-_LOG_TAIL]
        return bool(data)

    def more_input(self) -> bool:
        """False if whoever asked has gone: then the job is nobody's."""
        data = os.read(0, 1 << 20)
        self.received += data
        return bool(data)


def _has_room_for(case: dict[str, Any]) -> bool:
    """False if the machine has no address space for the case's far tensors. Asked here: the runner could lie."""
    size = child.far_bytes(case)
    if not size:
        return True
    try:
        child.reserve(size).close()
    except OSError:
        return False
    return True


def _find_passed_limit(keeper: int, folder: Path, limits: dict[str, Any]) -> str:
    """The limit that is passed, of those that the kernel enforces by no resource limit; "" if none is."""
    family = [keeper]
    for process in family:
        family += _find_children(process)
        if len(family) > limits["processes"] + 2:
            return "too many processes"
    if sum(_resident_bytes(process) for process in family[1:]) > limits["resident_bytes"]:
        return "too much memory"
    size = files = 0
    for place, folders, names in os.walk(folder):
        files += len(folders) + len(names)
        for name in names:
            with contextlib.suppress(OSError):
                size += os.lstat(os.path.join(place, name)).st_blocks * 512
        if size > limits["disk_bytes"] or files > limits["files"]:
            return "too many files"
    return ""


def _end_chain(keeper: int) -> None:
    """Kill the chain, and wait until nothing of it is left.

    Raises: TimeoutError if something stays.
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
    found = []
    for task in tasks:
        with contextlib.suppress(OSError):
            found += map(int, Path(f"/proc/{process}/task/{task}/children").read_text().split())
    return found


def _resident_bytes(process: int) -> int:
    try:
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * resource.getpagesize()
    except (OSError, IndexError, ValueError):
        return 0


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
