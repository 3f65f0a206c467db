"""Functions that send a job to a confined process, and take what it leaves.

A job is plain data and bytes by name, and what it leaves are bytes by name. A server and its caller
exchange them through the files of a folder, a browser tab through messages to a worker, and a tab
that cannot wait within its process.

The code that left the bytes may be hostile: trust nothing in them. The rest of a :class:`JobAnswer`
comes from the server, which runs no code of a submission, and can be trusted.
"""

from __future__ import annotations

import contextlib
import contextvars
import json
import os
import signal
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from course_lib.base.errors import CourseError, EnvironmentFault
from course_lib.base.files import TemporaryFolder
from course_lib.base.tab import IN_TAB
from course_lib.base.translation import gettext as _
from course_lib.base.worker import WorkerFailure
from course_lib.sandbox import in_process, in_worker, isolation, servers
from course_lib.sandbox.machine import ANSWER, ServerKind
from course_lib.sandbox.stage import STOP, Stage

Read = Callable[[str, int], bytes | None]  # a name and the most bytes that are taken
BEST_TIER = isolation.NAMESPACES  # tests set a lower tier, to prove which attacks each tier stops
_lowest_tier: contextvars.ContextVar[str] = contextvars.ContextVar(
    "lowest_tier", default=isolation.LIMITS
)
_MOST_SHARED = 10.0  # how many times as long as on an idle machine a job may take
_ANSWER_BYTES = 256 << 20
# limit for the JSON values in an answer: each takes memory in this process
_ANSWER_VALUES = 8_000_000


@dataclass(frozen=True)
class ResourceLimits:
    """The limits of one job, in seconds, bytes and counts. A byte limit of 0 is not set.

    ``start``: seconds until the process is ready to work; ``case``: processor seconds per case;
    ``total``: processor seconds for all cases together. ``load``: processor seconds until the first
    case begins, for the import of the file and, on a GPU, for the compilation of all its kernels; 0
    takes ``case``. ``patience``: how many times as long as its processor time a job may sleep or
    wait, by the clock. The time in which it waits for a processor does not count. ``memory_bytes``:
    memory beyond that of the libraries; ``resident_bytes``: resident memory, libraries included;
    ``files`` and ``disk_bytes``: number and size of the files that the job may leave in its folder;
    ``processes`` and ``threads``: how many the job may have at one time.
    """

    start: float = 60.0
    case: float = 10.0
    load: float = 0.0
    total: float = 60.0
    patience: float = 6.0
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


@dataclass(frozen=True)
class JobAnswer:
    """The end of a job, as the server saw it.

    Args:
        ended: "finished", "timed out" (its processor time is over), "waited" (its time by the clock
            is over), "flooded" (it printed too much), "too much memory", "too many files", "too
            many processes", "abandoned", or "died" (two servers in a row ended before the job did).
        exit_code: negative for a signal; None if the job was stopped before it ended.
        refusals: for each better tier, why this machine does not permit it.
        left_out: the cases for which this machine has no address space.
        outputs: the bytes that the job left, by name, of those names that were asked for.
        folder: the path of the job's folder, which the job's own texts may name.
    """

    tier: str
    ended: str
    stage: Stage
    exit_code: int | None
    printed: str
    refusals: dict[str, str]
    left_out: frozenset[int]
    outputs: Mapping[str, bytes] = field(default_factory=dict)
    folder: str = ""

    @property
    def signal(self) -> int | None:
        return -self.exit_code if self.exit_code is not None and self.exit_code < 0 else None

    @property
    def cause_of_end(self) -> str:
        """``ended``; for a job that ended by itself "timed out" at the kernel's limit of processor
        time, "killed" from outside, or "crashed".
        """
        if self.signal == signal.SIGXCPU:
            return "timed out"
        if self.ended != "finished":
            return self.ended
        # There is no exit code if the process that reports it was killed. The job's process is then
        # killed as well.
        return "killed" if self.exit_code is None or self.signal == signal.SIGKILL else "crashed"


class JobFailure(Exception):
    """The failure of a job that left no answer. ``answer`` says how the job ended."""

    def __init__(self, answer: JobAnswer):
        super().__init__(answer.cause_of_end)
        self.answer = answer


def describe_not_started(
    does: str, failed: JobAnswer | WorkerFailure | OSError | str
) -> EnvironmentFault:
    """Return an error that blames the machine for a process that did not start.

    Args:
        does: completes "the process that"; marked for translation where it is written.
        failed: how its start failed, or the text that it printed.
    """
    printed, otherwise = "", _("it printed nothing")
    match failed:
        case JobAnswer():
            printed, otherwise = failed.printed, failed.ended
        case WorkerFailure():
            printed, otherwise = failed.printed, f"it {failed}"
        case OSError():
            otherwise = str(failed)
        case _:
            printed = failed
    last_line = (printed.strip().splitlines() or [otherwise])[-1].strip()
    return EnvironmentFault(
        _(
            "the process that {does} did not start ({reason}). `course doctor` says what is wrong"
            " with this machine."
        ).format(does=_(does), reason=last_line),
        printed,
    )


def run(
    kind: ServerKind,
    job: Mapping[str, Any],
    limits: ResourceLimits,
    *,
    inputs: Mapping[str, bytes] | None = None,
    outputs: Mapping[str, int] | None = None,
    count: int = 1,
    reserve: Mapping[int, int] | None = None,
    look: Callable[[Read], None] | None = None,
    is_over: Callable[[], bool] | None = None,
) -> JobAnswer:
    """Run one job in a confined process.

    A browser tab runs it in a worker (:mod:`in_worker`), or, if this call cannot wait for a worker,
    in this process (:mod:`in_process`).

    Args:
        job: plain data for the machine's ``work``.
        inputs: the bytes that the job gets, by name.
        outputs: by name, the most bytes that are taken of what the job leaves.
        count: the number of its cases; each may take ``limits.case`` processor seconds.
        reserve: bytes of address space that a case needs, by the number of the case.
        look: called several times per second, in this thread, while the job runs, with a function
            that returns what the job has left under a name by then. The job may change it later.
        is_over: called as often. When it returns True, the job is ended as "timed out": its answer
            is known or no longer needed.

    Raises: OSError if the job cannot be written or no process started (disk full, no memory);
    EnvironmentFault if a module that the process needs cannot be imported, or if this machine does
    not permit the tier that :func:`require_tier` requires.
    """
    inputs, outputs = inputs or {}, outputs or {}
    if IN_TAB:
        way = in_worker if in_worker.can_wait() else in_process
        answer = JobAnswer(**way.run(kind, job, inputs, asdict(limits)))
        taken = {
            name: data[: outputs[name]] for name, data in answer.outputs.items() if name in outputs
        }
        return replace(answer, outputs=taken)
    with TemporaryFolder("course-job-") as folder:
        for name, data in inputs.items():
            (folder / name).write_bytes(data)
        answer = _run_in_folder(kind, job, folder, limits, count, reserve or {}, look, is_over)
        left = {name: read_file(folder / name, most) for name, most in outputs.items()}
    taken = {name: data for name, data in left.items() if data is not None}
    return replace(answer, outputs=taken, folder=str(folder))


def _run_in_folder(
    kind: ServerKind,
    job: Mapping[str, Any],
    folder: Path,
    limits: ResourceLimits,
    count: int,
    reserve: Mapping[int, int],
    look: Callable[[Read], None] | None,
    is_over: Callable[[], bool] | None,
) -> JobAnswer:
    """Have a server run the job, whose inputs are in ``folder``."""
    lowest_tier = _lowest_tier.get()
    (folder / "job.json").write_text(json.dumps(job), encoding="utf-8")
    question = {
        "folder": str(folder), "limits": asdict(limits), "best_tier": BEST_TIER,
        "lowest_tier": lowest_tier, "count": count,
        "reserve": {str(number): size for number, size in reserve.items()},
    }  # fmt: skip

    def look_and_stop() -> None:
        if look is not None:
            look(lambda name, most: read_file(folder / name, most))
        if is_over is not None and is_over():
            (folder / STOP).touch()

    try:
        # The server enforces the limits. This one ends a server that hangs, also where a job waits
        # long for a processor.
        plain = servers.ask(
            kind,
            question,
            limits.start + _MOST_SHARED * limits.patience * limits.total,
            look_and_stop,
        )
    except WorkerFailure as died:
        # Two servers ended during this job, the second one started for it. The files of begun cases
        # show how far the job came.
        stage = Stage.RUNNING if any(folder.glob("*.begin")) else Stage.STARTING
        return JobAnswer("none", "died", stage, None, died.printed, {}, frozenset())
    answer = JobAnswer(
        plain["tier"], plain["ended"], Stage(plain["stage"]), plain["exit"], plain["printed"],
        plain["refusals"], frozenset(plain["left_out"]),
    )  # fmt: skip
    if answer.stage is Stage.STARTING and lowest_tier in answer.refusals:
        why = "; ".join(f"{tier}: {reason}" for tier, reason in answer.refusals.items())
        raise EnvironmentFault(
            _(
                "this machine cannot shut a check in as well as was asked ({tier}). Nothing was"
                " run. What it said: {reasons}. `course doctor` says what would be needed."
            ).format(tier=_(lowest_tier), reasons=why)
        )
    return answer


@contextlib.contextmanager
def require_tier(tier: str) -> Iterator[None]:
    """Inside the block, run a job only in ``tier`` or in a better one.

    Raises: CourseError if there is no such tier.
    """
    if tier not in isolation.TIERS:
        raise CourseError(
            f"there is no tier {tier!r} of isolation; there are"
            f" {', '.join(map(repr, isolation.TIERS))}."
        )
    token = _lowest_tier.set(tier)
    try:
        yield
    finally:
        _lowest_tier.reset(token)


def ask(
    kind: ServerKind,
    job: Mapping[str, Any],
    limits: ResourceLimits,
    *,
    inputs: Mapping[str, bytes] | None = None,
    count: int = 1,
    is_over: Callable[[], bool] | None = None,
) -> Any:
    """Run a job and return its answer, which is plain data. Check its shape: a submission may have
    taken over the process that made it.

    ``inputs``, ``count`` and ``is_over`` are those of :func:`run`.

    Raises: JobFailure if the job leaves no answer; WorkerFailure if its server does not start;
    otherwise as :func:`run`.
    """
    # Warm before the folder is made: a start takes seconds, and if this process is killed
    # meanwhile, no folder is left behind.
    warm(kind)
    answer = run(
        kind,
        job,
        limits,
        inputs=inputs,
        outputs={ANSWER: _ANSWER_BYTES},
        count=count,
        is_over=is_over,
    )
    data = answer.outputs.get(ANSWER)
    if data is None or sum(map(data.count, (b",", b"[", b"{"))) > _ANSWER_VALUES:
        raise JobFailure(answer)
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        raise JobFailure(answer) from None


def warm(kind: ServerKind) -> None:
    """Start the server or worker for jobs of this kind, so that the next job need not wait for it.

    Raises: EnvironmentFault or WorkerFailure if it does not start.
    """
    if IN_TAB:
        in_worker.warm(kind) if in_worker.can_wait() else in_process.make_machine(kind)
    else:
        servers.warm(kind)


def prepare(kind: ServerKind) -> None:
    """Begin to start the server for jobs of this kind, without waiting for it. If it does not
    start, the next job says so."""
    if not IN_TAB:
        servers.prepare(kind)


def read_file(file: Path, most: int) -> bytes | None:
    """Return at most ``most`` bytes of a plain file; None for anything else."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    with open(descriptor, "rb") as opened:
        return opened.read(most) if stat.S_ISREG(os.fstat(descriptor).st_mode) else None
