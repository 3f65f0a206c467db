"""Hands a job to a server, and brings home what it left in its folder.

The folder is the work of someone who may want to fool the reader: read it with :func:`read_file` only, and believe nothing
in it. What :class:`Answer` says comes from the server, which runs no submission, and may be believed.
"""

from __future__ import annotations

import contextlib
import contextvars
import json
import os
import signal
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from course_lib.base.errors import CourseError, EnvironmentFault
from course_lib.base.files import TemporaryFolder
from course_lib.base.worker import WorkerFailure
from course_lib.sandbox import isolation, servers
from course_lib.sandbox.machine import ServerKind
from course_lib.sandbox.stage import STOP, Stage

BEST_TIER = isolation.NAMESPACES  # a lower one is for tests, which prove what each of them stops
_lowest_tier: contextvars.ContextVar[str] = contextvars.ContextVar("lowest_tier", default=isolation.LIMITS)
_ANSWER_BYTES = 256 << 20
_ANSWER_VALUES = 8_000_000  # each takes some 50 bytes of this process


@dataclass(frozen=True)
class ResourceLimits:
    """What one job may take: seconds and bytes; 0 leaves a limit of bytes out.

    ``start``: seconds until the process is ready to work; ``case``: seconds a case may take, ``total``: all of them together.
    ``memory_bytes``: beyond what the libraries take; ``resident_bytes``: with them; ``files`` and ``disk_bytes``: in its folder;
    ``processes`` and ``threads``: alive at one time, of all that it started.
    """

    start: float = 60.0
    case: float = 10.0
    total: float = 60.0
    address_bytes: int = 64 << 30
    memory_bytes: int = 4 << 30
    resident_bytes: int = 5 << 30
    file_bytes: int = 64 << 20
    log_bytes: int = 8 << 20
    disk_bytes: int = 256 << 20
    files: int = 2000
    open_files: int = 256
    processes: int = 8
    threads: int = 256

    @classmethod
    def for_mode(cls, mode: str) -> ResourceLimits:
        if mode in ("torch", "autograd", "tests"):
            return cls(start=120.0)  # importing PyTorch takes seconds, on a busy machine many
        if mode != "gpu":
            return cls()
        # a GPU's first case compiles, by other programs, and CUDA reserves more address space than any machine has memory
        return cls(
            start=120.0, case=60.0, total=300.0, address_bytes=0, memory_bytes=0, resident_bytes=24 << 30, disk_bytes=1 << 30, files=20_000,
            open_files=4096, processes=64, threads=1024,
        )  # fmt: skip


@dataclass(frozen=True)
class Answer:
    """What the server saw of a job.

    ``ended`` is "finished", "timed out", "flooded" (it printed too much), "too much memory", "too many files", "too many
    processes", "abandoned", or "died" (the server itself, twice). ``exit_code``: negative for a signal, None if it was stopped before
    it ended. ``refusals``: why better tiers were not to be had, by tier. ``left_out``: the cases that this
    machine has no address space for.
    """

    tier: str
    ended: str
    stage: Stage
    exit_code: int | None
    printed: str
    refusals: dict[str, str]
    left_out: frozenset[int]

    @property
    def signal(self) -> int | None:
        return -self.exit_code if self.exit_code is not None and self.exit_code < 0 else None

    @property
    def cause_of_end(self) -> str:
        """``ended``; "timed out" where the limit of CPU time ended it, "killed" where something else did, else "crashed"."""
        if self.signal == signal.SIGXCPU:
            return "timed out"
        if self.ended != "finished":
            return self.ended
        # no exit code: whoever was to report it was killed, and the process with it
        return "killed" if self.exit_code is None or self.signal == signal.SIGKILL else "crashed"


class JobFailure(Exception):
    """A job left no answer. ``answer`` says how it ended."""

    def __init__(self, answer: Answer):
        super().__init__(answer.cause_of_end)
        self.answer = answer


def run(
    kind: ServerKind,
    job: Mapping[str, Any],
    folder: Path,
    limits: ResourceLimits,
    *,
    count: int = 1,
    reserve: Mapping[int, int] | None = None,
    look: Callable[[], None] | None = None,
    is_over: Callable[[], bool] | None = None,
) -> Answer:
    """Run one job in a process of its own.

    Args:
        job: plain data, for the machine's ``work``.
        folder: the job's own, where it may write.
        count: how many cases it has; each has ``limits.case`` seconds.
        reserve: bytes of address space that a case needs, by its number.
        look: called some times a second, in this thread, while the job runs.
        is_over: likewise. Once it says so, the job ends as "timed out": its answer is known, or nobody wants it.

    Raises: OSError if the job cannot be written or no process started (disk full, no memory); EnvironmentFault if what the
    process needs cannot be imported, or this machine has not the tier that :func:`require_tier` asks for.
    """
    lowest_tier = _lowest_tier.get()
    (folder / "job.json").write_text(json.dumps(job), encoding="utf-8")
    question = {
        "folder": str(folder), "limits": asdict(limits), "best_tier": BEST_TIER, "lowest_tier": lowest_tier, "count": count,
        "reserve": {str(number): size for number, size in (reserve or {}).items()},
    }  # fmt: skip

    def look_and_stop() -> None:
        if look is not None:
            look()
        if is_over is not None and is_over():
            (folder / STOP).touch()

    try:
        plain = servers.ask(kind, question, limits.start + limits.total, look_and_stop)
    except WorkerFailure as died:
        # not the first server that this job ended: the second one had been started for it
        stage = Stage.RUNNING if any(folder.glob("*.begin")) else Stage.STARTING
        return Answer("none", "died", stage, None, died.printed, {}, frozenset())
    answer = Answer(
        plain["tier"], plain["ended"], Stage(plain["stage"]), plain["exit"], plain["printed"], plain["refusals"], frozenset(plain["left_out"]),
    )  # fmt: skip
    if answer.stage is Stage.STARTING and lowest_tier in answer.refusals:
        why = "; ".join(f"{tier}: {reason}" for tier, reason in answer.refusals.items())
        raise EnvironmentFault(
            f"this machine cannot shut a check in as well as was asked ({lowest_tier}). Nothing was run. What it said: {why}. "
            "`course doctor` says what would be needed."
        )
    return answer


@contextlib.contextmanager
def require_tier(tier: str) -> Iterator[None]:
    """Inside the block, run no job that this machine cannot shut in at least as well as ``tier``.

    Raises: CourseError if there is no such tier.
    """
    if tier not in isolation.TIERS:
        raise CourseError(f"there is no tier {tier!r} of isolation; there are {', '.join(map(repr, isolation.TIERS))}.")
    token = _lowest_tier.set(tier)
    try:
        yield
    finally:
        _lowest_tier.reset(token)


def ask(kind: ServerKind, job: Mapping[str, Any], limits: ResourceLimits, *, count: int = 1) -> Any:
    """The answer of a job that leaves one: plain data, made by a process that may have been taken over. Check its shape.

    ``count``: its cases, as in :func:`run`.

    Raises: JobFailure if it leaves none; WorkerFailure if its server does not start; otherwise as :func:`run`.
    """
    servers.warm(kind)  # before there is a folder: a start takes seconds, and who is killed meanwhile leaves nothing
    with TemporaryFolder("course-job-") as folder:
        answer = run(kind, job, folder, limits, count=count)
        data = read_file(folder / "answer.json", _ANSWER_BYTES)
    if data is None or sum(map(data.count, (b",", b"[", b"{"))) > _ANSWER_VALUES:
        raise JobFailure(answer)
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        raise JobFailure(answer) from None


def read_file(file: Path, most: int) -> bytes | None:
    """Up to ``most`` bytes of a plain file; None for anything else."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    with open(descriptor, "rb") as opened:
        return opened.read(most) if stat.S_ISREG(os.fstat(descriptor).st_mode) else None
